"""The ring buffer and the schedule."""

import math

from hypothesis import given
from hypothesis import strategies as st

from app.telemetry.ring import Ring
from app.telemetry.sampler import next_deadline


def test_oldest_rows_are_overwritten_in_order() -> None:
    """A full ring holds the newest rows, oldest first."""
    ring = Ring(("a", "b"), capacity=3)
    for n in range(5):
        ring.append(float(n), (n, None), interval_s=1.0)
    t_s, values = ring.series("a")
    assert list(t_s) == [2.0, 3.0, 4.0]
    assert list(values) == [2.0, 3.0, 4.0]
    assert ring.has("a")
    assert not ring.has("b")


def test_pause_is_a_gap_not_a_slope() -> None:
    """A row that comes late is preceded by an empty one, so that a line breaks there."""
    ring = Ring(("a",), capacity=10)
    for t_s in (0.0, 1.0, 60.0):
        ring.append(t_s, (7.0,), interval_s=1.0)
    series = ring.series("a")
    assert list(series.t_s) == [0.0, 1.0, 2.0, 60.0]
    assert [math.isnan(v) for v in series.values] == [False, False, True, False]


def test_unknown_value_is_a_gap() -> None:
    """``None`` becomes NaN, never 0."""
    ring = Ring(("a",), capacity=4)
    ring.append(0.0, (None,), interval_s=1.0)
    assert math.isnan(ring.series("a").values[0])


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0.05, 100))
def test_next_beat_is_on_the_grid_and_in_the_future(
    deadline_s: float, late_s: float, interval_s: float
) -> None:
    """The schedule does not drift: beats stay on the grid, missed ones are skipped."""
    now_s = deadline_s + late_s
    beat = next_deadline(deadline_s, now_s, interval_s)
    assert now_s - 1e-6 * interval_s <= beat <= now_s + interval_s * (1 + 1e-6)
    beats = (beat - deadline_s) / interval_s
    assert math.isclose(beats, round(beats), rel_tol=1e-6, abs_tol=1e-6)
