"""Runs the session's work on threads and brings what happens to the GUI thread.

The only place that turns core events into Qt signals. A job's events arrive in order and in
batches, at most 30 times a second, however fast the core produces them; text at most 10 times.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import TokenGenerated
from views.outbox import Outbox

MIN_GAP_MS = 33
TEXT_GAP_MS = 100
"""Text is read, not watched: ten times a second is fluent, and each time lays it out anew."""
BUDGET_NS = 8_000_000
TURN_POLL_S = 0.1

Work = Callable[[threading.Event], Iterable[object]]

_log = logging.getLogger(__name__)


class _Failed:
    """Put last into the box when the work raised."""

    def __init__(self, error: ErrorInfo) -> None:
        self.error = error


class _Ended:
    """Put last into the box, always."""


class Job(QObject):
    """One piece of work on a thread of its own.

    Signals:
        event_arrived: One event of the work (for a call: its result).
        failed: An ``ErrorInfo``; the work raised.
        ended: The job itself, after everything else, exactly once.
    """

    event_arrived = Signal(object)
    failed = Signal(object)
    ended = Signal(object)
    _woken = Signal()

    def __init__(self, kind: str, work: Work, on_cancel: Callable[[], None] | None = None) -> None:
        """Prepare ``work``; nothing runs before ``start``.

        Args:
            kind: What it is, e.g. ``search``; names the thread.
            work: Gets the cancel event and yields events; runs on the thread.
            on_cancel: Further call when cancelled, to wake work that waits.
        """
        super().__init__()
        self.kind = kind
        self._work = work
        self._on_cancel = on_cancel
        self._cancel = threading.Event()
        self._outbox = Outbox(self._wake)
        self._thread = threading.Thread(target=self._run, name=f"job-{kind}", daemon=True)
        self._gap = QTimer(self)
        self._gap.setSingleShot(True)
        self._waiting: deque[object] = deque()
        self._has_ended = False
        self._gap.timeout.connect(self._deliver)
        self._woken.connect(self._on_woken, Qt.ConnectionType.QueuedConnection)

    @property
    def is_cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._cancel.is_set()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def cancel(self) -> None:
        """Ask the work to stop; what it still reports arrives as usual."""
        self._cancel.set()
        if self._on_cancel is not None:
            self._on_cancel()

    def _run(self) -> None:
        try:
            for event in self._work(self._cancel):
                self._outbox.put(event)
        except EnvironmentProblem as problem:
            self._outbox.put(_Failed(problem.info))
        except Exception as error:  # noqa: BLE001 - top frame of the thread
            # A bug, too, must reach the window as a sentence.
            _log.exception("job %s failed", self.kind)
            self._outbox.put(_Failed(bug_info(error)))
        finally:
            self._outbox.put(_Ended())

    def _wake(self) -> None:
        try:
            self._woken.emit()
        except RuntimeError:
            # The window is gone; nobody waits for this job any more.
            _log.debug("job %s outlived the window", self.kind)

    @Slot()
    def _on_woken(self) -> None:
        if not self._gap.isActive():
            self._deliver()

    @Slot()
    def _deliver(self) -> None:
        self._waiting.extend(self._outbox.take())
        if not self._waiting:
            return
        begin_ns = time.perf_counter_ns()
        item: object = None
        while self._waiting:
            item = self._waiting.popleft()
            self._deliver_one(item)
            if time.perf_counter_ns() - begin_ns > BUDGET_NS:
                break
        if not self._has_ended:
            # A long batch goes on after the window has drawn and answered the user.
            self._gap.start(0 if self._waiting else _gap_ms(item))

    def _deliver_one(self, item: object) -> None:
        match item:
            case _Failed(error=error):
                self.failed.emit(error)
            case _Ended():
                self._has_ended = True
                self._gap.stop()
                self._thread.join()
                self.ended.emit(self)
            case _:
                self.event_arrived.emit(item)


class Jobs(QObject):
    """Every job that runs, so that closing the window can ask and wait.

    Signals:
        changed: A job started or ended.
        idle: The last running job ended.
    """

    changed = Signal()
    idle = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        """Start with no job."""
        super().__init__(parent)
        self._running: list[Job] = []
        self._places = (threading.Lock(), threading.Lock())
        self._calls = threading.Lock()

    def start(
        self, kind: str, work: Work, on_cancel: Callable[[], None] | None = None
    ) -> Job:  # fmt: skip
        """Run ``work`` on a thread; connect to the returned job before returning to Qt."""
        job = Job(kind, work, on_cancel)
        job.setParent(self)
        job.ended.connect(self._on_job_ended)
        self._running.append(job)
        job.start()
        self.changed.emit()
        return job

    def call(self, kind: str, function: Callable[[], object]) -> Job:
        """Run ``function`` on a thread; its result is the job's only event."""

        def work(_cancel: threading.Event) -> Iterator[object]:
            # The session takes one short call at a time.
            with self._calls:
                result = function()
            yield result

        return self.start(kind, work)

    @contextmanager
    def engine_turn(self, cancel: threading.Event, *, shares: bool = False) -> Iterator[bool]:
        """Wait for the engine, on a job's thread: a search uses it alone.

        Yields ``False`` when the job was cancelled while it waited.

        Args:
            cancel: Ends the waiting.
            shares: One other that shares may use the engine, too (the lease asks for the room).
        """
        while not (held := self._take(shares=shares)):
            if cancel.wait(TURN_POLL_S):
                yield False
                return
        try:
            yield True
        finally:
            for place in held:
                place.release()

    def _take(self, *, shares: bool) -> list[threading.Lock]:
        """Take one place of the engine, or all; return none where that cannot be now."""
        free = [place for place in self._places if place.acquire(blocking=False)]
        wanted = 1 if shares else len(self._places)
        kept = free[:wanted] if len(free) >= wanted else []
        for place in free[len(kept) :]:
            place.release()
        return kept

    def running(self, kind: str | None = None) -> tuple[Job, ...]:
        """Return the running jobs, or those of one kind."""
        return tuple(job for job in self._running if kind in (None, job.kind))

    def cancel_all(self) -> None:
        """Ask every job to stop."""
        for job in self._running:
            job.cancel()

    @Slot(object)
    def _on_job_ended(self, job: Job) -> None:
        self._running.remove(job)
        job.deleteLater()
        self.changed.emit()
        if not self._running:
            self.idle.emit()


