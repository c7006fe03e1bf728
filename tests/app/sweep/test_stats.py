"""Intervals cover what they promise; differences cancel what is common."""

import math
import random
from collections.abc import Callable, Sequence
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.trial import Sample
from app.sweep.stats import (
    Estimate,
    between_loads_frac,
    estimate,
    median_variance_factor,
    middle_of,
    paired_difference,
    rate,
    sample_median,
    t_975,
)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 8, 12, 20])
@pytest.mark.parametrize("method", [estimate, sample_median])
def test_interval_covers_the_median(n: int, method: Callable[[Sequence[float]], Estimate]) -> None:
    """The 95 % interval of n normal samples holds the true median in 93.5–98 % of draws."""
    rng = random.Random(n)
    hits = 0
    for _ in range(3000):
        est = method([rng.gauss(1.0, 0.05) for _ in range(n)])
        hits += est.low <= 1.0 <= est.high
    assert 0.935 <= hits / 3000 <= 0.98


def test_what_is_compared_scatters_less_and_stands_firm() -> None:
    """The middle's variance is below 0.8 of the median's; one wild pass in five hardly moves it."""
    rng = random.Random(3)
    draws = [[rng.gauss(1.0, 0.05) for _ in range(5)] for _ in range(3000)]
    middle = sum((middle_of(d) - 1) ** 2 for d in draws)
    assert middle < 0.8 * sum((median(d) - 1) ** 2 for d in draws)
    assert middle_of([1.0, 1.01, 0.99, 1.0, 9.0]) == pytest.approx(1.0, abs=0.011)


@pytest.mark.parametrize(("n", "exact"), [(3, 0.4487), (5, 0.2868), (9, 0.1661)])
def test_median_variance_factor(n: int, exact: float) -> None:
    """The factor is within 3 % of the exact variance of a normal sample's median."""
    assert median_variance_factor(n) == pytest.approx(exact, rel=0.03)


def test_t_quantiles() -> None:
    """The table and its continuation agree with Student's t."""
    assert t_975(1) == pytest.approx(12.706)
    assert t_975(7) == pytest.approx(2.365)
    assert t_975(40) == pytest.approx(2.021, rel=0.003)


def test_one_sample_has_a_wide_interval() -> None:
    """A single pass claims no precision."""
    est = estimate([2.0])
    assert (est.low, est.median, est.high) == pytest.approx((1.6, 2.0, 2.4))


def test_rate_turns_the_interval_around() -> None:
    """Rates are the inverse of times: the slow end of the time is the low end of the rate."""
    samples = [Sample(n_tok=64, ns=n) for n in (1_000_000_000, 1_010_000_000, 1_020_000_000)]
    speed = rate(samples)
    assert speed is not None
    assert speed.low < speed.median < speed.high
    assert speed.median == pytest.approx(64 / 1.01)
    assert rate([]) is None


@given(st.lists(st.floats(0.01, 100.0), min_size=2, max_size=20))
def test_rate_is_finite_and_ordered(times: list[float]) -> None:
    """Whatever the scatter, low ≤ median ≤ high, all finite and positive."""
    speed = rate([Sample(n_tok=1, ns=round(t * 1e9)) for t in times])
    assert speed is not None
    assert 0 < speed.low <= speed.median <= speed.high < math.inf


def test_paired_difference_cancels_drift() -> None:
    """A drift of 40 % common to both leaves the 5 % difference exactly."""
    drift = [1.0, 1.1, 1.2, 1.3, 1.4]
    diff = paired_difference([2.0 * d for d in drift], [2.1 * d for d in drift])
    assert diff.median == pytest.approx(0.05)
    assert diff.low == pytest.approx(0.05)


def test_between_loads() -> None:
    """Two loads that differ by more than their own scatter show it; one load shows nothing."""
    assert between_loads_frac([[1.0, 1.01, 0.99]]) is None
    apart = between_loads_frac([[1.0, 1.001, 0.999], [1.1, 1.101, 1.099]])
    assert apart == pytest.approx(0.0673, rel=0.05)
    assert between_loads_frac([[1.0, 1.1, 0.9], [1.01, 1.11, 0.91]]) == 0.0
