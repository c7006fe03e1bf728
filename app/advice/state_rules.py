"""Rules on what slows a machine down now: power, heat, memory, link, processor."""

from collections.abc import Iterator

from app.advice.rule import Evidence, Rule, Situation, cards, gib, kind, mib, name_of, seconds
from app.domain.finding import Actor, Severity
from app.domain.machine import OWN_ENGINE, GpuKind, PowerSource

THERMAL = ("hw_thermal", "sw_thermal")
NEAR_SLOWDOWN_C = 5.0
POWER_SHARE_PCT, HEAT_SHARE_PCT = 20.0, 5.0
"""Shares of the time from which a limit is worth a word; a blip at a change of clocks is not."""
BUSY_PCT = 50.0
BELOW_DEFAULT_FRAC = 0.95
OTHER_PROGRAM_BYTES = 1 << 30
SWAP_BYTES = 1 << 30
LITTLE_RAM_FRAC = 0.1
SHORT_TIMEOUT_MS = 2_000
AMPERE = 8


def on_battery(now: Situation) -> Iterator[Evidence]:
    """Battery power changes speed by tens of per cent."""
    if now.machine.host.power_source is PowerSource.BATTERY:
        charge = now.machine.host.battery_pct
        yield {"battery_pct": None if charge is None else round(charge)}


def saver_mode(now: Situation) -> Iterator[Evidence]:
    """A power-saving mode lowers the card's limit as well."""
    if now.machine.host.power_mode == "saver":
        yield {}


def power_limit_fixed(now: Situation) -> Iterator[Evidence]:
    """The firmware owns the limit of a laptop's card."""
    for gpu in cards(now.machine, "nvidia"):
        info, limit = gpu.info, now.reading(gpu, "power_limit_w")
        fixed = info is not None and info.power_limit_settable is False and info.mig is None
        if fixed and limit is not None:
            yield {"gpu": name_of(gpu), "limit_w": limit}


def power_limit_lowered(now: Situation) -> Iterator[Evidence]:
    """Another tool, or the firmware, keeps the card below its default."""
    for gpu in cards(now.machine):
        default = gpu.info.power_limit_default_w if gpu.info is not None else None
        limit = now.reading(gpu, "power_limit_w")
        if default and limit and limit < default * BELOW_DEFAULT_FRAC:
            yield {"gpu": name_of(gpu), "limit_w": limit, "default_w": default}


def at_power_limit(now: Situation) -> Iterator[Evidence]:
    """Running at the power limit is the normal state under load."""
    for gpu in now.machine.gpus:
        if now.held_back(gpu, ("sw_power_cap",), POWER_SHARE_PCT):
            yield {
                "gpu": name_of(gpu),
                "power_w": now.reading(gpu, "power_w"),
                "limit_w": now.reading(gpu, "power_limit_w"),
            }


def too_hot(now: Situation) -> Iterator[Evidence]:
    """The device itself says that temperature slows it down."""
    for gpu in now.machine.gpus:
        if now.held_back(gpu, THERMAL, HEAT_SHARE_PCT):
            yield {"gpu": name_of(gpu), "temp_c": now.reading(gpu, "temp_c")}


def near_slowdown(now: Situation) -> Iterator[Evidence]:
    """Little is left until the device's own slowdown temperature."""
    for gpu in now.machine.gpus:
        margin, temp = now.reading(gpu, "temp_margin_c"), now.reading(gpu, "temp_c")
        limit = gpu.info.temp_slowdown_c if gpu.info is not None else None
        if margin is None and limit is not None and temp is not None:
            margin = limit - temp
        hot = now.held_back(gpu, THERMAL, HEAT_SHARE_PCT)
        if margin is not None and margin <= NEAR_SLOWDOWN_C and not hot:
            yield {"gpu": name_of(gpu), "temp_c": temp, "margin_c": max(0.0, margin)}


