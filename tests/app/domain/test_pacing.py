"""The pacer: the share of time worked is the duty asked for, in short even pauses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.pacing import DUTY_MIN, PAUSE_MAX_S, Pace, Pacer, batch_tokens


def run(pacer: Pacer, busy_s: float, n: int, oversleep_s: float = 0.0) -> float:
    """Return the share of time worked over ``n`` pieces of work."""
    worked = slept = 0.0
    for _ in range(n):
        worked += busy_s
        if pause := pacer.after(busy_s):
            slept += pause + oversleep_s
            pacer.paused(pause + oversleep_s)
    return worked / (worked + slept)


@pytest.mark.parametrize("duty", [0.1, 0.3, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("busy_ms", [0.3, 2.0, 20.0])
def test_duty_is_kept(duty: float, busy_ms: float) -> None:
    """Whatever the length of a token, the share of time worked is the duty."""
    assert run(Pacer(Pace(duty=duty)), busy_ms / 1000, 2000) == pytest.approx(duty, rel=0.03)


def test_sleeping_too_long_is_taken_off_the_next_pause() -> None:
    """Systems sleep up to 15 ms longer than asked; on average the duty still holds."""
    assert run(Pacer(Pace(duty=0.5)), 0.02, 2000, 0.01) == pytest.approx(0.5, rel=0.05)


def test_full_speed_never_pauses() -> None:
    """Duty 1 is no pacing at all, also after a slower time."""
    pacer = Pacer(Pace(duty=0.2))
    pacer.after(1.0)
    pacer.set(Pace())
    assert [pacer.after(0.5) for _ in range(3)] == [0.0, 0.0, 0.0]


@given(
    st.floats(allow_nan=True, allow_infinity=True),
    st.lists(st.floats(-1.0, 100.0), max_size=30),
)
def test_pauses_are_bounded(duty: float, busy: list[float]) -> None:
    """Any duty and any times give pauses from 0 to a quarter of a second, and they end."""
    pacer = Pacer(Pace(duty=duty))
    assert DUTY_MIN <= pacer.duty <= 1.0
    for busy_s in busy:
        pause = pacer.after(busy_s)
        assert 0.0 <= pause <= PAUSE_MAX_S
        pacer.paused(pause)
    left = 0
    while pause := pacer.after(0.0):
        pacer.paused(pause)
        left += 1
        assert left <= 10


@pytest.mark.parametrize(
    ("duty", "speed", "expected"),
    [(1.0, 100.0, 2048), (0.5, None, 2048), (0.5, 1e6, 2048), (0.5, 700.0, 256), (0.5, 1.0, 32)],
)
def test_batches_are_half_a_second_when_paced(
    duty: float, speed: float | None, expected: int
) -> None:
    """Pauses only cool between batches, and a short batch never meets a driver's timeout."""
    assert batch_tokens(2048, duty, speed) == expected


@given(st.integers(1, 16384), st.floats(0.1, 1.0), st.floats(0.1, 1e6))
def test_batches_stay_inside_the_configuration(n_batch: int, duty: float, speed: float) -> None:
    """Never more than ``n_batch``, never nothing."""
    assert 1 <= batch_tokens(n_batch, duty, speed) <= n_batch
