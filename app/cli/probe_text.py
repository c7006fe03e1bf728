"""A machine in words: rows and details that `rigtune probe` and `rigtune doctor` print."""

from app.advice.text import show
from app.domain.machine import GpuInfo, GpuSample, HostInfo, PowerState, WindowsSettings
from app.domain.units import MISSING, format_bytes

SOURCES = {
    "default": "Windows default",
    "registry": "set in the registry",
    "wrong_type": "not a DWORD in the registry, so the default",
}


def host_rows(host: HostInfo) -> list[list[str]]:
    """Return names and values of CPU, RAM and power."""
    system = " ".join(x for x in (host.os, host.os_version, host.virtualization) if x)
    rows = [
        ["System", system],
        ["CPU", f"{host.cpu_name or MISSING} ({_cores(host)})"],
        ["", ", ".join(host.cpu_features or ()) or MISSING],
        ["RAM", _ram(host)],
        ["Power", _power(host)],
    ]
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
    """Return what is known of a GPU, as short phrases; unknown things are left out."""
    return [*(_identity(info) if info is not None else ()), *(_now(reading) if reading else ())]


def _identity(info: GpuInfo) -> list[str]:
    link = (
        f"PCIe {info.pcie_gen_max} x{info.pcie_width_max} possible"
        if info.pcie_gen_max is not None and info.pcie_width_max is not None
        else None
    )
    rebar = {True: "Resizable BAR on", False: "Resizable BAR off", None: None}[info.resizable_bar]
    phrases = (
        info.pci_id,
        "drives a display" if info.drives_display else None,
        "external" if info.external else None,
        f"MIG {info.mig}" if info.mig is not None else None,
        f"driver model {info.driver_model.upper()}" if info.driver_model is not None else None,
        f"compute capability {info.compute_capability}" if info.compute_capability else None,
        f"CUDA {info.cuda_version} at most" if info.cuda_version else None,
        f"{format_bytes(info.shared_total_bytes)} shared" if info.shared_total_bytes else None,
        rebar,
        link,
        _limits(info),
        f"compute jobs end after {show(info.compute_timeout_ms / 1000)} s"
        if info.compute_timeout_ms is not None
        else None,
    )
    return [phrase for phrase in phrases if phrase]


def _limits(info: GpuInfo) -> str | None:
    low, high = info.power_limit_min_w, info.power_limit_max_w
    if info.power_limit_settable is False:
        return "power limit not adjustable"
    return None if low is None or high is None else f"power limit {show(low)}–{show(high)} W"


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
    if reading.shared_used_bytes is not None:
        phrases.append(f"{format_bytes(reading.shared_used_bytes)} of shared memory used")
    if reading.throttle:
        phrases.append(f"limited by {', '.join(reading.throttle)}")
    return phrases


def _cores(host: HostInfo) -> str:
    cores = f"{host.cores_physical or MISSING} cores, {host.cores_logical or MISSING} threads"
    if host.cores_performance and host.cores_efficiency:
        cores += f", {host.cores_performance} fast and {host.cores_efficiency} slow"
    return cores + (f", {host.numa_nodes} NUMA nodes" if (host.numa_nodes or 1) > 1 else "")


def _ram(host: HostInfo) -> str:
    text = f"{format_bytes(host.ram_bytes)}, {format_bytes(host.ram_available_bytes)} available"
    if host.ram_speed_mt_s is not None:
        text += f", {host.ram_modules} of {host.ram_slots} modules at {host.ram_speed_mt_s} MT/s"
    return text + (f", swap {format_bytes(host.swap_bytes)}" if host.swap_bytes else "")


def _power(host: HostInfo) -> str:
    charge = f" {host.battery_pct:.0f} %" if host.battery_pct is not None else ""
    mode = f", {host.power_mode} mode" if host.power_mode is not None else ""
    return f"{host.power_source.value}{charge}{mode}"
