/* A stand-in for NVIDIA's management library with one card, to be loaded by the real binding.
 *
 * Every call answers with a number of its own. `stand_in` makes one call fail with a return code,
 * or answer `value` in all of its members. Compiled with -DOLD it is a library of 2021: what came
 * later is not there. Structures are written from NVIDIA's documentation, not from the binding. */

#include <stddef.h>
#include <string.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef void *card;

#define SUCCESS 0
#define INSUFFICIENT_SIZE 7
#define VERSION_MISMATCH 25
#define VERSION(type, number) ((u32)(sizeof(type) | ((number) << 24)))

#ifdef OLD
#define RELEASE "470.256.02"
#else
#define RELEASE "580.95.05"
#endif

static char spoilt[64];
static int spoilt_code, n_open;
static u64 spoilt_value;

void stand_in(const char *name, int code, u64 value)
{
    strncpy(spoilt, name, sizeof spoilt - 1);
    spoilt_code = code;
    spoilt_value = value;
}

int stand_in_open(void) { return n_open; }

static int is_spoilt(const char *name) { return strcmp(name, spoilt) == 0; }
static int code_of(const char *name) { return is_spoilt(name) ? spoilt_code : SUCCESS; }
static u64 say(const char *name, u64 usual) { return is_spoilt(name) ? spoilt_value : usual; }

#define FAIL() do { int code = code_of(__func__); if (code) return code; } while (0)
#define SAY(usual) say(__func__, usual)
#define NUMBER(name, type, usual) \
    int name(card c, type *out) { (void)c; FAIL(); *out = (type)SAY(usual); return SUCCESS; }
#define INDEXED(name, type, usual) \
    int name(card c, u32 n, type *out) \
    { (void)c; (void)n; FAIL(); *out = (type)SAY(usual); return SUCCESS; }
#define PAIR(name, type, first, second) \
    int name(card c, type *a, type *b) \
    { (void)c; FAIL(); *a = (type)SAY(first); *b = (type)SAY(second); return SUCCESS; }
static int text(const char *name, char *out, u32 room, const char *usual)
{
    memset(out, is_spoilt(name) ? 0xff : 0, room);
    if (!is_spoilt(name)) strncpy(out, usual, room - 1);
    out[room - 1] = 0;
    return code_of(name);
}
#define TEXT(name, usual) \
    int name(card c, char *out, u32 room) { (void)c; return text(__func__, out, room, usual); }

/* --- the library ---------------------------------------------------------------------------- */

int nvmlInitWithFlags(u32 flags) { (void)flags; FAIL(); n_open++; return SUCCESS; }
int nvmlShutdown(void) { FAIL(); n_open--; return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "stand-in"; }
int nvmlDeviceGetCount_v2(u32 *out) { FAIL(); *out = (u32)SAY(1); return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(u32 n, card *out) { FAIL(); *out = spoilt; return n ? 2 : SUCCESS; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, card *out)
{ FAIL(); *out = spoilt; return strcmp(id, "00000000:01:00.0") ? 6 : SUCCESS; }

int nvmlSystemGetDriverVersion(char *out, u32 room)
{ return text(__func__, out, room, RELEASE); }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { FAIL(); *out = (int)SAY(13000); return SUCCESS; }

/* --- what a card is ------------------------------------------------------------------------- */

TEXT(nvmlDeviceGetName, "NVIDIA GeForce RTX 5070")
TEXT(nvmlDeviceGetUUID, "GPU-5c1f0b7e-0000-0000-0000-000000000001")

struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(card c, struct pci *out)
{
    (void)c; FAIL();
    memset(out, is_spoilt(__func__) ? 0xff : 0, sizeof *out);
    if (!is_spoilt(__func__)) strcpy(out->bus_id, "00000000:01:00.0");
    return SUCCESS;
}

struct bar { u64 total, free, used; };
int nvmlDeviceGetBAR1MemoryInfo(card c, struct bar *out)
{ (void)c; FAIL(); out->total = SAY(16ull << 30); out->free = SAY(2); out->used = SAY(3); return SUCCESS; }

NUMBER(nvmlDeviceGetDisplayActive, u32, 1)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, u32, 4)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, u32, 16)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, u32, 250000)
NUMBER(nvmlDeviceGetPowerManagementLimit, u32, 249000)
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, u32, 100000, 300000)
INDEXED(nvmlDeviceGetMaxClockInfo, u32, n == 2 ? 14001 : 3100)
int nvmlDeviceGetTemperatureThreshold(card c, u32 n, u32 *out)
{ (void)c; FAIL(); *out = (u32)SAY(n == 0 ? 98 : 93); return SUCCESS; }
PAIR(nvmlDeviceGetCudaComputeCapability, int, 12, 1)
NUMBER(nvmlDeviceGetMemoryBusWidth, u32, 192)
PAIR(nvmlDeviceGetEccMode, u32, 0, 0)
PAIR(nvmlDeviceGetMigMode, u32, 0, 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, u32, 0)

