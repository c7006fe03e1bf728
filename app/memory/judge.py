"""Whether a need fits what is free now, per device (design: memory verdicts)."""

from collections.abc import Mapping

import msgspec

from app.domain.machine import HostInfo
from app.domain.memory import DeviceMemory, Verdict
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import SearchDevice
from app.memory.overhead import Overhead, floor_bytes, headroom_bytes, overhead
from app.memory.ram import HOST, judge_ram

_RANK = (Verdict.FITS, Verdict.TIGHT, Verdict.UNKNOWN, Verdict.DOES_NOT_FIT)


class Surroundings(Record, frozen=True, kw_only=True):
    """What the verdict depends on besides the need.

    Attributes:
        devices: Devices with their free memory of now.
        host: RAM; ``None`` = not known.
        displays: Devices a display hangs on.
        unified: Devices whose memory is system memory (one pool with RAM) → free bytes of a
            part that only they can use (the firmware's carve-out), 0 = none.
        unread: Devices whose free memory is not known → why (``asleep``, ``unread``).
        headroom_bytes: What the user wants left free per device; ``None`` = the rule.
        reserve_bytes: What else must fit on the first device used (a projector, a game).
        calibration: Overheads learned from real loads, by ``calibration_slot``.
        repacked_bytes: Copies the CPU makes of mapped weights.
    """

    devices: tuple[SearchDevice, ...]
    host: HostInfo | None = None
    displays: frozenset[str] = frozenset()
    unified: dict[str, int] = {}
    unread: dict[str, str] = {}
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
    judged: list[DeviceMemory] = []
    notes = []
    for part in parts:
        if part.device in known:
            device = known[part.device]
            extra = overhead(device, settings, around.calibration, has_cpu_layers=has_cpu_layers)
            reserve = 0 if judged else around.reserve_bytes
            error = error_bytes.get(part.device, 0)
            judged.append(_judge_device(part, device, extra, around, error, reserve))
    if host:
        from_ram = sum(
            max(0, d.total_bytes - around.unified[d.device])
            for d in judged
            if d.device in around.unified
        )
        judged_host, note = judge_ram(
            host,
            settings,
            around.host,
            beside_bytes=from_ram,
            repacked_bytes=around.repacked_bytes,
            has_devices=bool(around.devices),
        )
        judged.append(judged_host)
        notes = [note] if note else []
    unreliable = [d.id for d in around.devices if d.free_bytes > d.total_bytes > 0]
    notes += [f"{name} reports more free memory than it has: not used." for name in unreliable]
    return Judgement(devices=tuple(judged), verdict=_worst(judged), note=" ".join(notes) or None)


def free_now(device: SearchDevice) -> int:
    """Return the free memory of ``device``, never above its total."""
    return min(device.free_bytes, device.total_bytes or device.free_bytes)


def _judge_device(
    part: DeviceMemory,
    device: SearchDevice,
    extra: Overhead,
    around: Surroundings,
    error: int,
    reserve: int,
) -> DeviceMemory:
    shows = device.id in around.displays
    headroom = around.headroom_bytes
    if headroom is None:
        headroom = headroom_bytes(drives_display=shows)
    after_context = free_now(device) - part.total_bytes - extra.driver_context_bytes - reserve
    floor = floor_bytes(extra.growth_bytes, drives_display=shows)
    unread = around.unread.get(device.id)
    if device.free_bytes == 0 and device.total_bytes == 0:
        verdict = Verdict.UNKNOWN
    elif after_context < floor:
        verdict = Verdict.DOES_NOT_FIT
    elif part.kv_cache_bytes is None or unread:
        verdict = Verdict.UNKNOWN
    elif after_context - extra.growth_bytes - error < headroom:
        verdict = Verdict.TIGHT
    else:
        verdict = Verdict.FITS
    return msgspec.structs.replace(
        part,
        driver_context_bytes=extra.driver_context_bytes,
        growth_bytes=extra.growth_bytes,
        measured_parts=extra.measured,
        measured_driver=extra.driver if extra.measured else None,
        total_bytes=part.total_bytes + extra.driver_context_bytes + extra.growth_bytes,
        free_bytes=None if unread else free_now(device),
        capacity_bytes=device.total_bytes or None,
        headroom_bytes=headroom,
        reserve_bytes=reserve,
        verdict=verdict,
        reason=unread if verdict is Verdict.UNKNOWN else None,
    )


def _worst(devices: list[DeviceMemory]) -> Verdict:
    # RAM that cannot be read says nothing against a configuration
    verdicts = [d.verdict for d in devices if d.device != HOST or d.verdict is not Verdict.UNKNOWN]
    return max(verdicts, key=_RANK.index, default=Verdict.UNKNOWN)
