"""Asks before a search goes on after the power source has changed underneath it."""

import argparse
import sys

from app.advice.text import render
from app.cli.output import escape, progress_console
from app.domain.machine import PowerSource
from app.session import Session


class PowerWatch:
    """Compares the power source after each trial with the one before.

    The search stands still while the question is open: it goes on when the next event is taken.
    """

    def __init__(self, session: Session, args: argparse.Namespace) -> None:
        """Take the source of now as given; a recording has none."""
        self._session = None if args.replay else session
        self._is_quiet = args.progress == "none"
        self._source = self._now()

    def may_go_on(self) -> bool:
        """Return whether to go on; asks where somebody can answer, else goes on and says so."""
        now, before = self._now(), self._source
        if PowerSource.UNKNOWN in (now, before) or now is before:
            self._source = before if now is PowerSource.UNKNOWN else now
            return True
        self._source = now
        console = progress_console()
        text = render("note", f"now_on_{now.value}", {})
        if self._is_quiet or not sys.stdin.isatty():
            console.print(escape(text))
            return True
        console.print(f"{escape(text)} {escape('[Enter = go on, s = stop and keep the rest]')}")
        return sys.stdin.readline().strip().lower() not in {"s", "stop", "n", "no"}

    def _now(self) -> PowerSource:
        sample = self._session.telemetry().latest_host() if self._session else None
        return PowerSource.UNKNOWN if sample is None else sample.power_source
