"""Whether RAM holds its part, and what happens if it does not.

Mapped weights are read from the file as they are needed and can be dropped again: when they do
not fit they are read from disk for every token. Everything else (cache, buffers, copied weights,
what a GPU takes of unified memory) can only be swapped out. ``ram_available_bytes`` counts the
page cache as free, so a model that is cached already is not counted twice.
"""

from typing import NamedTuple

import msgspec

from app.domain.machine import HostInfo
from app.domain.memory import DeviceMemory, Verdict
from app.domain.settings import LoadMode, Settings
from app.domain.units import GIB, format_bytes

HOST = "host"
# pinned pages cannot be swapped out: at most this share of RAM, leaving this much available
_PINNED_FRAC = 0.4
_PINNED_KEEP = 4 * GIB
_RAM_HEADROOM = 1 * GIB


class _Need(NamedTuple):
    """Bytes that must stay, bytes the file can give again, and pinned ones among the first."""

    fixed: int
    mapped: int
    pinned: int


class _Answer(NamedTuple):
    verdict: Verdict
    reason: str | None = None
    note: str | None = None


def judge_ram(
    part: DeviceMemory,
    settings: Settings,
    host: HostInfo | None,
    *,
    beside_bytes: int,
    repacked_bytes: int,
    has_devices: bool,
) -> tuple[DeviceMemory, str | None]:
    """Return RAM's part with free memory and verdict, and a sentence where it needs one.

    Args:
        part: Need in RAM, as formula or dry run give it.
        settings: The configuration; its load mode decides.
        host: RAM; ``None`` = not known.
        beside_bytes: What GPUs take of the same memory (unified memory).
        repacked_bytes: Copies the CPU makes of mapped weights.
        has_devices: Whether a GPU's backend would pin copied weights.
    """
    available = host.ram_available_bytes if host else None
    answer = _Answer(Verdict.UNKNOWN)
    if host is not None and available is not None:
        weights = part.weights_bytes or 0
        is_mapped = settings.load_mode is LoadMode.MMAP
        mapped = min(weights, part.total_bytes) if is_mapped else 0
        need = _Need(
            fixed=part.total_bytes - mapped + repacked_bytes + beside_bytes,
            mapped=mapped,
            pinned=0 if is_mapped or not has_devices else weights,
        )
        answer = _answer(need, available, host)
    judged = msgspec.structs.replace(
        part,
        growth_bytes=repacked_bytes or None,
        total_bytes=part.total_bytes + repacked_bytes,
        free_bytes=available,
        capacity_bytes=host.ram_bytes if host else None,
        headroom_bytes=_RAM_HEADROOM,
        verdict=answer.verdict,
        reason=answer.reason,
    )
    return judged, answer.note


def _answer(need: _Need, available: int, host: HostInfo) -> _Answer:
    total = need.fixed + need.mapped
    has = f"RAM must hold {format_bytes(total)} and {format_bytes(available)} is available"
    swap = host.swap_bytes
    if swap is not None and need.fixed > available + swap:
        beyond = "even with swap" if swap else "and there is no swap"
        return _Answer(
            Verdict.DOES_NOT_FIT,
            "out_of_ram",
            f"{has}, {beyond}: the system would end the engine.",
        )
    if need.fixed > available:
        return _Answer(
            Verdict.DOES_NOT_FIT,
            "swapped",
            f"{has}: it would be swapped out and read back for every token (thrashing).",
        )
    if total > available:
        return _Answer(
            Verdict.DOES_NOT_FIT,
            "will_thrash",
            f"{has}: weights would be read from disk again for every token (thrashing).",
        )
    too_much = host.ram_bytes and need.pinned > _PINNED_FRAC * host.ram_bytes
    if need.pinned and (available - need.pinned < _PINNED_KEEP or too_much):
        return _Answer(
            Verdict.TIGHT,
            "pinned",
            "Too many weights would be pinned in RAM; use load mode mmap.",
        )
    return _Answer(Verdict.FITS if available - total >= _RAM_HEADROOM else Verdict.TIGHT)
