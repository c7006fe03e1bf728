"""Machines that people reported, rebuilt in small: what is read, joined, shown and advised."""

import math
from typing import Any

import pytest

from app.advice.rule import Situation, cards
from app.advice.rules import blocker, findings
from app.cli.probe_text import gpu_details
from app.domain.machine import EngineDevice, Gpu, GpuKind, PowerState
from app.machine import merge_samples, search_devices
from tests.fakes.odd_machines import GIB, device, engine, nvml_card, on_bus, recorded, seen

FIRST, SECOND = "0000:01:00.0", "0000:02:00.0"
LAPTOP = "NVIDIA GeForce RTX 4080 Laptop GPU"


def ids(situation: Situation) -> set[str]:
    return {finding.id for finding in findings(situation)}


def the_gpu(situation: Situation) -> Gpu:
    (gpu,) = situation.machine.gpus
    return gpu


def one_card(*, laptop: bool = False, **answers: Any) -> Situation:
    names = {"nvmlDeviceGetName": LAPTOP} if laptop else {}
    files = on_bus(FIRST, "10de", "nvidia") | {"/sys/class/dmi/id/chassis_type": "10"}
    return seen(recorded(files, nvml_card(FIRST, **names, **answers)))


def text_of(situation: Situation, gpu: Gpu) -> str:
    reading = merge_samples(situation.samples.get(gpu.key, ()))
    return "\n".join(gpu_details(gpu.info, reading))


# --- C01: limits of laptops -------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        {"nvmlDeviceGetPowerManagementLimit": "!not_supported"},
        {"nvmlDeviceGetPowerManagementLimit": 80_000},
        {
            "nvmlDeviceGetPowerManagementLimit": "!not_supported",
            "nvmlDeviceGetPowerManagementLimitConstraints": "!not_supported",
            "nvmlDeviceGetEnforcedPowerLimit": "!not_supported",
        },
    ],
)
def test_a_laptops_limit_is_never_offered(limits: dict[str, Any]) -> None:
    """Whatever the driver shows, a laptop's limit is called not adjustable; draw is shown."""
    situation = one_card(laptop=True, **limits)
    info = the_gpu(situation).info
    assert info is not None
    assert info.power_limit_settable is False
    assert "power limit not adjustable" in text_of(situation, the_gpu(situation))
    assert "30.0 W" in text_of(situation, the_gpu(situation))


# --- C03, C14 and absurd numbers ----------------------------------------------------------------


@pytest.mark.parametrize("used", [2**64 - 1, 2**63, 9 * GIB, -1, "N/A", None, math.nan])
def test_a_programs_impossible_memory_is_unknown(used: object) -> None:
    """More than the card has, or no number: the program is listed without a size."""
    entry = [{"pid": 79, "usedGpuMemory": used}]
    situation = one_card(nvmlDeviceGetComputeRunningProcesses_v3=entry)
    (sample,) = situation.samples[the_gpu(situation).key]
    assert sample.processes is not None
    assert sample.processes[0].vram_bytes is None
    assert "memory_taken" not in ids(situation)


@pytest.mark.parametrize(
    ("call", "field", "values"),
    [
        ("nvmlDeviceGetTemperatureV(0)", "temp_c", (0, 255, 65535, -128, math.nan, "N/A")),
        ("nvmlDeviceGetPowerUsage", "power_w", (0, 2**32 - 1, -5, math.inf, "[N/A]")),
        ("nvmlDeviceGetEnforcedPowerLimit", "power_limit_w", (0, 2**32 - 1, "ERR!")),
        ("nvmlDeviceGetClockInfo(0)", "clock_mhz", (2**31, -1, "Unknown")),
    ],
)
def test_an_absurd_reading_is_missing_with_its_reason(
    call: str, field: str, values: tuple[object, ...]
) -> None:
    """Sentinels of drivers are never shown as numbers."""
    for value in values:
        answer: dict[str, Any] = {call: value}
        situation = one_card(**answer)
        (sample,) = situation.samples[the_gpu(situation).key]
        assert getattr(sample, field) is None, value
        assert field in sample.missing


@pytest.mark.parametrize(
    ("rates", "busy"),
    [({"gpu": 101, "memory": 5}, None), ({"gpu": 100, "memory": 300}, 100.0), ({}, None)],
)
def test_busy_time_above_a_hundred_is_no_reading(rates: object, busy: float | None) -> None:
    """One absurd member of a structure does not hide the other one."""
    situation = one_card(nvmlDeviceGetUtilizationRates=rates)
    (sample,) = situation.samples[the_gpu(situation).key]
    assert sample.busy_pct == busy
    assert sample.mem_busy_pct in {5.0, None}