/* --- every second --------------------------------------------------------------------------- */

struct rates { u32 gpu, memory; };
int nvmlDeviceGetUtilizationRates(card c, struct rates *out)
{ (void)c; FAIL(); out->gpu = (u32)SAY(61); out->memory = (u32)SAY(27); return SUCCESS; }

struct memory { u64 total, free, used; };
int nvmlDeviceGetMemoryInfo(card c, struct memory *out)
{ (void)c; FAIL(); out->total = SAY(12ull << 30); out->free = SAY(9ull << 30); out->used = SAY(3ull << 30); return SUCCESS; }

NUMBER(nvmlDeviceGetPowerUsage, u32, 143500)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, u32, 248000)
int nvmlDeviceGetClockInfo(card c, u32 n, u32 *out)
{ (void)c; FAIL(); *out = (u32)SAY(n == 0 ? 2410 : 14001); return SUCCESS; }
INDEXED(nvmlDeviceGetTemperature, u32, 57)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, 0x4)

struct held { u64 reference, violation; };
int nvmlDeviceGetViolationStatus(card c, u32 policy, struct held *out)
{
    static u64 passed;
    (void)c; FAIL();
    passed += 1000000;
    out->reference = SAY(77); out->violation = SAY(passed * (policy + 1));
    return SUCCESS;
}

/* --- every ten seconds ---------------------------------------------------------------------- */

struct field { u32 id, scope; long long at, latency; u32 type, code; union { double d; u32 u; u64 l; } value; };
int nvmlDeviceGetFieldValues(card c, int n, struct field *out)
{
    static u64 passed;
    (void)c; FAIL();
    for (int i = 0; i < n; i++) {
        int heat = out[i].id >= 269 && out[i].id <= 271, counter = heat || out[i].id == 74;
        passed += counter ? 1000000 : 0;
        out[i].at = 1; out[i].latency = 2;
        out[i].code = 0;
        out[i].type = counter || out[i].id == 191 ? 3 : 1;
        out[i].value.l = 0;
        if (counter) out[i].value.l = SAY(passed);
        else if (out[i].id == 191) out[i].value.l = SAY(7654321);
        else if (out[i].id == 186) out[i].value.u = (u32)SAY(151000);
        else if (out[i].id == 82) out[i].value.u = (u32)SAY(66);
        else out[i].code = 3;
    }
    return SUCCESS;
}

INDEXED(nvmlDeviceGetFanSpeed_v2, u32, 30 + 5 * n)
NUMBER(nvmlDeviceGetFanSpeed, u32, 33)
NUMBER(nvmlDeviceGetNumFans, u32, 2)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, u32, 3)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, u32, 8)
NUMBER(nvmlDeviceGetPersistenceMode, u32, 1)
int nvmlDeviceGetNvLinkState(card c, u32 n, u32 *out)
{ (void)c; FAIL(); *out = (u32)SAY(n < 1); return n < 4 ? SUCCESS : 2; }
NUMBER(nvmlDeviceGetTotalEnergyConsumption, u64, 1234567)
INDEXED(nvmlDeviceGetPcieThroughput, u32, 4200 + n)
int nvmlDeviceGetTotalEccErrors(card c, u32 kind, u32 since, u64 *out)
{ (void)c; FAIL(); *out = SAY(kind == 1 && since == 0 ? 3 : 9999); return SUCCESS; }

