"""Whether a need fits what is free now, per device and in RAM (design: memory verdicts)."""

from collections.abc import Mapping

import msgspec

from app.domain.machine import HostInfo
from app.domain.memory import DeviceMemory, Verdict
from app.domain.record import Record
from app.domain.settings import LoadMode, Settings
from app.domain.sweep import SearchDevice
from app.domain.units import GIB, format_bytes
from app.memory.overhead import Overhead, floor_bytes, headroom_bytes, overhead

HOST = "host"
# pinned pages cannot be swapped out: at most this share of RAM, leaving this much available
_PINNED_FRAC = 0.4
_PINNED_KEEP = 4 * GIB
_RAM_HEADROOM = 1 * GIB
_RANK = (Verdict.FITS, Verdict.TIGHT, Verdict.UNKNOWN, Verdict.DOES_NOT_FIT)


class Surroundings(Record, frozen=True, kw_only=True):
    """What the verdict depends on besides the need.

    Attributes:
        devices: Devices with their free memory of now.
        host: RAM; ``None`` = not known.
        displays: Devices a display hangs on.
        unified: Devices whose memory is system memory (one pool with RAM).
        headroom_bytes: What the user wants left free per device; ``None`` = the rule.
        reserve_bytes: What else must fit on the first device (a projector, a game).
        calibration: Overheads learned from real loads, by ``calibration_slot``.
        repacked_bytes: Copies the CPU makes of mapped weights.
    """

    devices: tuple[SearchDevice, ...]
    host: HostInfo | None = None
    displays: frozenset[str] = frozenset()
    unified: frozenset[str] = frozenset()
    headroom_bytes: int | None = None
    reserve_bytes: int = 0
    calibration: dict[str, Overhead] = {}
    repacked_bytes: int = 0


class Judgement(Record, frozen=True, kw_only=True):
    """Devices with verdicts, the worst of them, and why where it needs a sentence."""

    devices: tuple[DeviceMemory, ...]
    verdict: Verdict
    note: str | None = None


def judge(
    parts: tuple[DeviceMemory, ...],
    settings: Settings,
    around: Surroundings,
    error_bytes: Mapping[str, int],
) -> Judgement:
    """Add overheads, free memory and verdicts to ``parts``.

    Args:
        parts: Need per device and ``host``, as formula or dry run give it.
        settings: The configuration.
        around: Free memory and rules.
        error_bytes: By how much each total may be off (empty for a dry run).
    """
    known = {d.id: d for d in around.devices}
    host = next((p for p in parts if p.device == HOST), None)
    has_cpu_layers = bool(host and host.kv_cache_bytes)
    judged, notes = [], []
    for part in parts:
        if part.device in known:
            device = known[part.device]
            extra = overhead(device, settings, around.calibration, has_cpu_layers=has_cpu_layers)
            error = error_bytes.get(part.device, 0)
            reserve = around.reserve_bytes if device == around.devices[0] else 0
            judged.append(_judge_device(part, device, extra, around, error + reserve))
    if host:
        judged_host, note = _judge_host(host, judged, settings, around)
        judged.append(judged_host)
        notes = [note] if note else []
    unreliable = [d.id for d in around.devices if d.free_bytes > d.total_bytes > 0]
    notes += [f"{name} reports more free memory than it has: not used." for name in unreliable]
    return Judgement(devices=tuple(judged), verdict=_worst(judged), note=" ".join(notes) or None)


def free_now(device: SearchDevice) -> int:
    """Return the free memory of ``device``, never above its total."""
    return min(device.free_bytes, device.total_bytes or device.free_bytes)


def _judge_device(
    part: DeviceMemory, device: SearchDevice, extra: Overhead, around: Surroundings, more: int
) -> DeviceMemory:
    shows = device.id in around.displays
    headroom = around.headroom_bytes
    if headroom is None:
        headroom = headroom_bytes(drives_display=shows)
    after_context = free_now(device) - part.total_bytes - extra.driver_context_bytes
    floor = floor_bytes(extra.growth_bytes, drives_display=shows)
    if device.free_bytes == 0 and device.total_bytes == 0:
        verdict = Verdict.UNKNOWN
    elif after_context < floor:
        verdict = Verdict.DOES_NOT_FIT
    elif part.kv_cache_bytes is None:
        verdict = Verdict.UNKNOWN
    elif after_context - extra.growth_bytes - more < headroom:
        verdict = Verdict.TIGHT
    else:
        verdict = Verdict.FITS
    return msgspec.structs.replace(
        part,
        driver_context_bytes=extra.driver_context_bytes,
        growth_bytes=extra.growth_bytes,
        total_bytes=part.total_bytes + extra.driver_context_bytes + extra.growth_bytes,
        free_bytes=free_now(device),
        headroom_bytes=headroom,
        verdict=verdict,
    )


def _judge_host(
    part: DeviceMemory, devices: list[DeviceMemory], settings: Settings, around: Surroundings
) -> tuple[DeviceMemory, str | None]:
    total = part.total_bytes + around.repacked_bytes
    pool = total + sum(d.total_bytes for d in devices if d.device in around.unified)
    available = around.host.ram_available_bytes if around.host else None
    verdict, note = Verdict.UNKNOWN, None
    if available is not None:
        verdict, note = _judge_ram(pool, part, settings, around, available)
    judged = msgspec.structs.replace(
        part,
        growth_bytes=around.repacked_bytes or None,
        total_bytes=total,
        free_bytes=available,
        headroom_bytes=_RAM_HEADROOM,
        verdict=verdict,
    )
    return judged, note


def _judge_ram(
    pool: int, part: DeviceMemory, settings: Settings, around: Surroundings, available: int
) -> tuple[Verdict, str | None]:
    weights = part.weights_bytes or 0
    if pool > available:
        how = "read from disk again for every token"
        if settings.load_mode is LoadMode.NONE:
            how = "swapped out"
        need, free = format_bytes(pool), format_bytes(available)
        return Verdict.DOES_NOT_FIT, (
            f"RAM must hold {need} and {free} is available: the weights would be {how}."
        )
    ram = around.host.ram_bytes if around.host else None
    is_pinned = settings.load_mode is LoadMode.NONE and bool(around.devices) and weights > 0
    if is_pinned and (available - weights < _PINNED_KEEP or (ram and weights > _PINNED_FRAC * ram)):
        return Verdict.TIGHT, "Too many weights would be pinned in RAM; use load mode mmap."
    return (Verdict.FITS if available - pool >= _RAM_HEADROOM else Verdict.TIGHT), None


def _worst(devices: list[DeviceMemory]) -> Verdict:
    # RAM that cannot be read says nothing against a configuration
    verdicts = [d.verdict for d in devices if d.device != HOST or d.verdict is not Verdict.UNKNOWN]
    return max(verdicts, key=_RANK.index, default=Verdict.UNKNOWN)