def test_free_memory_is_never_more_than_there_is() -> None:
    """An engine that counts shared memory as free does not enlarge the card."""
    files = on_bus(FIRST, "10de", "nvidia")
    listed = engine(device("CUDA0", LAPTOP, pci_id=FIRST, free=120 * GIB))
    situation = seen(recorded(files, nvml_card(FIRST)), listed)
    (found,) = search_devices(situation.machine)
    assert 0 <= found.free_bytes <= found.total_bytes <= 8 * GIB


def test_used_above_total_is_no_reading() -> None:
    """A driver's memory answer with parts larger than the whole gives no part."""
    broken = {"total": 8 * GIB, "free": 9 * GIB, "used": 10 * GIB, "reserved": 0}
    answer: dict[str, Any] = {"nvmlDeviceGetMemoryInfo(33554472)": broken}
    situation = one_card(**answer)
    (sample,) = situation.samples[the_gpu(situation).key]
    assert (sample.vram_free_bytes, sample.vram_used_bytes) == (None, None)
    assert sample.missing["vram_used_bytes"] == "implausible"


def test_nothing_free_of_nothing_is_an_engine_that_does_not_know() -> None:
    """An engine that says 0 of 0 bytes does not make a card with memory useless."""
    listed = engine(device("CUDA0", LAPTOP, pci_id=FIRST, total=0, free=0))
    situation = seen(recorded(on_bus(FIRST, "10de", "nvidia"), nvml_card(FIRST)), listed)
    (found,) = search_devices(situation.machine)
    assert found.free_bytes == found.total_bytes == 8 * GIB


@pytest.mark.parametrize("total", [1 << 60, (1 << 64) - 1, -1])
def test_an_engines_impossible_memory_is_unknown(total: int) -> None:
    """A sentinel for "unknown" is shown as missing; the card's own figure, if any, counts."""
    listed = engine(device("CUDA0", LAPTOP, pci_id=FIRST, total=total, free=total))
    silent = nvml_card(FIRST, **{"nvmlDeviceGetMemoryInfo(33554472)": "!not_supported"})
    unknown = seen(recorded(on_bus(FIRST, "10de", "nvidia"), silent), listed)
    (shown,) = the_gpu(unknown).engine
    assert (shown.total_bytes, shown.free_bytes) == (None, None)
    assert search_devices(unknown.machine) == ()
    known = seen(recorded(on_bus(FIRST, "10de", "nvidia"), nvml_card(FIRST)), listed)
    (found,) = search_devices(known.machine)
    assert found.total_bytes == 8 * GIB


# --- C04: the window counted as memory ----------------------------------------------------------


@pytest.mark.parametrize("wrong", [55 * GIB, 58 * GIB, 16 * GIB])
def test_a_second_source_bounds_the_memory_of_a_card(wrong: int) -> None:
    """An engine that adds the memory window to the memory is not believed."""
    listed = engine(device("Vulkan0", "RTX", pci_id=FIRST, total=wrong, free=wrong))
    situation = seen(recorded(on_bus(FIRST, "10de", "nvidia"), nvml_card(FIRST)), listed)
    (found,) = search_devices(situation.machine)
    assert found.total_bytes == 8 * GIB


# --- C07: Jetson --------------------------------------------------------------------------------


NO_MEMORY = {"total": 0, "free": 0, "used": 0}


@pytest.mark.parametrize("name", ["Orin (nvgpu)", "Xavier (nvgpu)", "NVIDIA Thor"])
@pytest.mark.parametrize("silent", ["!not_supported", "N/A", "[N/A]", None, NO_MEMORY])
def test_a_jetson_is_a_gpu_with_the_rams_memory(silent: object, name: str) -> None:
    """Every field absent: still CUDA, unified memory, heat from the kernel's own sensor."""
    answers: dict[str, Any] = dict.fromkeys(nvml_card(FIRST), silent)
    answers = {key.split("@")[0] + "@index:0": value for key, value in answers.items()}
    answers["nvmlDeviceGetName()@index:0"] = name
    answers["nvmlDeviceGetMemoryInfo(33554472)@index:0"] = silent
    answers["nvmlDeviceGetMemoryInfo()@index:0"] = silent
    answers["nvmlDeviceGetUUID()@index:0"] = "!not_supported"
    answers["nvmlDeviceGetCount()@system"] = 1
    files = {
        "/proc/meminfo": "MemTotal:       7443456 kB",
        "/sys/class/thermal/thermal_zone4/type": "tj-thermal",
        "/sys/class/thermal/thermal_zone4/temp": "51250",
    }
    cuda_name = name.removesuffix(" (nvgpu)")
    listed = engine(device("CUDA0", cuda_name, kind=GpuKind.INTEGRATED, total=7 * GIB))
    situation = seen(recorded(files, answers), listed)
    gpu = situation.machine.gpus[0]
    assert gpu.info is not None
    assert gpu.info.unified_memory is True
    assert gpu.info.shared_total_bytes == 7443456 * 1024
    assert situation.reading(gpu, "temp_c") == 51.25
    assert ids(situation) == {"unified_memory"}
    assert search_devices(situation.machine)


