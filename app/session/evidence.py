"""What is looked at once the search has its answer: its output, and how near it is to a limit.

The codes about the output are those of ``app.session.outputs``.

==================== ==================================================================
code                 data
==================== ==================================================================
cpu_ceiling          tok_s, ceiling_tok_s, share_pct, gb_s
cpu_token_time       total_ms, weights_ms, cache_ms, rest_ms
ram_token_time       total_ms, ram_ms, share_pct, mib, gb_s
gpu_read_rate        gb_s, mib, device
==================== ==================================================================
"""

import threading
from collections.abc import Callable, Generator
from contextlib import closing

import msgspec

from app.domain.events import TrialProgress
from app.domain.machine import HostInfo
from app.domain.sweep import Reason, Recommended, SweepPlan, SweepResult, SweepStatus
from app.domain.units import GIB, MIB
from app.memory import Memory
from app.rig.workers import WorkerRig
from app.session.outputs import compare_output

CACHE_FACTOR = 4  # what is not larger than this many last-level caches is served by them in part
SHARE_MAX = 1.1  # a model that reads faster than RAM was seen to: something else read it meanwhile
_FREE_BYTES = 2 * GIB  # a read benchmark must not push the model out of RAM
HOST = "host"

RamRead = Callable[[], float | None]
Looking = Generator[TrialProgress, None, SweepResult]


def with_evidence(
    result: SweepResult,
    plan: SweepPlan,
    rig: WorkerRig,
    memory: Memory,
    host: HostInfo,
    ram_read: RamRead,
) -> Looking:
    """Return ``result`` with the reasons that need another look at the machine.

    Args:
        result: The answer.
        plan: What was timed.
        rig: Where it was measured; its weights may still be loaded.
        memory: What a token reads, per device.
        host: CPU and caches.
        ram_read: Measures how fast RAM is read, 10⁹ bytes per second.
    """
    best = result.recommended
    if best is None or result.status in (SweepStatus.CANCELLED, SweepStatus.FAILED):
        return result
    about_output = yield from compare_output(best, rig)
    reasons = [*result.reasons, *about_output]
    has_room = (host.ram_available_bytes or 0) > _FREE_BYTES
    gb_s = ram_read() if has_room else None
    yield TrialProgress(phase="check")
    depth, n_seq = plan.workload.depth, plan.workload.n_seq
    weights = memory.token_bytes(best.settings, 0)
    everything = memory.token_bytes(best.settings, depth)
    read = {name: n + (n_seq - 1) * (n - weights[name]) for name, n in everything.items()}
    reasons += ceiling_reasons(best, weights, read, gb_s, host.l3_bytes)
    return msgspec.structs.replace(result, reasons=tuple(reasons))


def until_cancelled(looking: Looking, result: SweepResult, cancel: threading.Event) -> Looking:
    """Return what ``looking`` does, or ``result`` as soon as ``cancel`` is set: nobody waits."""
    with closing(looking):
        while not cancel.is_set():
            try:
                yield next(looking)
            except StopIteration as stop:
                seen: SweepResult = stop.value
                return seen
    return result


def ceiling_reasons(
    best: Recommended,
    weights: dict[str, int],
    read: dict[str, int],
    gb_s: float | None,
    l3_bytes: int | None,
) -> list[Reason]:
    """Return how near the answer is to what reading memory allows.

    Args:
        best: The answer.
        weights: Bytes of weights a token reads, per device (``host`` = CPU).
        read: The same with the cache at the goal's depth.
        gb_s: Measured read speed of RAM, 10⁹ bytes per second; ``None`` = not measured.
        l3_bytes: Last-level cache.
    """
    if best.decode_tok_s is None:
        return []
    total_ms = 1e3 / best.decode_tok_s.median
    gpus = {name: n for name, n in read.items() if name != HOST and n}
    ram = read.get(HOST, 0)
    if len(gpus) == 1 and not ram:
        ((device, n_bytes),) = gpus.items()
        rate = n_bytes * best.decode_tok_s.median / 1e9
        return [_reason("gpu_read_rate", gb_s=_round(rate), mib=n_bytes // MIB, device=device)]
    if not gb_s or ram < CACHE_FACTOR * (l3_bytes or 0) or not ram:
        return []
    ram_ms = ram / gb_s / 1e6
    if ram_ms > SHARE_MAX * total_ms:
        return []
    share = min(100, round(100 * ram_ms / total_ms))
    if gpus:
        data = {"total_ms": _round(total_ms), "ram_ms": _round(ram_ms), "share_pct": share}
        return [_reason("ram_token_time", **data, mib=ram // MIB, gb_s=_round(gb_s))]
    weights_ms = weights[HOST] / gb_s / 1e6
    cache_ms = ram_ms - weights_ms
    return [
        _reason(
            "cpu_ceiling",
            tok_s=_round(best.decode_tok_s.median),
            ceiling_tok_s=_round(1e3 / ram_ms),
            share_pct=share,
            gb_s=_round(gb_s),
        ),
        _reason(
            "cpu_token_time",
            total_ms=_round(total_ms),
            weights_ms=_round(weights_ms),
            cache_ms=_round(cache_ms),
            rest_ms=_round(max(0.0, total_ms - ram_ms)),
        ),
    ]


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def _reason(code: str, **data: str | float) -> Reason:
    return Reason(code=code, data=dict(data))
