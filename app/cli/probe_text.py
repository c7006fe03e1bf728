"""A machine in words: rows and details that `rigtune probe` and `rigtune doctor` print."""

from app.advice.text import catalogue, show
from app.domain.machine import (
    GpuInfo,
    GpuKind,
    GpuSample,
    HostInfo,
    PowerSource,
    PowerState,
    WindowsSettings,
)
from app.domain.units import MISSING, counted, format_bytes

SOURCES = {
    "default": "Windows default",
    "registry": "set in the registry",
    "wrong_type": "Windows default, because the registry's value is no DWORD",
}

LOOKED_FOR = {
    "busy_pct": "busy time",
    "vram_used_bytes": "memory in use",
    "temp_c": "temperature",
    "power_w": "power",
}
"""What people look for first: its absence is said with the reason."""
THROTTLE_WORDS = {
    "sw_power_cap": "its power limit (normal under load)",
    "sw_thermal": "its temperature",
    "hw_thermal": "a critical temperature",
    "hw_slowdown": "a hardware slowdown",
    "hw_power_brake": "a power brake of supply or board",
    "app_clocks": "a clock setting",
    "sync_boost": "the slowest card of its group",
    "display_clocks": "the display's clocks",
}
MIZER_WORDS = {
    "adaptive": "adaptive",
    "maximum": "prefer maximum performance",
    "auto": "automatic",
    "consistent": "prefer consistent performance",
}
"""NVIDIA's own names for how eagerly its driver lowers clocks."""
UNMATCHED_WORDS = {
    "no_probe_sees_it": "no driver tells its readings",
    "ambiguous_name": "several GPUs are called alike",
    "ambiguous_instance": "several parts of a split card are alike",
}
SPEED_HIDDEN = "speed readable by root only (sudo dmidecode -t 17)"
"""Linux keeps the firmware's table of memory modules to root."""
POWER_WORDS = {
    PowerSource.AC: "mains",
    PowerSource.BATTERY: "battery",
    PowerSource.UNKNOWN: "source unknown",
}


def host_rows(host: HostInfo) -> list[list[str]]:
    """Return names and values of CPU, RAM and power."""
    system = " ".join(x for x in (host.os, host.os_version, host.virtualization) if x)
    rows = [
        ["System", system],
        ["CPU", f"{host.cpu_name or MISSING} ({_cores(host)})"],
        ["RAM", _ram(host)],
        ["Power", _power(host)],
    ]
    if host.cpu_features:
        rows.insert(2, ["", f"with {', '.join(host.cpu_features)}"])
    if host.gpu_mode is not None:
        rows.append(["Graphics mode", host.gpu_mode])
    return rows


def timeout_rows(settings: WindowsSettings) -> list[list[str]]:
    """Return the timeout values of Windows as found or default."""
    rows = []
    for value in settings.timeouts:
        found = f" ({value.found})" if value.source == "wrong_type" else ""
        shown = f"{value.effective} {value.unit}".strip()
        rows.append([value.name, f"{shown}, {SOURCES[value.source]}{found}"])
    if settings.tcc_timeout:
        rows.append(["TccTimeout", "unknown to Windows, has no effect"])
    rows.append(["Hardware scheduling", settings.gpu_scheduling or MISSING])
    count = MISSING if settings.resets is None else str(len(settings.resets))
    rows.append(["Driver resets in the event log", count])
    return rows


def gpu_details(info: GpuInfo | None, reading: GpuSample | None) -> list[str]:
    """Return lines of what a GPU is, what it does now, and what cannot be read of it and why."""
    lines = (
        "; ".join(_identity(info)) if info is not None else "",
        f"now: {'; '.join(_now(reading))}" if reading is not None else "",
        f"not readable: {_unread(reading)}" if reading is not None and _unread(reading) else "",
    )
    return [line for line in lines if line and line != "now: "]


def memory_text(info: GpuInfo | None, total_bytes: int | None) -> str:
    """Return a GPU's memory; of one inside a processor the RAM that it may use."""
    if info is not None and info.kind is GpuKind.INTEGRATED:
        shared = total_bytes or info.shared_total_bytes
        return f"{format_bytes(shared)} of RAM" if shared else MISSING
    return format_bytes(total_bytes)


def _identity(info: GpuInfo) -> list[str]:
    link = (
        f"PCIe {info.pcie_gen_max} x{info.pcie_width_max} possible"
        if info.pcie_gen_max is not None and info.pcie_width_max is not None
        else None
    )
    rebar = {True: "Resizable BAR on", False: "Resizable BAR off", None: None}[info.resizable_bar]
    phrases = (
        f"at {info.pci_id}" if info.pci_id is not None else None,
        f"Windows adapter {info.luid}" if info.luid is not None and info.pci_id is None else None,
        "drives a display" if info.drives_display else None,
        "external" if info.external else None,
        "may sleep when idle" if info.may_sleep else None,
        f"MIG {info.mig}" if info.mig is not None else None,
        f"driver model {info.driver_model.upper()}" if info.driver_model is not None else None,
        f"compute capability {info.compute_capability}" if info.compute_capability else None,
        counted(info.n_cores, "core") if info.n_cores else None,
        f"core clock up to {show(info.clock_max_mhz)} MHz" if info.clock_max_mhz else None,
        f"{info.memory_bus_bits}-bit memory" if info.memory_bus_bits else None,
        f"at most {info.memory_gb_s:.0f} GB/s" if info.memory_gb_s else None,
        "memory error correction on" if info.ecc else None,
        f"CUDA {info.cuda_version} at most" if info.cuda_version else None,
        _shared(info),
        rebar,
        link,
        f"{counted(info.n_nvlinks, 'NVLink')} up" if info.n_nvlinks else None,
        _limits(info),
        _temperatures(info),
        {True: "driver stays loaded", False: "driver unloads when unused", None: None}[
            info.persistence
        ],
        f"compute jobs end after {show(info.compute_timeout_ms / 1000)} s"
        if info.compute_timeout_ms is not None
        else None,
    )
    return [phrase for phrase in phrases if phrase]


