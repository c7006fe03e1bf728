"""Which live strips a device gets."""

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication

from app.domain.machine import GpuInfo, HostInfo
from app.domain.record import Record
from app.domain.units import GIB
from views.plots.live_strip import Point, StripInfo
from views.units import large_unit, small_unit, temperature_unit

translate = QCoreApplication.translate


class Strip(Record, frozen=True, kw_only=True):
    """A strip and the field of a sample it shows."""

    field: str
    info: StripInfo


def gpu_strips(info: GpuInfo | None) -> tuple[Strip, ...]:
    """Return every strip a GPU could have; those never read are not shown."""
    total = info.vram_total_bytes if info else None
    slowdown = info.temp_slowdown_c if info else None
    limit = info.power_limit_default_w if info else None
    (large, per_large), (small, per_small) = large_unit(), small_unit()
    degrees, factor, zero = temperature_unit()
    infos = {
        "busy_pct": StripInfo(
            name=translate("Strips", "Busy time"), color="prefill", unit="%", top=100.0
        ),
        "vram_used_bytes": StripInfo(
            name=translate("Strips", "VRAM in use"),
            color="memory",
            unit=large,
            scale=per_large,
            decimals=2 if (total or 0) < 100 * GIB else 1,
            top=None if total is None else float(total),
            is_share=True,
        ),
        "power_w": StripInfo(
            name=translate("Strips", "Power"),
            color="power",
            unit="W",
            limit=limit,
            limit_name=translate("Strips", "limit"),
        ),
        # it moves: by the governor's hand, and by Dynamic Boost's
        "power_limit_w": StripInfo(
            name=translate("Strips", "Power limit in force"), color="power", unit="W"
        ),
        "temp_c": StripInfo(
            name=translate("Strips", "Temperature"),
            color="heat",
            unit=degrees,
            scale=factor,
            offset=zero,
            top=(slowdown or 95.0) + 15,
            limit=slowdown,
            limit_name=translate("Strips", "limit"),
        ),
        "clock_mhz": StripInfo(name=translate("Strips", "Core clock"), color="decode", unit="MHz"),
        "limited_most_pct": StripInfo(
            name=translate("Strips", "Time held back"), color="heat", unit="%", top=100.0
        ),
        "shared_used_bytes": StripInfo(
            name=translate("Strips", "Shared memory"), color="memory", unit=small, scale=per_small
        ),
        "pcie_rx_bytes_s": StripInfo(
            name=translate("Strips", "PCIe to the GPU"),
            color="prefill",
            unit="GB/s",
            scale=1e-9,
            decimals=1,
        ),
    }
    return tuple(Strip(field=field, info=strip) for field, strip in infos.items())


def host_strips(host: HostInfo) -> tuple[Strip, ...]:
    """Return the strips of CPU and RAM."""
    top = None if host.ram_bytes is None else float(host.ram_bytes)
    (large, per_large), (small, per_small) = large_unit(), small_unit()
    degrees, factor, zero = temperature_unit()
    infos = {
        "cpu_busy_pct": StripInfo(
            name=translate("Strips", "CPU busy time"), color="prefill", unit="%", top=100.0
        ),
        "ram_available_bytes": StripInfo(
            name=translate("Strips", "RAM available"),
            color="memory",
            unit=large,
            scale=per_large,
            decimals=2,
            top=top,
        ),
        "swap_used_bytes": StripInfo(
            name=translate("Strips", "Swap in use"),
            color="power",
            unit=small,
            scale=per_small,
            top=None if host.swap_bytes is None else float(host.swap_bytes or 1),
        ),
        "cpu_temp_c": StripInfo(
            name=translate("Strips", "CPU temperature"),
            color="heat",
            unit=degrees,
            scale=factor,
            offset=zero,
            top=110.0,
        ),
    }
    if not host.swap_bytes:
        del infos["swap_used_bytes"]
    return tuple(Strip(field=field, info=strip) for field, strip in infos.items())


def statistics(points: Iterable[Point]) -> tuple[float, float, float] | None:
    """Return lowest, mean and highest value, or ``None`` without any."""
    values = [value for _, value in points if value is not None]
    if not values:
        return None
    return min(values), sum(values) / len(values), max(values)
