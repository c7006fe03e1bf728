"""What a real load takes beyond the engine's own buffers: the driver's context and growth.

Seen from outside, by probe: free memory before the process starts, once the context exists, and
after each timed pass of its first trial. When the trial has ended it is too late: the context is
gone by then, and its pools with it. Only a process's first context counts: later ones find what
earlier shapes have grown.
"""

from collections.abc import Callable, Iterable

from app.domain.memory import DeviceMemory
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.units import GIB, MIB

FreeNow = Callable[[str], int | None]

HOST = "host"
# beyond these something else happened on the device meanwhile
_MAX_CONTEXT = 2 * GIB
_MAX_GROWTH = 8 * GIB
# and so it did where more than this is free again while the context is there
_NOISE = 16 * MIB


class Footprint(Record, frozen=True, kw_only=True):
    """What one load showed on one device.

    Attributes:
        device: Engine name.
        settings: Effective settings.
        has_cpu_layers: Whether some layers stayed on the CPU.
        depth: Tokens in the cache at the end.
        driver_context_bytes: Taken once the context existed, beyond the buffers.
        growth_bytes: Taken after that.
    """

    device: str
    settings: Settings
    has_cpu_layers: bool
    depth: int
    driver_context_bytes: int
    growth_bytes: int


class FootprintMeter:
    """Follows the first trial of one process."""

    def __init__(self, free_now: FreeNow, devices: Iterable[str]) -> None:
        """Read what is free before the process starts."""
        self._free_now = free_now
        self._before = self._read(devices)
        self._in_context: dict[str, int] = {}
        self._least: dict[str, int] = {}
        self._buffers: tuple[DeviceMemory, ...] = ()
        self._settings: Settings | None = None

    def context_made(self, settings: Settings, buffers: tuple[DeviceMemory, ...]) -> None:
        """Read what is free now that ``buffers`` are allocated."""
        self._settings, self._buffers = settings, buffers
        self._in_context = self._read(self._before)

    def pass_ended(self) -> None:
        """Read what is free now that a pass has run; the least of all passes counts."""
        now = self._read(self._in_context)
        self._least = {name: min(n, self._least.get(name, n)) for name, n in now.items()}

    def trial_ended(self, depth: int) -> tuple[Footprint, ...]:
        """Return what the load took; nothing where a reading is missing or cannot be true."""
        if self._settings is None:
            return ()
        host = next((b for b in self._buffers if b.device == HOST), None)
        found = []
        for part in self._buffers:
            name = part.device
            if name not in self._least or part.total_bytes == 0:
                continue
            context = self._before[name] - self._in_context[name] - part.total_bytes
            growth = self._in_context[name] - self._least[name]
            if 0 <= context <= _MAX_CONTEXT and -_NOISE <= growth <= _MAX_GROWTH:
                found.append(
                    Footprint(
                        device=name,
                        settings=self._settings,
                        has_cpu_layers=bool(host and host.kv_cache_bytes),
                        depth=depth,
                        driver_context_bytes=context,
                        growth_bytes=max(0, growth),
                    )
                )
        return tuple(found)

    def _read(self, devices: Iterable[str]) -> dict[str, int]:
        free = {name: self._free_now(name) for name in devices}
        return {name: n_bytes for name, n_bytes in free.items() if n_bytes is not None}
