"""When a trial may stop repeating."""

import random

import pytest

from app.domain.trial import Sample
from app.sweep.stats import sample_median
from app.worker.repeat import half_width_frac, settled


def samples(*ns: int) -> list[Sample]:
    return [Sample(n_tok=10, ns=n) for n in ns]


def test_one_sample_says_nothing_about_the_spread() -> None:
    """At least two are needed."""
    assert not settled(samples(100))


def test_equal_samples_settle_at_once() -> None:
    """No spread, no more repetitions."""
    assert settled(samples(100, 100, 100))


def test_scattered_samples_do_not_settle() -> None:
    """Ten per cent of spread in three samples leaves the median open."""
    assert not settled(samples(100, 110, 90))


def test_more_samples_of_the_same_spread_settle() -> None:
    """The interval shrinks with their number."""
    pair = (1000, 1030)
    assert not settled(samples(*pair, *pair))
    assert settled(samples(*pair * 5))


@pytest.mark.parametrize("n", range(2, 17))
def test_the_interval_is_the_one_that_is_shown(n: int) -> None:
    """The worker stops by the same interval that results carry."""
    rng = random.Random(n)
    passes = samples(*(rng.randrange(900, 1100) for _ in range(n)))
    shown = sample_median([s.ns / s.n_tok for s in passes])
    assert half_width_frac(passes) == pytest.approx(shown.half_width / shown.median, rel=1e-3)
