"""How much memory trials have proved there is, whatever the devices report."""

from collections.abc import Mapping

from app.sweep.points import SPILL_BYTES

Bytes = Mapping[str, int]  # per device


class Proven:
    """Bytes per device that ran and that did not, and what growth of shared memory left room for.

    Attributes:
        trusts_growth: Whether growth of shared memory still tells how much there is.
    """

    def __init__(self) -> None:
        """Begin with nothing proven."""
        self.trusts_growth = True
        self._good: dict[str, int] = {}
        self._bad: dict[str, int] = {}
        self._exact: dict[str, int] = {}

    def holds(self, need: Bytes) -> bool:
        """Whether as much as ``need`` has run on every device."""
        return all(n <= self._good.get(d, 0) for d, n in need.items())

    def knows_any(self, need: Bytes) -> bool:
        """Whether anything has run on the devices of ``need``."""
        return any(self._good.get(d) for d in need)

    def bracket(self, devices: Bytes) -> tuple[int, int | None]:
        """Return the bytes on ``devices`` that ran, and those that failed, if any did."""
        bad = [self._bad[d] for d in devices if d in self._bad]
        every = bool(bad) and len(bad) == len(devices)
        return sum(self._good.get(d, 0) for d in devices), sum(bad) if every else None

    def ran(self, need: Bytes) -> bool:
        """Note that ``need`` ran clean; whether that contradicts what growth said before."""
        misled = any(n > self._exact.get(d, n) for d, n in need.items())
        self._good |= {d: max(n, self._good.get(d, 0)) for d, n in need.items()}
        if misled:
            self.trusts_growth, self._exact = False, {}
        return misled

    def failed(self, need: Bytes) -> None:
        """Note that ``need`` is too much."""
        self._bad |= {d: min(n, self._bad.get(d, n)) for d, n in need.items()}

    def rejected(self, need: Bytes, kept: Bytes) -> None:
        """Note that ``need`` ran, but slower than it should; ``kept`` ran as it should."""
        self.failed(need)
        self._good |= {d: min(n, kept.get(d, 0)) for d, n in self._good.items() if d in need}

    def grew(self, need: Bytes, growth_bytes: int) -> None:
        """Note that of ``need`` so much went to shared memory: the rest is what there is."""
        room = {d: n - growth_bytes + SPILL_BYTES for d, n in need.items()}
        self._exact |= {d: min(n, self._exact.get(d, n)) for d, n in room.items()}

    def ceiling(self, daring: float) -> dict[str, float]:
        """Return the bytes per device that may be asked for.

        ``daring`` is how far between what ran and what did not, 0–1.
        """
        ceiling: dict[str, float] = {}
        for device, n_bytes in self._bad.items():
            good = self._good.get(device, 0)
            ceiling[device] = good + (n_bytes - good) * daring if good else n_bytes - 1
        for device, n_bytes in self._exact.items():
            ceiling[device] = min(n_bytes, ceiling.get(device, n_bytes))
        return ceiling
