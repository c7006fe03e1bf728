"""Waits until a device that slowed itself down has cooled: the gate before the next trial."""

import time
from collections.abc import Callable, Generator

from app.domain.events import TrialProgress
from app.domain.trial import TelemetryWindow

DROP_C = 8.0
MAX_S = 60.0
"""A card in a warm case may never get that cool; measuring goes on, flagged again."""
TICK_S = 0.1
_SLOWING = ("thermal", "slowdown", "brake", "prochot")

TempNow = Callable[[str], float | None]


def throttled_gpus(window: TelemetryWindow | None) -> tuple[str, ...]:
    """Return the GPUs that slowed down from heat or a power brake; a power limit is normal."""
    if window is None:
        return ()
    return tuple(
        key
        for key, reasons in window.throttle.items()
        if any(word in reason for reason in reasons for word in _SLOWING)
    )


class CoolDown:
    """Remembers how hot throttled GPUs were, and holds the next trial until they are cooler."""

    def __init__(self, temp_now: TempNow, clock: Callable[[], float] = time.monotonic) -> None:
        """Start cold.

        Args:
            temp_now: Reads a GPU's temperature, °C; ``None`` = cannot be read.
            clock: Seconds.
        """
        self._temp_now = temp_now
        self._clock = clock
        self._peaks: dict[str, float] = {}

    def note(self, window: TelemetryWindow | None) -> None:
        """Take note of a trial's end."""
        for key in throttled_gpus(window):
            assert window is not None
            peak = window.temp_max_c.get(key)
            if peak is not None:
                self._peaks[key] = peak

    def wait(self, sleep: Callable[[float], None] = time.sleep) -> Generator[TrialProgress]:
        """Yield until every noted GPU is 8 °C below its peak, at most a minute."""
        deadline_s = self._clock() + MAX_S
        while self._clock() < deadline_s and any(self._is_hot(k) for k in self._peaks):
            yield TrialProgress(phase="cool_down")
            sleep(TICK_S)
        self._peaks.clear()

    def _is_hot(self, key: str) -> bool:
        now = self._temp_now(key)
        return now is not None and now > self._peaks[key] - DROP_C
