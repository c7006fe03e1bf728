"""Decode speed for the trend: without pauses, and without what a fuller context costs."""

import pytest

from app.power.speed import Load, SpeedWatch

LOAD = Load(weights_bytes=4_000_000, kv_bytes_per_token=1000)


def test_pauses_are_taken_out() -> None:
    """Half the time at work and ten tokens a second are twenty tokens per second of work."""
    watch = SpeedWatch()
    assert watch.speed(0.0, 5, 5, 0.5) is None
    assert watch.speed(1.0, 15, 15, 0.5) == pytest.approx(20.0)


def test_a_filling_context_is_no_heat() -> None:
    """Tokens that read a larger cache count as much as the first ones."""
    watch, n_tok, now_s, speeds = SpeedWatch(LOAD), 0, 0.0, []
    for _ in range(60):
        now_s += 0.01 * (1 + n_tok * 1000 / 4_000_000) * 100
        n_tok += 100
        speeds.append(watch.speed(now_s, n_tok, n_tok, 1.0))
    seen = [s for s in speeds if s is not None]
    assert max(seen) / min(seen) < 1.05


def test_real_slowdown_shows() -> None:
    """The same depth at half the speed is half the speed."""
    watch = SpeedWatch(LOAD)
    watch.speed(0.0, 5, 2000, 1.0)
    fast, slow = watch.speed(1.0, 105, 2000, 1.0), watch.speed(3.0, 205, 2000, 1.0)
    assert fast is not None
    assert slow == pytest.approx(fast / 2)


def test_nothing_decoded_is_no_speed() -> None:
    """Prefill, idle time and a new answer say nothing."""
    watch = SpeedWatch(LOAD)
    watch.speed(0.0, 50, 50, 1.0)
    assert watch.speed(1.0, 50, 50, 1.0) is None
    assert watch.speed(2.0, 3, 3, 1.0) is None
    watch.rest()
    assert watch.speed(3.0, 9, 9, 1.0) is None


def test_the_stretch_that_holds_prefill_says_nothing() -> None:
    """Half a second of prefill before the first token is not slow writing."""
    watch = SpeedWatch()
    watch.speed(0.0, 0, 0, 1.0)
    assert watch.speed(1.0, 20, 20, 1.0) is None
    assert watch.speed(2.0, 60, 60, 1.0) == pytest.approx(40.0)
