"""Turns raw readings into records: a value that cannot be true becomes absent, with the reason.

Drivers answer with wrong sentinels (17179869184 GiB), NaN, negative numbers and parts larger
than the whole. Every probe builds its records here, so none of that reaches a surface.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from app.domain.machine import MAX_MEMORY_BYTES, GpuInfo, GpuProcess, GpuSample, PowerState


class Absence(StrEnum):
    """Why a reading is not there. Stable wire values, shown to the user by their text."""

    NOT_SUPPORTED = "not_supported"
    NO_PERMISSION = "no_permission"
    ASLEEP = "asleep"
    RELEASED = "released"
    LOST = "lost"
    STALE = "stale"
    NO_POWER = "no_power"
    DAMAGED = "damaged"
    LIB_MISSING = "lib_missing"
    DRIVER_NOT_LOADED = "driver_not_loaded"
    VERSION_MISMATCH = "version_mismatch"
    SYMBOL_MISSING = "symbol_missing"
    NO_DATA = "no_data"
    NOT_APPLICABLE = "not_applicable"
    IMPLAUSIBLE = "implausible"
    ERROR = "error"


def reason_of(text: str) -> Absence:
    """Return the reason that a recording names; a text that is none stands for an error."""
    return Absence(text) if text in set(Absence) else Absence.ERROR


MEMORY = (0, MAX_MEMORY_BYTES)
PERCENT = (0, 100)
TEMPERATURE = (1, 150)

SAMPLE_RANGES: dict[str, tuple[float, float]] = {
    "busy_pct": PERCENT,
    "mem_busy_pct": PERCENT,
    "vram_used_bytes": MEMORY,
    "vram_free_bytes": MEMORY,
    "shared_used_bytes": MEMORY,
    "temp_c": TEMPERATURE,
    "temp_memory_c": TEMPERATURE,
    "temp_margin_c": (-50, 150),
    # Nothing that is awake draws nothing: 0 stands for "no sensor".
    "power_w": (0.01, 3000),
    "power_limit_w": (1, 3000),
    "clock_mhz": (0, 6000),
    "clock_memory_mhz": (0, 40000),
    # An intended duty may exceed 100 on some boards (NVML documentation).
    "fan_pct": (0, 150),
    "fan_rpm": (0, 30_000),
    "memory_errors": (0, 1 << 40),
    "energy_j": (0, 1e13),
    "pcie_gen": (1, 8),
    "pcie_width": (1, 32),
    # A Gen 6 x16 link moves 121 GB/s.
    "pcie_rx_bytes_s": (0, 2e11),
    "pcie_tx_bytes_s": (0, 2e11),
}
INFO_RANGES: dict[str, tuple[float, float]] = {
    "vram_total_bytes": (1, MAX_MEMORY_BYTES),
    "shared_total_bytes": (1, MAX_MEMORY_BYTES),
    "pcie_gen_max": (1, 8),
    "pcie_width_max": (1, 32),
    "power_limit_min_w": (0, 3000),
    "power_limit_max_w": (1, 3000),
    "power_limit_default_w": (1, 3000),
    "temp_slowdown_c": (30, 150),
    "vram_budget_bytes": (1, MAX_MEMORY_BYTES),
    "bar_bytes": (1, MAX_MEMORY_BYTES),
    "pcie_gen_device_max": (1, 8),
    "numa_node": (0, 1024),
    "compute_timeout_ms": (1, 1e9),
    "clock_max_mhz": (1, 6000),
    "temp_shutdown_c": (30, 150),
    "n_fans": (0, 16),
    "n_nvlinks": (0, 64),
    "n_cores": (1, 1e6),
    "memory_bus_bits": (8, 1 << 16),
    "memory_gb_s": (1, 100_000),
}
HOST_RANGES: dict[str, tuple[float, float]] = {
    "cores_physical": (1, 1 << 14),
    "cores_logical": (1, 1 << 14),
    "ram_bytes": (1, 1 << 50),
    "ram_available_bytes": (0, 1 << 50),
    "swap_bytes": (0, 1 << 50),
    "page_cache_bytes": (0, 1 << 50),
    "numa_nodes": (1, 1024),
    # The largest server processors have a GiB or two.
    "l3_bytes": (1 << 16, 1 << 36),
    "ram_speed_mt_s": (100, 50_000),
}
SAMPLE_TEXTS = ("adapter", "power_mizer")
INFO_TEXTS = (
    *("uuid", "name", "driver", "cuda_version", "node", "luid", "driver_model"),
    *("compute_capability", "mig", "compute_timeout_source"),
)
INFO_FLAGS = (
    *("unified_memory", "drives_display", "boot_vga", "power_limit_settable"),
    *("resizable_bar", "external", "may_sleep", "d3cold_allowed", "ecc", "persistence"),
)
WHOLE = {f for f in (*SAMPLE_RANGES, *INFO_RANGES) if f.endswith("_bytes") or "pcie_gen" in f}
WHOLE |= {"pcie_width", "pcie_width_max", "numa_node", "compute_timeout_ms"}
WHOLE |= {"n_cores", "memory_bus_bits", "n_fans", "n_nvlinks", "memory_errors"}
NOT_A_TEXT = {"", "n/a", "[n/a]", "unknown", "err!", "?", "??", "[not supported]", "none"}


def gpu_sample(
    key: str,
    t_ns: int,
    state: PowerState,
    values: Mapping[str, object],
    *,
    vram_total_bytes: int | None = None,
    shared_total_bytes: int | None = None,
    default: Absence = Absence.NOT_SUPPORTED,
) -> GpuSample:
    """Return a sample from raw ``values``; what is absent, or cannot be true, has a reason.

    Args:
        key: ``GpuInfo.key`` of the device.
        t_ns: ``time.perf_counter_ns()`` at reading.
        state: Power state read before anything else.
        values: Raw readings in the units of ``GpuSample``, or an ``Absence``.
        vram_total_bytes: Whole that dedicated readings are judged against.
        shared_total_bytes: Whole that shared readings are judged against.
        default: Reason of the fields that ``values`` does not name.
    """
    wholes = {
        "vram_used_bytes": vram_total_bytes,
        "vram_free_bytes": vram_total_bytes,
        "shared_used_bytes": shared_total_bytes,
    }
    fields: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, bounds in SAMPLE_RANGES.items():
        value = _number(name, values.get(name, default), bounds, wholes.get(name))
        _put(name, value, fields, missing)
    _put("throttle", _throttle(values.get("throttle", default)), fields, missing)
    for name in SAMPLE_TEXTS:
        _put(name, _text(values.get(name, default)), fields, missing)
    _put("limited_pct", _shares(values.get("limited_pct", default)), fields, missing)
    processes = _processes(values.get("processes", default), vram_total_bytes)
    _put("processes", processes, fields, missing)
    return GpuSample(key=key, t_ns=t_ns, power_state=state, missing=missing, **fields)


def gpu_info(
    known: GpuInfo, values: Mapping[str, object], default: Absence = Absence.NOT_SUPPORTED
) -> GpuInfo:
    """Return ``known`` (probe, vendor, kind and addresses) completed with raw ``values``.

    A limit range whose ends are the wrong way round is dropped as a whole, and nothing is set
    within it.
    """
    fields: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, bounds in INFO_RANGES.items():
        _put(name, _number(name, values.get(name, default), bounds, None), fields, missing)
    for name in INFO_TEXTS:
        fields[name] = None
        value = getattr(known, name) or values.get(name, default)
        _put(name, _text(value), fields, missing)
    for name in INFO_FLAGS:
        value = values.get(name, default)
        _put(name, value if isinstance(value, bool) else _absence(value), fields, missing)
    low, high = fields.get("power_limit_min_w"), fields.get("power_limit_max_w")
    if low is not None and high is not None and low > high:
        for name in ("power_limit_min_w", "power_limit_max_w", "power_limit_settable"):
            fields.pop(name, None)
            missing[name] = Absence.IMPLAUSIBLE.value
    if known.pci_id is None:
        missing["pci_id"] = Absence.NOT_APPLICABLE.value
    return msgspec.structs.replace(known, missing=missing, **fields)


def host_number(name: str, value: object, whole: object = None) -> int | Absence | None:
    """Return a figure of the host if it can be true; ``None`` and reasons stay what they are.

    Args:
        name: Field of ``HostInfo``.
        value: What the system says.
        whole: What it is a part of, if that is known.
    """
    if not isinstance(value, int | float):
        return value if isinstance(value, Absence) else None
    low, high = HOST_RANGES[name]
    most = min(high, whole) if isinstance(whole, int) and whole > 0 else high
    return int(value) if low <= value <= most else Absence.IMPLAUSIBLE


def scaled(value: object, factor: float) -> object:
    """Return a raw number times ``factor`` (mW → W…); anything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        return value * factor
    except OverflowError:
        return Absence.IMPLAUSIBLE