class Latest(QObject):
    """Runs calls one at a time and drops those that a newer one has overtaken.

    Signals:
        result_arrived: Result of the newest call that was run.
        failed: ``ErrorInfo`` of a call.
    """

    result_arrived = Signal(object)
    failed = Signal(object)

    def __init__(self, jobs: Jobs, kind: str, parent: QObject) -> None:
        """Use ``jobs`` for calls of ``kind``."""
        super().__init__(parent)
        self._jobs = jobs
        self._kind = kind
        self._is_busy = False
        self._next: Callable[[], object] | None = None

    def submit(self, function: Callable[[], object]) -> None:
        """Run ``function`` as soon as the running one is done, unless overtaken."""
        if self._is_busy:
            self._next = function
            return
        self._is_busy = True
        job = self._jobs.call(self._kind, function)
        job.event_arrived.connect(self._on_result)
        job.failed.connect(self._on_failed)
        job.ended.connect(self._on_ended)

    @Slot(object)
    def _on_result(self, result: object) -> None:
        if self._next is None:
            self.result_arrived.emit(result)

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        if self._next is None:
            self.failed.emit(error)

    @Slot(object)
    def _on_ended(self, _job: Job) -> None:
        self._is_busy = False
        function, self._next = self._next, None
        if function is not None:
            self.submit(function)


def _gap_ms(last: object) -> int:
    """Return how long to wait after ``last``: long after text only, so that the first is soon."""
    is_text = isinstance(last, TokenGenerated) and bool(last.text)
    return TEXT_GAP_MS if is_text else MIN_GAP_MS


def bug_info(error: BaseException) -> ErrorInfo:
    """Return the sentence for an exception that must not occur."""
    return ErrorInfo(
        code="bug",
        message=f"RigTune made a mistake: {type(error).__name__}: {error}",
        hint="The details are in the log; please report them.",
    )