struct program { u32 pid; u64 used; u32 gpu_instance, compute_instance; };
static int programs(const char *name, u32 *count, struct program *out, u32 pid, u64 used)
{
    int code = code_of(name);
    if (code) return code;
    if (*count < 1 || !out) { *count = 1; return INSUFFICIENT_SIZE; }
    out[0].pid = (u32)say(name, pid); out[0].used = say(name, used);
    out[0].gpu_instance = out[0].compute_instance = 0xffffffff;
    *count = 1;
    return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v2(card c, u32 *n, struct program *out)
{ (void)c; return programs(__func__, n, out, 41, 1ull << 30); }
int nvmlDeviceGetGraphicsRunningProcesses_v2(card c, u32 *n, struct program *out)
{ (void)c; return programs(__func__, n, out, 42, 2ull << 30); }

struct load { u32 pid; u64 at; u32 sm, memory, encoder, decoder; };
int nvmlDeviceGetProcessUtilization(card c, struct load *out, u32 *count, u64 since)
{
    (void)c; (void)since; FAIL();
    if (!out) { *count = 2; return INSUFFICIENT_SIZE; }
    for (u32 i = 0; i < *count; i++) {
        out[i].pid = (u32)SAY(41 + i); out[i].at = SAY(1700000000000000ull); out[i].sm = (u32)SAY(50 + i);
        out[i].memory = (u32)SAY(8); out[i].encoder = (u32)SAY(9); out[i].decoder = (u32)SAY(10);
    }
    return SUCCESS;
}

/* --- what came after 2021 ------------------------------------------------------------------- */

#ifndef OLD
struct memory_2 { u32 version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(card c, struct memory_2 *out)
{
    (void)c; FAIL();
    if (out->version != VERSION(struct memory_2, 2)) return VERSION_MISMATCH;
    out->total = SAY(12ull << 30); out->reserved = SAY(1ull << 28);
    out->free = SAY(8ull << 30); out->used = SAY(4ull << 30);
    return SUCCESS;
}

struct temperature { u32 version, sensor; int degrees; };
int nvmlDeviceGetTemperatureV(card c, struct temperature *out)
{
    (void)c; FAIL();
    if (out->version != VERSION(struct temperature, 1) || out->sensor != 0) return VERSION_MISMATCH;
    out->degrees = (int)SAY(58);
    return SUCCESS;
}

struct margin { u32 version; int degrees; };
int nvmlDeviceGetMarginTemperature(card c, struct margin *out)
{
    (void)c; FAIL();
    if (out->version != VERSION(struct margin, 1)) return VERSION_MISMATCH;
    out->degrees = (int)SAY(29);
    return SUCCESS;
}

struct fan { u32 version, number, speed; };
int nvmlDeviceGetFanSpeedRPM(card c, struct fan *out)
{
    (void)c; FAIL();
    if (out->version != VERSION(struct fan, 1) || out->number != 0) return VERSION_MISMATCH;
    out->speed = (u32)SAY(1250);
    return SUCCESS;
}

struct modes { u32 current, wanted, known; };
int nvmlDeviceGetPowerMizerMode_v1(card c, struct modes *out)
{ (void)c; FAIL(); out->current = (u32)SAY(1); out->wanted = (u32)SAY(0); out->known = (u32)SAY(15); return SUCCESS; }

int nvmlDeviceGetComputeRunningProcesses_v3(card c, u32 *n, struct program *out)
{ (void)c; return programs(__func__, n, out, 41, 3ull << 30); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(card c, u32 *n, struct program *out)
{ (void)c; return programs(__func__, n, out, 42, 1ull << 29); }

NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, 0x24)
NUMBER(nvmlDeviceGetPowerSource, u32, 2)
NUMBER(nvmlDeviceGetPcieSpeed, u32, 32000)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, u32, 5)
NUMBER(nvmlDeviceGetNumGpuCores, u32, 6144)
PAIR(nvmlDeviceGetDriverModel_v2, u32, 0, 0)
#endif