def power_brake(now: Situation) -> Iterator[Evidence]:
    """Power supply or board pulls the emergency brake."""
    for gpu in now.machine.gpus:
        if now.held_back(gpu, ("hw_power_brake",), HEAT_SHARE_PCT):
            yield {"gpu": name_of(gpu)}


def weak_adapter(now: Situation) -> Iterator[Evidence]:
    """The adapter cannot feed the card: the firmware lowers its limit."""
    for gpu in now.machine.gpus:
        told = (sample.adapter for sample in now.samples.get(gpu.key, ()))
        if "undersized" in told:
            yield {"gpu": name_of(gpu), "limit_w": now.reading(gpu, "power_limit_w")}


def memory_low(now: Situation) -> Iterator[Evidence]:
    """Less is free than should stay free. A processor's carve-out is no such limit."""
    for gpu in now.machine.gpus:
        free = now.reading(gpu, "vram_free_bytes")
        card = kind(gpu) is GpuKind.DISCRETE and (gpu.info is None or gpu.info.mig != "parent")
        if card and free is not None and free < now.headroom(gpu):
            yield {
                "gpu": name_of(gpu),
                "free_mib": mib(free),
                "headroom_mib": mib(now.headroom(gpu)),
            }


def memory_taken(now: Situation) -> Iterator[Evidence]:
    """A program holds a lot of a card's memory."""
    for gpu in cards(now.machine):
        lists = (s.processes for s in now.samples.get(gpu.key, ()) if s.processes)
        for program in next(iter(lists), ()):
            if program.name == OWN_ENGINE or program.vram_bytes is None:
                continue
            if program.vram_bytes >= OTHER_PROGRAM_BYTES:
                yield {
                    "gpu": name_of(gpu),
                    "program": program.name or f"pid {program.pid}",
                    "used_mib": mib(program.vram_bytes),
                }


def little_ram(now: Situation) -> Iterator[Evidence]:
    """Little RAM left makes the system swap while weights are read."""
    host = now.machine.host
    available, total = host.ram_available_bytes, host.ram_bytes
    if available is not None and total and available < total * LITTLE_RAM_FRAC:
        yield {"available_mib": mib(available), "total_mib": mib(total)}


def swapping(now: Situation) -> Iterator[Evidence]:
    """The system already swaps."""
    used = now.host_sample.swap_used_bytes if now.host_sample is not None else None
    if used is not None and used > SWAP_BYTES:
        yield {"swap_gib": gib(used)}


def rebar_off_arc(now: Situation) -> Iterator[Evidence]:
    """Intel's cards lose much speed without Resizable BAR."""
    for gpu in cards(now.machine, "intel"):
        if gpu.info is not None and gpu.info.resizable_bar is False:
            yield {"gpu": name_of(gpu)}


def rebar_off(now: Situation) -> Iterator[Evidence]:
    """Other cards load faster with it; generated tokens hardly change."""
    for gpu in cards(now.machine):
        info = gpu.info
        if info is None or info.vendor == "intel" or info.external:
            continue
        if info.resizable_bar is False and not _is_older_than_ampere(info.compute_capability):
            yield {"gpu": name_of(gpu)}


def narrow_link(now: Situation) -> Iterator[Evidence]:
    """Fewer lanes, or a lower generation, than card and slot can do, seen under load.

    Not inside a laptop, whose maker wired the lanes, nor for a card on a cable: behind Thunderbolt
    a link calls itself Gen 1, whatever the cable carries.
    """
    for gpu in cards(now.machine):
        info, busy = gpu.info, now.reading(gpu, "busy_pct")
        width, generation = now.reading(gpu, "pcie_width"), now.reading(gpu, "pcie_gen")
        if info is None or busy is None or busy < BUSY_PCT or width is None or generation is None:
            continue
        if now.machine.host.is_laptop or info.external:
            continue
        wide, fast = info.pcie_width_max, info.pcie_gen_max
        if (wide is not None and width < wide) or (fast is not None and generation < fast):
            yield {
                "gpu": name_of(gpu), "width": int(width), "gen": int(generation),
                "width_max": wide, "gen_max": fast,
            }  # fmt: skip


