"""Pauses between the pieces of work of the OpenAI server, which decodes by itself."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from app.domain.pacing import Pace, Pacer

_NAP_S = 0.05
_IDLE_S = 0.25
"""A longer gap between two decodes is a server without requests, not work."""


class Link(Protocol):
    """Where a new pace comes from."""

    def new_pace(self) -> Pace | None:
        """Return the pace asked for since the last call, if any."""
        ...


class PacedDecode:
    """A decode function with pauses after it; used by the server's own threads, one at a time."""

    def __init__(
        self,
        decode: Callable[[Any], None],
        link: Link,
        is_cancelled: Callable[[], bool],
        *,
        clock_s: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wrap ``decode``; at full pace nothing is added but a look at the clock."""
        self._decode, self._link, self._is_cancelled = decode, link, is_cancelled
        self._clock_s, self._sleep = clock_s, sleep
        self._pacer = Pacer()
        self._end_s = clock_s()

    def __call__(self, batch: Any) -> None:
        """Decode one batch, then pause as the pace asks."""
        begin_s = self._clock_s()
        if begin_s - self._end_s > _IDLE_S:
            self._end_s = begin_s
        self._decode(batch)
        if (pace := self._link.new_pace()) is not None:
            self._pacer.set(pace)
        pause_s = self._pacer.after(self._clock_s() - self._end_s)
        self._end_s = self._clock_s()
        while (left_s := self._end_s + pause_s - self._clock_s()) > 0:
            if self._is_cancelled():
                break
            self._sleep(min(_NAP_S, left_s))
        now_s = self._clock_s()
        if pause_s:
            self._pacer.paused(now_s - self._end_s)
        self._end_s = now_s