def whole_number(text: object, base: int = 10) -> int | Absence:
    """Return the integer in a driver's text, or why there is none."""
    if isinstance(text, Absence):
        return text
    try:
        return int(str(text).strip(), base)
    except ValueError:
        return Absence.NO_DATA


def _number(
    name: str, value: object, bounds: tuple[float, float], whole: int | None
) -> int | float | Absence:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _absence(value)
    low, high = bounds
    # NaN compares false with everything, so it fails here too.
    if not low <= value <= high or (whole is not None and value > whole):
        return Absence.IMPLAUSIBLE
    return int(value) if name in WHOLE else float(value)


def _text(value: object) -> str | Absence:
    if isinstance(value, Absence) or not isinstance(value, str):
        return _absence(value)
    cleaned = "".join(c for c in value if c.isprintable()).strip()
    return Absence.NO_DATA if cleaned.lower() in NOT_A_TEXT else cleaned


def _throttle(value: object) -> tuple[str, ...] | Absence:
    return value if isinstance(value, tuple) else _absence(value)


def _shares(value: object) -> dict[str, float] | Absence:
    if not isinstance(value, dict):
        return _absence(value)
    low, high = PERCENT
    known = all(isinstance(n, int | float) and low <= n <= high for n in value.values())
    return {str(name): float(n) for name, n in value.items()} if known else Absence.IMPLAUSIBLE


def _processes(value: object, whole: int | None) -> tuple[GpuProcess, ...] | Absence:
    if not isinstance(value, tuple):
        return _absence(value)
    limit = MAX_MEMORY_BYTES if whole is None else whole
    return tuple(
        msgspec.structs.replace(
            p,
            vram_bytes=_within(p.vram_bytes, limit),
            shared_bytes=_within(p.shared_bytes, MAX_MEMORY_BYTES),
        )
        for p in value
    )


def _within(n_bytes: int | None, limit: int) -> int | None:
    return n_bytes if n_bytes is not None and 0 <= n_bytes <= limit else None


def _absence(value: object) -> Absence:
    if isinstance(value, Absence):
        return value
    return Absence.NO_DATA if value is None else Absence.IMPLAUSIBLE


def _put(name: str, value: object, fields: dict[str, Any], missing: dict[str, str]) -> None:
    if isinstance(value, Absence):
        missing[name] = value.value
    else:
        fields[name] = value
