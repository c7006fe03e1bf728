"""Notices that decode becomes slower while nothing was changed: heat that no sensor shows.

Core temperature alone misses memory that overheats (GDDR6X without a readable sensor slows down
at an unmoved 75 °C core), so the speed itself is the last sensor.
"""

import msgspec

from app.domain.record import Record

BUCKET_S = 60.0
MIN_SAMPLES = 5
FALL_FRAC = 0.15
BUCKETS_NEEDED = 2


class Trend(Record, frozen=True, kw_only=True):
    """Means of one minute each, against the best one since anything was changed.

    Attributes:
        start_s: Start of the minute being filled.
        total: Sum of its speeds.
        n: How many.
        best: Best full minute since the last change.
        last: Last full minute.
        low: Full minutes in a row that are far below ``best``.
    """

    start_s: float | None = None
    total: float = 0.0
    n: int = 0
    best: float | None = None
    last: float | None = None
    low: int = 0

    @property
    def is_falling(self) -> bool:
        """Whether the speed has fallen by 15 % or more, two minutes in a row."""
        return self.low >= BUCKETS_NEEDED


def follow(trend: Trend, speed: float | None, now_s: float) -> Trend:
    """Return the trend after one more reading (``None`` = nothing was decoded)."""
    if trend.start_s is None or now_s < trend.start_s:
        trend = msgspec.structs.replace(trend, start_s=now_s, total=0.0, n=0)
    elif now_s - trend.start_s >= BUCKET_S:
        trend = _close_bucket(trend, now_s)
    if speed is None or speed <= 0:
        return trend
    return msgspec.structs.replace(trend, total=trend.total + speed, n=trend.n + 1)


def _close_bucket(trend: Trend, now_s: float) -> Trend:
    fresh = {"start_s": now_s, "total": 0.0, "n": 0}
    if trend.n < MIN_SAMPLES:
        return msgspec.structs.replace(trend, **fresh)
    mean = trend.total / trend.n
    best = mean if trend.best is None else max(trend.best, mean)
    low = trend.low + 1 if mean < best * (1 - FALL_FRAC) else 0
    return msgspec.structs.replace(trend, best=best, last=mean, low=low, **fresh)
