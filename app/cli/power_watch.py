"""Asks before a search goes on after the power source has changed underneath it."""

import sys
from collections.abc import Callable

from app.advice.text import render
from app.cli.output import escape, progress_console
from app.domain.machine import HostSample, PowerSource


class PowerWatch:
    """Compares the power source after each trial with the one before.

    The search stands still while the question is open: it goes on when the next event is taken.
    """

    def __init__(self, latest_host: Callable[[], HostSample | None], *, is_quiet: bool) -> None:
        """Take the source of now as given.

        Args:
            latest_host: Reads the host; ``None`` = not known (a recording has no plug).
            is_quiet: Never ask.
        """
        self._latest_host = latest_host
        self._is_quiet = is_quiet
        self._is_asked = False  # the sweep itself asks about the change that is seen next
        self._source = self._now()

    def leave_to_sweep(self) -> None:
        """Take note that the sweep asks about a change: whenever it is seen here, it is known."""
        before = self._source
        self._is_asked = True
        self._is_asked = self.may_go_on() and self._source is before

    def may_go_on(self) -> bool:
        """Return whether to go on; asks where somebody can answer, else goes on and says so."""
        now, before = self._now(), self._source
        if PowerSource.UNKNOWN in (now, before) or now is before:
            self._source = before if now is PowerSource.UNKNOWN else now
            return True
        self._source = now
        if self._is_asked:
            self._is_asked = False
            return True
        console = progress_console()
        text = render("note", f"now_on_{now.value}", {})
        if self._is_quiet or not sys.stdin.isatty():
            console.print(escape(text))
            return True
        console.print(f"{escape(text)} {escape('[Enter = go on, s = stop and keep the rest]')}")
        return sys.stdin.readline().strip().lower() not in {"s", "stop", "n", "no"}

    def _now(self) -> PowerSource:
        sample = self._latest_host()
        return PowerSource.UNKNOWN if sample is None else sample.power_source