def slot_limits(now: Situation) -> Iterator[Evidence]:
    """The slot is of an older generation than the card."""
    for gpu in cards(now.machine):
        info = gpu.info
        if info is None or info.pcie_gen_max is None or info.pcie_gen_device_max is None:
            continue
        if info.pcie_gen_max < info.pcie_gen_device_max:
            yield {
                "gpu": name_of(gpu), "slot": info.pcie_gen_max, "card": info.pcie_gen_device_max,
            }  # fmt: skip


def no_avx(now: Situation) -> Iterator[Evidence]:
    """A processor without AVX runs the CPU part on the slowest kernels."""
    features = now.machine.host.cpu_features
    x86 = now.machine.host.cpu_name is not None and not _is_arm(now)
    if features is not None and x86 and "avx" not in features:
        yield {"cpu": now.machine.host.cpu_name}


def no_avx2(now: Situation) -> Iterator[Evidence]:
    """AVX without AVX2."""
    features = now.machine.host.cpu_features
    if features is not None and "avx" in features and "avx2" not in features:
        yield {"cpu": now.machine.host.cpu_name}


def hybrid_cpu(now: Situation) -> Iterator[Evidence]:
    """Fast and slow cores: the slow ones often hold the fast ones up."""
    host = now.machine.host
    if host.cores_performance and host.cores_efficiency:
        yield {"fast": host.cores_performance, "slow": host.cores_efficiency}


def several_nodes(now: Situation) -> Iterator[Evidence]:
    """RAM on several nodes: reading across them is slower."""
    nodes = now.machine.host.numa_nodes
    if nodes is not None and nodes > 1:
        yield {"nodes": nodes}


def driver_unloads(now: Situation) -> Iterator[Evidence]:
    """Without persistence mode a headless card's driver is unloaded after every program.

    A card with a display is always in use, and a laptop's card should sleep.
    """
    if now.machine.host.is_laptop:
        return
    known = ((gpu, gpu.info) for gpu in cards(now.machine, "nvidia") if gpu.info is not None)
    names = [name_of(g) for g, i in known if i.persistence is False and i.drives_display is False]
    if names:
        yield {"gpu": ", ".join(dict.fromkeys(names))}


def one_memory_module(now: Situation) -> Iterator[Evidence]:
    """One module means one channel: half the bandwidth for layers in RAM."""
    host = now.machine.host
    if host.ram_modules == 1 and host.ram_slots is not None and host.ram_slots > 1:
        yield {"speed_mt_s": host.ram_speed_mt_s, "slots": host.ram_slots}


def in_container(now: Situation) -> Iterator[Evidence]:
    """Limits of a container count, not the machine's size."""
    host = now.machine.host
    if host.virtualization == "container":
        yield {"cores": host.cores_logical, "ram_mib": mib(host.ram_bytes or 0)}


def in_wsl(now: Situation) -> Iterator[Evidence]:
    """WSL2: Windows' drivers and settings count, and RAM is a part of the machine's."""
    if now.machine.host.virtualization == "wsl2":
        yield {"ram_mib": mib(now.machine.host.ram_bytes or 0)}


def short_compute_timeout(now: Situation) -> Iterator[Evidence]:
    """The kernel driver resets compute jobs after a few seconds only."""
    has_card = any(cards(now.machine))
    for gpu in now.machine.gpus:
        limit = gpu.info.compute_timeout_ms if gpu.info is not None else None
        # A processor's GPU beside a card does not compute.
        is_used = kind(gpu) is GpuKind.DISCRETE or not has_card
        if is_used and limit is not None and limit <= SHORT_TIMEOUT_MS:
            yield {"gpu": name_of(gpu), "limit_s": seconds(limit)}


