"""Knee, cliff and spill: where more memory stops to pay, and where it starts to hurt."""

from collections.abc import Sequence

from app.sweep.points import Point

KNEE_MEDIAN_FRAC = 0.05
KNEE_LOW_FRAC = 0.10
CLIFF_FRAC = 0.10


def find_knee(points: Sequence[Point]) -> Point | None:
    """Return the point with the least memory that is nearly as good as the best.

    Benefit is 1 / request time. Over points that may win: median benefit ≥ 95 % of the best
    and lower 95 % bound ≥ 90 % of the best.
    """
    clean = [p for p in points if p.is_clean and p.request is not None]
    if not clean:
        return None
    fastest = min(clean, key=lambda p: p.request_s)
    best = 1 / fastest.request_s
    # a best point that is itself uncertain still needs no more memory than it does
    good = [
        p
        for p in clean
        if p is fastest
        or (
            p.request is not None
            and 1 / p.request_s >= (1 - KNEE_MEDIAN_FRAC) * best
            and 1 / p.request.high >= (1 - KNEE_LOW_FRAC) * best
        )
    ]
    return min(good, key=lambda p: (p.total_bytes, p.request_s))


def is_spilled(point: Point, smaller: Point | None, *, pcie_is_busy: bool = False) -> bool:
    """Whether ``point`` runs out of shared memory at a price.

    Shared memory grew by more than 64 MiB beyond known host buffers, and it is slower than its
    smaller neighbour or reads over PCIe in decode.
    """
    if not point.grew:
        return False
    slower = smaller is not None and point.request_s > smaller.request_s
    return slower or pcie_is_busy


def cliff_between(before: Point, after: Point) -> str | None:
    """Return why going from ``before`` to ``after`` (more of a knob) is a cliff, or ``None``.

    ``spill``, ``out_of_memory``, or ``slower``: the benefit falls by more than 10 % beyond noise.
    """
    if after.is_memory and after.request is None:
        return "out_of_memory"
    if is_spilled(after, before):
        return "spill"
    if before.request is None or after.request is None:
        return None
    loss = 1 - before.request_s / after.request_s
    best_case_loss = 1 - before.request.high / after.request.low
    return "slower" if loss > CLIFF_FRAC and best_case_loss > 0 else None
