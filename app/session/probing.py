"""What the session asks of the probes: a composition root hands it in."""

from pathlib import Path
from typing import Protocol

from app.domain.machine import ProbeSet


class Probing(Protocol):
    """Finds probes: this machine's, or a recorded machine's (``probes.registry``)."""

    def detect(self) -> ProbeSet:
        """Return the probes of this machine."""
        ...

    def replay(self, directory: Path | str) -> ProbeSet:
        """Return probes that show a recorded machine."""
        ...

    def record(self, directory: Path | str) -> Path:
        """Write a recording of this machine and return its file."""
        ...

    def ram_read_gb_s(self, n_threads: int, cache_bytes: int | None = None) -> float | None:
        """Measure how fast this machine reads RAM, 10⁹ bytes per second."""
        ...

    def disk_read_mb_s(self, path: Path) -> float | None:
        """Measure how fast a file's beginning comes from its disk, 10⁶ bytes per second."""
        ...
