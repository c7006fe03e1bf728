"""One thread that reads one probe: drift-free, on demand, and alone in its failures."""

import logging
import threading
import time
from collections.abc import Callable
from enum import Enum

LOG = logging.getLogger(__name__)
BACK_OFF = 10
"""Intervals to wait after a reading failed: a driver in trouble is not hammered."""
JOIN_S = 2.0
REST_AFTER_S = 5.0
"""Without an interval: seconds after a reading that was asked for until the device may rest."""


class Job(Enum):
    """What the thread does next."""

    READ = "read"
    REST = "rest"
    STOP = "stop"


def next_deadline(deadline_s: float, now_s: float, interval_s: float) -> float:
    """Return the next beat after ``now_s`` on the grid of ``deadline_s``; missed beats are skipped.

    Adding to the deadline instead of to "now" keeps the schedule from drifting by the time each
    reading takes.
    """
    missed = max(0, int((now_s - deadline_s) // interval_s))
    return deadline_s + (missed + 1) * interval_s


class Sampler:
    """Calls ``read`` every interval on its own thread, and when asked to."""

    def __init__(
        self,
        name: str,
        read: Callable[[], None],
        close: Callable[[], None],
        interval_s: float | None,
        rest: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare the thread.

        Args:
            name: For logs and the thread.
            read: Takes one reading; may block, which delays only this sampler.
            close: Releases the probe; called on the same thread, after the last reading.
            interval_s: Seconds between readings; ``None`` = only when asked.
            rest: Lets go of what keeps the device awake; called when readings pause, and some
                time after one on demand.
        """
        self.name = name
        self._read, self._close, self._rest = read, close, rest
        self._interval_s = interval_s
        self._deadline_s = time.perf_counter()
        self._rest_s = None if interval_s is not None else self._deadline_s
        self._ready = threading.Condition()
        self._wanted = self._done = 0
        self._reading_since_s: float | None = None
        self._before: list[Callable[[], None]] = []
        self._stopped = False
        # A daemon: a driver call that never returns must not keep the program alive.
        self._thread = threading.Thread(target=self._run, name=f"probe-{name}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def set_interval(self, interval_s: float | None) -> None:
        """Change the pace; the next beat counts from now."""
        with self._ready:
            self._interval_s = interval_s
            self._deadline_s = time.perf_counter() + (interval_s or 0.0)
            self._rest_s = None if interval_s is not None else self._deadline_s
            self._ready.notify_all()

    def request(self, before: Callable[[], None] | None = None) -> int:
        """Ask for a reading now, ``before`` being called first on the probe's thread.

        Returns:
            A ticket for ``wait``.
        """
        with self._ready:
            if before is not None:
                self._before.append(before)
            self._wanted += 1
            self._ready.notify_all()
            return self._wanted

    def wait(self, ticket: int, timeout_s: float) -> bool:
        """Wait until the reading of ``ticket`` is there; ``False`` when it is not in time.

        A reading that already hangs is waited for once, not at every question.
        """
        with self._ready:
            since_s = self._reading_since_s
            if since_s is not None:
                timeout_s = min(timeout_s, since_s + timeout_s - time.perf_counter())
            return self._ready.wait_for(
                lambda: self._done >= ticket or self._stopped, max(0.0, timeout_s)
            ) and (self._done >= ticket)

    def stop(self) -> None:
        """Ask the thread to end; does not wait."""
        with self._ready:
            self._stopped = True
            self._ready.notify_all()

    def join(self, timeout_s: float = JOIN_S) -> bool:
        """Wait for the thread; ``False`` when a reading hangs and it had to be left behind."""
        if self._thread.ident is None:
            self._try(self._close)
        else:
            self._thread.join(max(0.0, timeout_s))
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (job := self._next()) is not Job.STOP:
            if job is Job.REST:
                self._try(self._rest)
                continue
            with self._ready:
                ticket = self._wanted
                before, self._before = self._before, []
                self._reading_since_s = time.perf_counter()
            failed = not all(self._try(action) for action in (*before, self._read))
            with self._ready:
                self._done = ticket
                self._reading_since_s = None
                self._ready.notify_all()
                now = time.perf_counter()
                if self._interval_s is not None:
                    step = self._interval_s * (BACK_OFF if failed else 1)
                    self._deadline_s = next_deadline(self._deadline_s, now, step)
                else:
                    self._rest_s = now + REST_AFTER_S
        self._try(self._close)

    def _next(self) -> Job:
        """Wait for the next beat or request."""
        with self._ready:
            while not self._stopped:
                if self._wanted != self._done:
                    return Job.READ
                is_paused = self._interval_s is None
                due_s = self._rest_s if is_paused else self._deadline_s
                left_s = None if due_s is None else due_s - time.perf_counter()
                if left_s is None or left_s > 0:
                    self._ready.wait(left_s)
                    continue
                self._rest_s = None
                return Job.REST if is_paused else Job.READ
            return Job.STOP

    def _try(self, action: Callable[[], None]) -> bool:
        try:
            action()
        except Exception:
            # The thread's top frame: one broken driver must not end the others' telemetry.
            LOG.exception("probe %s failed", self.name)
            return False
        return True
