"""The OpenAI server's pauses: in proportion to its work, none for its idle time."""

import pytest

from app.domain.pacing import Pace
from app.worker.paced import PacedDecode


class Bench:
    """A decode that takes a tenth of a second on a clock that is turned by hand."""

    def __init__(self) -> None:
        self.now_s, self.slept_s, self.is_cancelled = 0.0, 0.0, False
        self.pace: Pace | None = None
        self.decode = PacedDecode(
            self._work, self, lambda: self.is_cancelled, clock_s=lambda: self.now_s,
            sleep=self._sleep,
        )  # fmt: skip

    def new_pace(self) -> Pace | None:
        pace, self.pace = self.pace, None
        return pace

    def _work(self, _batch: object) -> None:
        self.now_s += 0.1

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.slept_s += seconds


def test_full_pace_never_pauses() -> None:
    """Nobody asked for pauses: there are none."""
    bench = Bench()
    for _ in range(20):
        bench.decode(None)
    assert bench.slept_s == 0.0


def test_half_the_time_is_paused() -> None:
    """At duty 0.5 twenty decodes of 0.1 s are followed by as many seconds of pause."""
    bench = Bench()
    bench.pace = Pace(duty=0.5)
    for _ in range(20):
        bench.decode(None)
    assert bench.slept_s == pytest.approx(2.0, rel=0.1)


def test_idle_time_is_not_work() -> None:
    """A minute without requests does not make the next token wait."""
    bench = Bench()
    bench.pace = Pace(duty=0.5)
    bench.decode(None)
    bench.now_s += 60.0
    before_s = bench.slept_s
    bench.decode(None)
    assert bench.slept_s - before_s <= 0.25


def test_stop_ends_a_pause() -> None:
    """A server that is to end does not sleep on."""
    bench = Bench()
    bench.pace, bench.is_cancelled = Pace(duty=0.1), True
    bench.decode(None)
    assert bench.slept_s == 0.0