def _is_older_than_ampere(compute_capability: str | None) -> bool:
    """NVIDIA's cards have Resizable BAR since then."""
    major = (compute_capability or "").split(".")[0]
    return major.isdigit() and int(major) < AMPERE


def _is_arm(now: Situation) -> bool:
    return bool({"neon", "dotprod", "i8mm", "sve"} & set(now.machine.host.cpu_features or ()))


INFO, HINT, WARNING, PROBLEM = Severity
RIGTUNE, USER, NOBODY = Actor
STATE_RULES = (
    Rule("on_battery", WARNING, USER, "NVIDIA driver README, Dynamic Boost", on_battery),
    Rule("saver_mode", HINT, USER, "NixOS/nixos-hardware PR 1325", saver_mode),
    Rule(
        "power_limit_fixed",
        INFO,
        NOBODY,
        "NVIDIA/open-gpu-kernel-modules issue 483",
        power_limit_fixed,
    ),
    Rule(
        "power_limit_lowered", INFO, USER, "amdgpu hwmon; NVML enforced limit", power_limit_lowered
    ),
    Rule(
        "at_power_limit",
        INFO,
        NOBODY,
        "nvml.h, clock event reasons; flightlessmango/MangoHud issue 1736",
        at_power_limit,
    ),
    Rule("too_hot", WARNING, RIGTUNE, "nvml.h, clock event reasons", too_hot),
    Rule("near_slowdown", HINT, RIGTUNE, "nvml.h, temperature thresholds", near_slowdown),
    Rule("power_brake", PROBLEM, USER, "nvml.h, clock event reasons", power_brake),
    Rule("weak_adapter", WARNING, USER, "nvml.h, nvmlDeviceGetPowerSource", weak_adapter),
    Rule(
        "memory_low",
        WARNING,
        USER,
        "llama.cpp tools/fit-params/README.md; measured growth at first use",
        memory_low,
    ),
    Rule("memory_taken", HINT, USER, "NVML, DRM fdinfo and Windows counters", memory_taken),
    Rule("little_ram", WARNING, USER, "Linux MemAvailable", little_ram),
    Rule("swapping", HINT, USER, "operating system's swap figures", swapping),
    Rule(
        "rebar_off_arc",
        HINT,
        USER,
        "Microsoft resizable-bar-support; Intel Arc requirements",
        rebar_off_arc,
    ),
    Rule("rebar_off", INFO, USER, "Microsoft resizable-bar-support", rebar_off),
    Rule("narrow_link", HINT, USER, "nvml.h, PCIe link queries", narrow_link),
    Rule("slot_limits", INFO, NOBODY, "nvml.h, PCIe link queries", slot_limits),
    Rule("no_avx", WARNING, NOBODY, "ollama/ollama issue 2332", no_avx),
    Rule("no_avx2", INFO, NOBODY, "ggml CPU variants", no_avx2),
    Rule(
        "hybrid_cpu",
        INFO,
        RIGTUNE,
        "Linux cpu_core and cpu_atom; Windows EfficiencyClass",
        hybrid_cpu,
    ),
    Rule("several_nodes", INFO, RIGTUNE, "ggml-org/llama.cpp issue 1437", several_nodes),
    Rule("driver_unloads", INFO, USER, "nvml.h, nvmlDeviceGetPersistenceMode", driver_unloads),
    Rule("one_memory_module", HINT, USER, "SMBIOS memory devices", one_memory_module),
    Rule("in_container", INFO, RIGTUNE, "Linux control groups", in_container),
    Rule("in_wsl", INFO, USER, "microsoft/WSL issue 11050", in_wsl),
    Rule(
        "short_compute_timeout",
        HINT,
        RIGTUNE,
        "ggml-org/llama.cpp issues 25664 and 27076",
        short_compute_timeout,
    ),
)
