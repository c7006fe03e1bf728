"""The last search where it has not reached its end: said at the start, and gone on with."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from views.bridge import Jobs
from views.port import SessionPort
from views.widgets import Banner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.domain.sweep import SweepResult
    from app.store.records import StoredSweep


class Unfinished(QObject):
    """Offers to go on with the last search: the window was killed, say, or the power went.

    Signals:
        go_on_requested: ``StoredSweep``.
    """

    go_on_requested = Signal(object)

    def __init__(self, session: SessionPort, jobs: Jobs, banner: Banner, parent: QObject) -> None:
        """Say it in ``banner``, once ``look`` has found one."""
        super().__init__(parent)
        self._session = session
        self._jobs = jobs
        self._banner = banner
        self._sweep: StoredSweep | None = None
        self._is_over = False
        banner.action_requested.connect(self._on_action)

    def look(self) -> None:
        """Look at the last search."""
        job = self._jobs.call("results", self._session.sweeps)
        job.event_arrived.connect(self._on_sweeps)

    def forget(self) -> None:
        """Offer nothing any more: a search begins."""
        self._is_over = True
        if self._sweep is not None:
            self._banner.hide()

    def fetch(self, sweep_id: int, show: "Callable[[SweepResult], None]") -> None:
        """Have ``show`` told what a search had measured before."""
        job = self._jobs.call("results", partial(self._session.sweep, sweep_id))
        job.event_arrived.connect(show)

    @Slot(object)
    def _on_sweeps(self, sweeps: "Sequence[StoredSweep]") -> None:
        last = next(iter(sweeps), None)
        if self._is_over or last is None or not last.can_resume:
            return
        self._sweep = last
        # It may run in another window: what has not ended need not have failed.
        text = self.tr(
            "The last search, of {model}, has not reached its end. What it measured is kept."
        )
        self._banner.say(text.format(model=last.model_name), action=self.tr("Go On"))

    @Slot()
    def _on_action(self) -> None:
        if self._sweep is not None:
            self.go_on_requested.emit(self._sweep)
