"""Whether the speed of the first ten minutes was kept, so that a fall is never silent.

What is promised is 5 %: ten minutes slower than that are told, whatever it was that took the speed.
"""

import msgspec

from app.domain.record import Record

WINDOW_S = 600.0
"""Of work; shorter answers say nothing of what lasts."""

FALL_FRAC = 0.05


class Kept(Record, frozen=True, kw_only=True):
    """Mean times per token, pauses included, in seconds.

    Attributes:
        first: In the first ten minutes of work; ``None`` = they are not over.
        last: In the last full ten minutes.
        seen_s: Seconds of work in the ten minutes that run.
        written_s: Seconds of them in which was written.
        tokens: Tokens written in them.
    """

    first: float | None = None
    last: float | None = None
    seen_s: float = 0.0
    written_s: float = 0.0
    tokens: float = 0.0

    @property
    def lost_frac(self) -> float:
        """Return how much more time a token takes than in the first ten minutes, 0 or more."""
        if self.first is None or self.last is None:
            return 0.0
        return max(0.0, self.last / self.first - 1.0)


def keep(kept: Kept, speed: float | None, duty: float, dt_s: float) -> Kept:
    """Return the state after one more second of work.

    Args:
        kept: The state so far.
        speed: Decode speed without pauses, tok/s; ``None`` = nothing was written.
        duty: Share of the time that is worked.
        dt_s: Seconds since the reading before.
    """
    kept = msgspec.structs.replace(kept, seen_s=kept.seen_s + dt_s)
    if speed is not None and speed > 0:
        tokens = kept.tokens + speed * duty * dt_s
        kept = msgspec.structs.replace(kept, tokens=tokens, written_s=kept.written_s + dt_s)
    if kept.seen_s < WINDOW_S:
        return kept
    mean = kept.written_s / kept.tokens if kept.tokens else None
    first = mean if kept.first is None else kept.first
    return Kept(first=first, last=mean)
