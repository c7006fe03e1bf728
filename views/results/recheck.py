"""Measures a stored recommendation again, and says what has become of it."""

import threading
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Signal, Slot

from app.domain.errors import ErrorInfo
from app.domain.events import TrialProgress
from app.domain.outcome import Outcome
from app.domain.units import significant
from views.bridge import Job, Jobs
from views.port import SessionPort
from views.widgets import Banner
from views.words import number, outcome_label, phase_label

if TYPE_CHECKING:
    from app.session.results import Recheck
    from app.store.records import StoredSweep

translate = QCoreApplication.translate

KIND = "search"
"""The same kind of job as a search: closing the window asks, and both need the engine."""


class Rechecker(QObject):
    """Runs one check at a time and speaks through the page's banner.

    Signals:
        changed: A check has begun or ended.
    """

    changed = Signal()

    def __init__(self, session: SessionPort, jobs: Jobs, banner: Banner, parent: QObject) -> None:
        """Prepare; nothing runs."""
        super().__init__(parent)
        self._session = session
        self._jobs = jobs
        self._banner = banner
        self._job: Job | None = None
        self._has_found = False

    @property
    def is_running(self) -> bool:
        """Whether something is measured now."""
        return self._job is not None

    def look(self, sweep: "StoredSweep") -> None:
        """Say when engine or driver have changed since ``sweep``."""
        if self.is_running or sweep.recommended is None:
            return
        session = self._session
        job = self._jobs.call("changed", lambda: session.results().changed(sweep))
        job.event_arrived.connect(self._on_changes)

    @Slot(object)
    def _on_changes(self, changed: tuple[str, ...]) -> None:
        if changed and not self._banner.text and not self.is_running:
            self._banner.say(changed_text(changed), "warn", self.tr("Check Again"))

    def start(self, sweep: "StoredSweep") -> None:
        """Measure the recommendation of ``sweep`` again."""
        if self.is_running:
            return
        work = partial(_work, self._session, self._jobs, sweep)
        self._has_found = False
        self._banner.say(self.tr("Measuring again…"), action=self.tr("Stop"))
        self._job = self._jobs.start(KIND, work)
        self._job.event_arrived.connect(self._on_event)
        self._job.failed.connect(self._on_failed)
        self._job.ended.connect(self._on_ended)
        self.changed.emit()

    def stop(self) -> None:
        """End the check that runs; what is stored stays as it is."""
        if self._job is not None:
            self._job.cancel()

    @Slot(object)
    def _on_event(self, event: object) -> None:
        if isinstance(event, TrialProgress):
            text = self.tr("Measuring again: {phase}").format(phase=phase_label(event.phase))
            self._banner.say(text, action=self.tr("Stop"))
        elif hasattr(event, "is_outside_noise"):
            self._has_found = True
            self._banner.say(recheck_text(event), recheck_tone(event))  # type: ignore[arg-type]

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        self._has_found = True
        self._banner.show_error(error)

    @Slot(object)
    def _on_ended(self, _job: object) -> None:
        self._job = None
        if not self._has_found:
            self._banner.say(self.tr("Stopped. The stored result is as it was."))
        self.changed.emit()


def _work(
    session: SessionPort, jobs: Jobs, sweep: "StoredSweep", cancel: threading.Event
) -> Iterator[object]:
    with jobs.engine_turn(cancel) as is_ours:
        if is_ours:
            yield from session.results().recheck(sweep, cancel)


def changed_text(changed: tuple[str, ...]) -> str:
    """Return what has changed since a search."""
    names = {
        "engine": translate("Recheck", "the engine build"),
        "driver": translate("Recheck", "the GPU driver"),
    }
    text = translate("Recheck", "Changed since this search: {what}. Its speeds may not hold.")
    return text.format(what=", ".join(names.get(name, name) for name in changed))


def recheck_text(found: "Recheck") -> str:
    """Return the old and the new speed in one sentence."""
    before = significant(found.before.median)
    if found.now is None or found.difference_frac is None:
        text = translate("Recheck", "Was {before} tok/s; now it did not run: {why}.")
        return text.format(before=before, why=outcome_label(found.outcome))
    percent = number(100 * found.difference_frac).replace("-", "−")
    noise = (
        translate("Recheck", "outside noise")
        if found.is_outside_noise
        else translate("Recheck", "within noise")
    )
    text = translate("Recheck", "Was {before}, now {now} tok/s: {percent}\u00a0%, {noise}.")
    return text.format(
        before=before, now=significant(found.now.median),
        percent=percent if percent.startswith("−") else f"+{percent}", noise=noise,
    )  # fmt: skip


def recheck_tone(found: "Recheck") -> str:
    """Return how the news is: bad where it runs no more, a warning where it is slower."""
    if found.now is None or found.outcome is not Outcome.OK:
        return "bad"
    is_loss = found.is_outside_noise and (found.difference_frac or 0) < 0
    return "warn" if is_loss else "good"
