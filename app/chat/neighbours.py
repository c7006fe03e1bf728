"""Notices that another program wants the graphics memory a chat occupies."""

from collections.abc import Collection

from app.domain.machine import GpuSample
from app.domain.record import Record
from app.domain.units import MIB

GROWTH_BYTES = 256 * MIB
LOW_BYTES = 512 * MIB


class VramWanted(Record, frozen=True, kw_only=True):
    """Another program took memory and little is left.

    Attributes:
        key: ``GpuInfo.key``.
        name: The program that grew most; ``None`` = not known.
        growth_bytes: Memory that others took since the model was loaded.
        free_bytes: Memory free now.
    """

    key: str
    name: str | None
    growth_bytes: int
    free_bytes: int


class Neighbours:
    """Compares what others hold with what they held when the model was loaded."""

    def __init__(self, own: Collection[int]) -> None:
        """Watch; processes in ``own`` are ours."""
        self._own = frozenset(own)
        self._before: dict[str, dict[int, int]] = {}
        self._said: set[str] = set()

    def look(self, sample: GpuSample) -> VramWanted | None:
        """Return what to say about ``sample``, once per device until others have shrunk again.

        Says nothing where the driver does not tell who holds memory.
        """
        if sample.processes is None:
            return None
        held = {p.pid: p.vram_bytes or 0 for p in sample.processes if p.pid not in self._own}
        before = self._before.setdefault(sample.key, held)
        growth = {pid: size - before.get(pid, 0) for pid, size in held.items()}
        total = sum(held.values()) - sum(before.values())
        free_bytes = sample.vram_free_bytes
        if free_bytes is None:
            return None
        if total < GROWTH_BYTES or free_bytes > LOW_BYTES:
            self._said.discard(sample.key)
            return None
        if sample.key in self._said:
            return None
        self._said.add(sample.key)
        biggest = max(growth, key=lambda pid: growth[pid])
        names = {p.pid: p.name for p in sample.processes}
        return VramWanted(
            key=sample.key,
            name=names.get(biggest),
            growth_bytes=total,
            free_bytes=free_bytes,
        )
