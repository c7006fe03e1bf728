"""How much slower than a quiet core this one is now: what a limit on processor time allows for."""

import time

FIXED_WORK_NS = 250_000
"""What ``_fixed_work_ns`` takes on a quiet core of 2.5 GHz or so with Python 3.11."""


def slowdown() -> float:
    """Return how much longer than on a quiet core the same work takes at this moment, 1 or more."""
    now_ns = sorted(_fixed_work_ns() for _ in range(9))
    return max(1.0, now_ns[4] / FIXED_WORK_NS)


def _fixed_work_ns() -> int:
    begin_ns = time.thread_time_ns()
    for _ in range(20_000):
        pass
    return time.thread_time_ns() - begin_ns