# --- C08: updated driver ------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["550.144.03", "535.129", "580.159.04"])
def test_an_updated_driver_blocks_measuring(module: str) -> None:
    """Library and module differ until a restart: said with the module's version, and blocked."""
    files = on_bus(FIRST, "10de", "nvidia")
    line = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {module}  Release Build"
    files["/proc/driver/nvidia/version"] = line
    situation = seen(recorded(files, {}, nvml_start="version_mismatch"), engine())
    found = blocker(situation.machine)
    assert found is not None
    assert found.id == "driver_mismatch"
    assert found.evidence["driver"] == f"nvidia {module}"
    assert "engine_sees_no_gpu" not in ids(situation)
    assert "cuda_without_card" not in ids(situation)


@pytest.mark.parametrize("start", ["driver_not_loaded", "version_mismatch"])
def test_a_driver_that_does_not_answer_is_named(start: str) -> None:
    """The kernel has the driver, NVML says it is not there: never silence."""
    situation = seen(recorded(on_bus(FIRST, "10de", "nvidia"), {}, nvml_start=start), engine())
    found = {"driver_not_loaded": "card_not_answering", "version_mismatch": "driver_mismatch"}
    assert found[start] in ids(situation)


# --- C10: split cards ---------------------------------------------------------------------------


def test_a_split_card_is_budgeted_by_its_part() -> None:
    """The part's memory counts, the whole card takes no power limit, absent busy time is no 0."""
    part = {
        "nvmlDeviceGetUUID()": "MIG-1",
        "nvmlDeviceGetName()": "NVIDIA A100 MIG 2g.10gb",
        "nvmlDeviceGetMemoryInfo(33554472)": {"total": 10 * GIB, "free": 9 * GIB, "used": GIB},
    }
    whole = nvml_card(
        FIRST,
        nvmlDeviceGetName="NVIDIA A100-SXM4-40GB",
        nvmlDeviceGetMigMode=[1, 1],
        nvmlDeviceGetMaxMigDeviceCount=7,
        nvmlDeviceGetUtilizationRates="!not_supported",
    )
    whole |= {f"{name}@mig:0:pci:0000{FIRST}": value for name, value in part.items()}
    listed = engine(device("CUDA0", "NVIDIA A100", pci_id=FIRST, total=10 * GIB, free=9 * GIB))
    situation = seen(recorded(on_bus(FIRST, "10de", "nvidia"), whole), listed)
    (found,) = search_devices(situation.machine)
    assert found.total_bytes == 10 * GIB
    parent = next(g for g in situation.machine.gpus if g.info and g.info.mig == "parent")
    assert parent.info is not None
    assert parent.info.power_limit_settable is False
    assert situation.reading(parent, "busy_pct") is None


# --- C11: sleep ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["suspended", "suspending", "resuming"])
def test_a_sleeping_card_is_asked_nothing(status: str) -> None:
    """Its identity comes from the kernel; no reading is taken, and none is shown."""
    files = on_bus(FIRST, "10de", "nvidia", power__runtime_status=status)
    situation = seen(recorded(files, nvml_card(FIRST)))
    (sample,) = situation.samples[the_gpu(situation).key]
    assert sample.power_state is PowerState.ASLEEP
    assert sample.temp_c is None
    assert "gpu_asleep" in ids(situation)
    assert "now: asleep" in text_of(situation, the_gpu(situation))


# --- C12, C17: several names, processors' GPUs --------------------------------------------------


