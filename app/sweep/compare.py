"""Whether two configurations differ by more than measurement can blur."""

import math

from app.sweep.kin import kin_of
from app.sweep.points import Point
from app.sweep.stats import Estimate, between_loads_frac, paired_difference

TIE_FRAC = 0.02


def difference(first: Point, second: Point) -> Estimate:
    """Return how much longer ``second`` takes than ``first``, as a share, with its interval.

    Kin differ in prefill alone. Taken in turns on one load: paired. Otherwise both intervals, and
    what the loads of one configuration differ by where one was loaded twice.
    """
    assert first.request is not None
    assert second.request is not None
    same_load = set(first.load_ids) & set(second.load_ids)
    if kin_share(first, second):
        return _of_kin(first, second)
    if same_load and min(len(first.load_ids), len(second.load_ids)) > 1:
        return paired_difference(first.times, second.times)
    ratio = second.request.median / first.request.median
    within = math.hypot(
        first.request.half_width / first.request.median,
        second.request.half_width / second.request.median,
    )
    half = ratio * math.hypot(within, 0.0 if same_load else 1.96 * _between(first, second))
    return Estimate(median=ratio - 1, low=ratio - 1 - half, high=ratio - 1 + half)


def kin_share(first: Point, second: Point) -> bool:
    """Whether both are timed by the same decode passes."""
    shared = first.own_half_width is not None and second.own_half_width is not None
    return shared and kin_of(first.settings) == kin_of(second.settings)


def _of_kin(first: Point, second: Point) -> Estimate:
    assert first.request is not None
    assert second.request is not None
    own = math.hypot(first.own_half_width or 0.0, second.own_half_width or 0.0)
    gap, half = second.request.median / first.request.median - 1, own / first.request.median
    return Estimate(median=gap, low=gap - half, high=gap + half)


def is_slower(second: Point, first: Point) -> bool:
    """Whether ``second`` is slower than ``first`` beyond noise and by more than a tie."""
    diff = difference(first, second)
    return diff.low > 0 and diff.median > TIE_FRAC


def seems_slower(second: Point, first: Point) -> bool:
    """Whether ``second`` is slower than ``first`` by more than a tie, more likely than not.

    With half the interval: five times in six.
    """
    diff = difference(first, second)
    return diff.median - diff.half_width / 2 > 0 and diff.median > TIE_FRAC


def is_tie(first: Point, second: Point) -> bool:
    """Whether the difference's interval holds 0 and the difference is below 2 %."""
    diff = difference(first, second)
    return diff.low <= 0 <= diff.high and abs(diff.median) < TIE_FRAC


def is_firm_tie(first: Point, second: Point) -> bool:
    """Whether memory or simplicity may decide: the whole interval is within 2 %.

    A wider interval says "not separated": then the median decides.
    """
    diff = difference(first, second)
    return is_tie(first, second) and diff.high < TIE_FRAC


def is_settled(first: Point, second: Point) -> bool:
    """Whether measuring more would hardly change the comparison."""
    diff = difference(first, second)
    return not diff.low <= 0 <= diff.high or is_firm_tie(first, second)


def _between(first: Point, second: Point) -> float:
    """Return the relative spread between loads, where one of the two was loaded twice."""
    known = [between_loads_frac(_by_load(p)) for p in (first, second) if len(set(p.load_ids)) > 1]
    return max((k for k in known if k is not None), default=0.0)


def _by_load(point: Point) -> list[tuple[float, ...]]:
    """Split the times of ``point`` evenly over its loads (every trial has about as many)."""
    n = max(1, len(point.times) // max(1, len(point.load_ids)))
    groups: dict[int, tuple[float, ...]] = {}
    for i, load in enumerate(point.load_ids):
        groups[load] = groups.get(load, ()) + point.times[i * n : (i + 1) * n]
    return list(groups.values())
