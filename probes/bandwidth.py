"""How fast this machine reads RAM, and a folder's disk. Measured on request only: both take load.

These bound what layers on the CPU and a load of weights can reach.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MAX_BYTES = 1 << 30
MIN_BYTES = 64 << 20
CACHE_FACTOR = 8
"""The array is this many times the third-level cache, so that the cache serves little of it."""
MIN_PASSES = 8
SECONDS = 1.5
"""Long enough to meet a moment in which nothing else runs."""
DISK_BYTES = 256 << 20
BLOCK_BYTES = 4 << 20


def read_gb_s(
    n_threads: int, cache_bytes: int | None = None, seconds: float = SECONDS
) -> float | None:
    """Return the best speed of reading RAM with ``n_threads`` threads, 10⁹ bytes per second.

    The best of many passes, because other work only ever makes a pass slower. ``None`` where
    the memory for it cannot be had.

    Args:
        n_threads: Threads, one per physical core.
        cache_bytes: Third-level cache, if known.
        seconds: How long to try; at least eight passes are made.
    """
    import numpy as np  # noqa: PLC0415 - takes longer to import than all probes together

    wanted = CACHE_FACTOR * (cache_bytes or MIN_BYTES)
    n_values = min(MAX_BYTES, max(4 * MIN_BYTES, wanted)) // 8
    try:
        # Written once, so that every page is really there.
        parts = np.array_split(np.ones(n_values), max(1, n_threads))
    except MemoryError:
        return None
    took: list[float] = []
    with ThreadPoolExecutor(len(parts)) as pool:
        while len(took) < MIN_PASSES or sum(took) < seconds:
            started = time.perf_counter_ns()
            list(pool.map(_total, parts))
            took.append((time.perf_counter_ns() - started) / 1e9)
    return n_values * 8 / min(took) / 1e9


def disk_read_mb_s(path: Path, n_bytes: int = DISK_BYTES) -> float | None:
    """Return how fast a file's beginning comes from its disk, 10⁶ bytes per second.

    The file's pages are dropped from the cache first where the system can do that; elsewhere
    (Windows) a cached file reads as fast as RAM. ``None`` when it cannot be read.
    """
    try:
        with path.open("rb", buffering=0) as file:
            _forget(file.fileno(), n_bytes)
            started = time.perf_counter_ns()
            n_read = _read_through(file.read, n_bytes)
            seconds = (time.perf_counter_ns() - started) / 1e9
    except OSError:
        return None
    return n_read / seconds / 1e6 if n_read else None


def _total(part: "object") -> float:
    return float(part.sum())  # type: ignore[attr-defined]


def _forget(descriptor: int, n_bytes: int) -> None:
    advise = getattr(os, "posix_fadvise", None)
    if advise is not None:
        advise(descriptor, 0, n_bytes, os.POSIX_FADV_DONTNEED)


def _read_through(read: Callable[[int], bytes], n_bytes: int) -> int:
    n_read = 0
    while n_read < n_bytes and (block := read(BLOCK_BYTES)):
        n_read += len(block)
    return n_read
