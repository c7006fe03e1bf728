"""When to pause between pieces of work, so that a device runs cooler without anybody's rights.

A duty cycle ``d`` means that the device works the share ``d`` of the time, so its mean draw is
about ``idle + d * (busy - idle)``. The worker asks after every token and every prefill batch; the
pauses are short and even, because a steady slower stream reads better than a stuttering one.
"""

from app.domain.record import Record

DUTY_MIN = 0.1
"""Slowest pace: still an answer, and about a tenth of the busy draw above idle."""

PAUSE_MIN_S = 0.002
"""Shorter pauses are saved up: a sleep is no more precise than that."""

PAUSE_MAX_S = 0.25
"""Longest single pause, so that cancelling takes effect in time."""

DEBT_MAX_S = 2.0
"""Pauses saved up beyond this are forgotten: a new duty must not wait for an old one."""

BATCH_MAX_S = 0.5
"""Longest prefill batch while paced; also far below the 2 s after which Windows resets a GPU."""


class Pace(Record, frozen=True, kw_only=True):
    """How much of the time to work: ``duty`` 0.1–1, 1 = never pause."""

    duty: float = 1.0


class Pacer:
    """Turns busy time into pauses. Pure: it neither sleeps nor reads a clock."""

    def __init__(self, pace: Pace | None = None) -> None:
        """Start without debt."""
        self._duty = 1.0
        self._debt_s = 0.0
        self.set(pace or Pace())

    @property
    def duty(self) -> float:
        """The duty cycle in force, 0.1–1."""
        return self._duty

    def set(self, pace: Pace) -> None:
        """Follow ``pace`` from now on; full speed forgets what was saved up."""
        duty = pace.duty
        self._duty = 1.0 if duty != duty else min(1.0, max(DUTY_MIN, duty))  # noqa: PLR0124 - NaN
        if self._duty == 1.0:
            self._debt_s = 0.0

    def after(self, busy_s: float) -> float:
        """Return how long to pause now, seconds (0 = go on).

        Args:
            busy_s: Seconds of work since the last call, pauses excluded.
        """
        owed_s = max(0.0, busy_s) * (1.0 / self._duty - 1.0)
        self._debt_s = min(DEBT_MAX_S, self._debt_s + owed_s)
        if self._debt_s < PAUSE_MIN_S:
            return 0.0
        return min(self._debt_s, PAUSE_MAX_S)

    def paused(self, pause_s: float) -> None:
        """Note how long the pause really took (systems sleep longer than asked)."""
        self._debt_s = max(-PAUSE_MAX_S, self._debt_s - max(0.0, pause_s))


def batch_tokens(n_batch: int, duty: float, prefill_tok_s: float | None) -> int:
    """Return how many prompt tokens to decode at once at this pace.

    At full speed the whole ``n_batch``. Paced, no more than about half a second of work, because
    pauses only cool between batches; halved down to 32 so that kernels keep their usual shapes.

    Args:
        n_batch: The configuration's own batch, tokens.
        duty: Duty cycle in force.
        prefill_tok_s: Speed of the batches so far; ``None`` before the first one.
    """
    if duty >= 1.0 or prefill_tok_s is None:
        return n_batch
    size = n_batch
    while size > 32 and size > BATCH_MAX_S * prefill_tok_s:
        size //= 2
    return max(1, min(n_batch, max(size, 32)))
