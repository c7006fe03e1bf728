"""A search as the wizard follows it: it waits after the plan until the user says go."""

import threading
from collections.abc import Callable, Iterator
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from app.domain.events import (
    SweepEvent,
    SweepFinished,
    SweepPaused,
    SweepPlanned,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from app.domain.sweep import SweepRequest
from views.bridge import Job, Jobs
from views.port import SessionPort

KIND = "search"


class SearchRunner(QObject):
    """Runs one search at a time.

    Signals:
        planned: ``SweepPlan``; nothing is loaded before ``go``.
        trial_started: ``TrialStarted``.
        progressed: ``TrialProgress``.
        trial_finished: ``Trial``.
        paused: Code of a note: the search waits for ``go`` or ``stop``.
        finished: ``SweepResult``, also after a stop.
        failed: ``ErrorInfo``; there is no result.
        ended: Nothing runs any more.
    """

    planned = Signal(object)
    trial_started = Signal(object)
    progressed = Signal(object)
    trial_finished = Signal(object)
    paused = Signal(str)
    finished = Signal(object)
    failed = Signal(object)
    ended = Signal()

    def __init__(self, session: SessionPort, jobs: Jobs, parent: QObject) -> None:
        """Prepare; nothing runs."""
        super().__init__(parent)
        self._session = session
        self._jobs = jobs
        self._job: Job | None = None
        self._is_dropped = False
        self._go = threading.Event()

    @property
    def is_running(self) -> bool:
        """Whether a search (or its plan) is on."""
        return self._job is not None

    def start(self, model: str, request: SweepRequest, *, resume: bool = False) -> None:
        """Plan a search of ``model``; an earlier one is dropped.

        Args:
            model: Path, id or ``demo``.
            request: What is asked.
            resume: Go on with a search of this kind that has not reached its end.
        """
        self.drop()
        # One per job: waking an old job must not carry the new plan out.
        self._go = threading.Event()
        search = partial(self._session.tune, model, request, resume=resume)
        work = _search(search, self._jobs, self._go)
        self._job = self._jobs.start(KIND, work, self._go.set)
        self._is_dropped = False
        self._job.event_arrived.connect(self._on_event)
        self._job.failed.connect(self.failed)
        self._job.ended.connect(self._on_ended)

    def go(self) -> None:
        """Carry the plan out, or go on where the search waits."""
        self._go.set()

    def stop(self) -> None:
        """End the search; what was measured is kept."""
        if self._job is not None:
            self._job.cancel()

    def drop(self) -> None:
        """End the search and hear nothing more of it; it runs until ``ended``."""
        if self._job is None or self._is_dropped:
            return
        self._is_dropped = True
        self._job.event_arrived.disconnect(self._on_event)
        self._job.failed.disconnect(self.failed)
        self._job.cancel()

    @Slot(object)
    def _on_event(self, event: object) -> None:
        match event:
            case SweepPlanned(plan=plan):
                self.planned.emit(plan)
            case TrialStarted():
                self.trial_started.emit(event)
            case TrialProgress():
                self.progressed.emit(event)
            case TrialFinished(trial=trial):
                self.trial_finished.emit(trial)
            case SweepPaused(code=code):
                self.paused.emit(code)
            case SweepFinished(result=result):
                self.finished.emit(result)

    @Slot(object)
    def _on_ended(self, job: Job) -> None:
        if job is self._job:
            self._job = None
            self.ended.emit()


def _search(
    search: Callable[..., Iterator[SweepEvent]], jobs: Jobs, go: threading.Event
) -> Callable[[threading.Event], Iterator[object]]:
    """Return the work: the session's events; it waits once the plan is out, and when told to."""

    def work(cancel: threading.Event) -> Iterator[object]:
        with jobs.engine_turn(cancel) as is_ours:
            if not is_ours:
                return
            for event in search(cancel=cancel):
                if isinstance(event, SweepPlanned | SweepPaused):
                    go.clear()
                yield event
                if isinstance(event, SweepPlanned | SweepPaused) and not cancel.is_set():
                    # Cancelling sets ``go`` after ``cancel``, so this wait always ends.
                    go.wait()
                if isinstance(event, SweepPlanned) and cancel.is_set():
                    return

    return work