def _shared(info: GpuInfo) -> str | None:
    if info.kind is GpuKind.INTEGRATED:
        carved = info.vram_total_bytes
        return f"{format_bytes(carved)} set aside by firmware" if carved else None
    shared = info.shared_total_bytes
    return f"{format_bytes(shared)} of RAM shared" if shared else None


def _limits(info: GpuInfo) -> str | None:
    low, high = info.power_limit_min_w, info.power_limit_max_w
    if info.power_limit_settable is False:
        return "power limit not adjustable"
    return None if low is None or high is None else f"power limit {show(low)}–{show(high)} W"


def _temperatures(info: GpuInfo) -> str | None:
    """Return at which temperatures the firmware steps in."""
    steps = (("slows down at", info.temp_slowdown_c), ("switches off at", info.temp_shutdown_c))
    words = [f"{what} {celsius:.0f} °C" for what, celsius in steps if celsius is not None]
    return ", ".join(words) or None


def _fan(reading: GpuSample) -> str | None:
    duty = None if reading.fan_pct is None else f"{reading.fan_pct:.0f} %"
    turns = None if reading.fan_rpm is None else f"{reading.fan_rpm:.0f} rpm"
    shown = " at ".join(x for x in (duty, turns) if x)
    return f"fan {shown}" if shown else None


def _now(reading: GpuSample) -> list[str]:
    if reading.power_state is PowerState.ASLEEP:
        return ["asleep"]
    parts = (
        ("busy", reading.busy_pct, "%"),
        ("", reading.temp_c, "°C"),
        ("", reading.power_w, "W"),
        ("limit", reading.power_limit_w, "W"),
        ("", reading.clock_mhz, "MHz"),
    )
    phrases = [
        f"{name} {show(value)} {unit}".strip() for name, value, unit in parts if value is not None
    ]
    if reading.pcie_gen is not None and reading.pcie_width is not None:
        phrases.append(f"PCIe {reading.pcie_gen} x{reading.pcie_width}")
    if reading.shared_used_bytes is not None:
        phrases.append(f"{format_bytes(reading.shared_used_bytes)} of shared memory used")
    if (fan := _fan(reading)) is not None:
        phrases.append(fan)
    if reading.power_mizer is not None:
        mode = MIZER_WORDS.get(reading.power_mizer, reading.power_mizer)
        phrases.append(f"driver's power mode: {mode}")
    if reading.memory_errors:
        phrases.append(f"{counted(reading.memory_errors, 'memory error')} not corrected")
    if reading.adapter == "undersized":
        phrases.append("its power adapter is too weak")
    if reading.throttle:
        words = (THROTTLE_WORDS.get(r, r.replace("_", " ")) for r in reading.throttle)
        phrases.append(f"limited by {', '.join(words)}")
    return phrases


def _unread(reading: GpuSample) -> str:
    """Return what is looked for on every GPU and could not be read, with the reason."""
    if reading.power_state is PowerState.ASLEEP:
        return ""
    by_reason: dict[str, list[str]] = {}
    for field, name in LOOKED_FOR.items():
        reason = reading.missing.get(field)
        if reason is not None and getattr(reading, field) is None:
            by_reason.setdefault(reason, []).append(name)
    return "; ".join(
        f"{', '.join(names)} ({_reason(reason)})" for reason, names in by_reason.items()
    )


def _reason(code: str) -> str:
    known = catalogue("en")["absence"]
    return known.get(code, code.replace("_", " "))


def _cores(host: HostInfo) -> str:
    cores = f"{_counted(host.cores_physical, 'core')}, {_counted(host.cores_logical, 'thread')}"
    if host.cores_performance and host.cores_efficiency:
        cores += f", {host.cores_performance} fast and {host.cores_efficiency} slow"
    cores += f", {format_bytes(host.l3_bytes)} L3" if host.l3_bytes else ""
    return cores + (f", {host.numa_nodes} NUMA nodes" if (host.numa_nodes or 1) > 1 else "")


def _counted(n: int | None, noun: str) -> str:
    return f"{MISSING} {noun}s" if n is None else counted(n, noun)


def _ram(host: HostInfo) -> str:
    kind = f" {host.ram_type}" if host.ram_type else ""
    text = (
        f"{format_bytes(host.ram_bytes)}{kind}, {format_bytes(host.ram_available_bytes)} available"
    )
    if host.ram_speed_mt_s is not None:
        slots = f"{host.ram_modules} of {counted(host.ram_slots or 0, 'slot')} filled"
        text += f", {host.ram_speed_mt_s} MT/s, {slots}"
    elif host.missing.get("ram_speed_mt_s") == "no_permission":
        text += f", {SPEED_HIDDEN}"
    return text + (f", swap {format_bytes(host.swap_bytes)}" if host.swap_bytes else "")


def _power(host: HostInfo) -> str:
    charge = f" {host.battery_pct:.0f} %" if host.battery_pct is not None else ""
    on_mains = host.power_source is not PowerSource.BATTERY
    battery = f", battery{charge}" if charge and on_mains else charge
    mode = f", {host.power_mode} mode" if host.power_mode is not None else ""
    return f"{POWER_WORDS[host.power_source]}{battery}{mode}"