def test_the_card_is_used_although_the_processors_gpu_comes_first() -> None:
    """Vulkan0 inside the processor, Vulkan1 the card, Vulkan2 the CPU: kind decides, not order."""
    inside, card_id = "0000:0f:00.0", "0000:03:00.0"
    files = on_bus(inside, "1002", "amdgpu", device="164e", card="card1")
    files |= on_bus(card_id, "1002", "amdgpu", device="744c", card="card0")
    listed = engine(
        device("Vulkan0", "AMD Ryzen 9 7900X (RADV RAPHAEL)", kind=GpuKind.INTEGRATED,
               pci_id=inside, total=30 * GIB, free=30 * GIB),
        device("Vulkan1", "AMD Radeon RX 7900 XTX (RADV NAVI31)", pci_id=card_id, total=24 * GIB),
        device("Vulkan2", "llvmpipe (LLVM 15.0.7, 256 bits)", total=30 * GIB, free=30 * GIB),
    )  # fmt: skip
    situation = seen(recorded(files), listed)
    assert [d.id for d in search_devices(situation.machine)] == ["Vulkan1", "Vulkan0"]


def test_a_carve_out_is_not_the_limit() -> None:
    """512 MiB set aside by firmware: what can be had is bounded by the RAM that is free."""
    inside = "0000:c5:00.0"
    files = on_bus(inside, "1002", "amdgpu", device="1586", mem_info_vram_total=str(GIB // 2))
    names: tuple[EngineDevice, ...] = (
        device("ROCm0", "AMD Radeon", kind=GpuKind.INTEGRATED, pci_id=inside, total=GIB // 2,
               free=GIB // 4),
        device("Vulkan0", "AMD Radeon (RADV)", kind=GpuKind.INTEGRATED, pci_id=inside,
               total=28 * GIB, free=28 * GIB),
    )  # fmt: skip
    situation = seen(recorded(files), engine(*names, backends=("ROCm", "Vulkan")))
    (found,) = search_devices(situation.machine)
    assert found.id == "Vulkan0"
    assert found.free_bytes > 20 * GIB
    assert "memory_low" not in ids(situation)


# --- C15: cards of two sizes --------------------------------------------------------------------


def test_cards_of_two_sizes_are_told_apart_by_address() -> None:
    """CUDA lists the faster card first, NVML the other one: each name stays with its card."""
    files = on_bus(FIRST, "10de", "nvidia") | on_bus(SECOND, "10de", "nvidia")
    small = nvml_card(FIRST, nvmlDeviceGetName="NVIDIA GeForce RTX 2080 Ti")
    large = nvml_card(
        SECOND,
        **{"nvmlDeviceGetName": "NVIDIA GeForce RTX 4090",
           "nvmlDeviceGetMemoryInfo(33554472)": {"total": 24 * GIB, "free": 23 * GIB, "used": GIB}},
    )  # fmt: skip
    listed = engine(
        device("CUDA0", "NVIDIA GeForce RTX 4090", pci_id=SECOND, total=24 * GIB, free=23 * GIB),
        device("CUDA1", "NVIDIA GeForce RTX 2080 Ti", pci_id=FIRST),
    )
    situation = seen(recorded(files, small | large), listed)
    names = {g.info.name: g.engine[0].name for g in cards(situation.machine) if g.info}
    assert names == {"NVIDIA GeForce RTX 4090": "CUDA0", "NVIDIA GeForce RTX 2080 Ti": "CUDA1"}
    assert "unequal_cards" in ids(situation)


def test_two_equal_cards_without_addresses_are_not_guessed() -> None:
    """Where an engine gives no address, two cards of one name stay unmatched, and that is said."""
    files = on_bus(FIRST, "10de", "nvidia") | on_bus(SECOND, "10de", "nvidia")
    name = "NVIDIA GeForce RTX 4060"
    listed = engine(device("CUDA0", name), device("CUDA1", name))
    situation = seen(recorded(files, nvml_card(FIRST) | nvml_card(SECOND)), listed)
    unmatched = [g for g in situation.machine.gpus if g.unmatched == "ambiguous_name"]
    assert len(unmatched) == 2
    assert "unmatched_device" in ids(situation)


# --- D09: time limits of kernels ----------------------------------------------------------------


def test_a_new_kernels_short_limit_is_a_hint_on_the_card_that_computes() -> None:
    """Two seconds since kernel 7: said for a card, not for the processor's GPU beside it."""
    limits = {
        "/sys/module/amdgpu/parameters/lockup_timeout": "",
        "/proc/sys/kernel/osrelease": "7.0.3",
    }
    files = on_bus("0000:03:00.0", "1002", "amdgpu", device="744c", card="card0") | limits
    assert "short_compute_timeout" in ids(seen(recorded(files)))
    inside = on_bus("0000:0f:00.0", "1002", "amdgpu", device="164e", card="card1")
    nvidia = on_bus(FIRST, "10de", "nvidia")
    beside = seen(recorded(inside | nvidia | limits, nvml_card(FIRST)))
    assert "short_compute_timeout" not in ids(beside)
