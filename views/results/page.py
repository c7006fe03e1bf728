"""Stored searches: a list, and the answer of the one chosen."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QSplitter
from typing_extensions import override

from app.domain.errors import ErrorInfo
from app.domain.sweep import SweepResult
from app.domain.units import format_tok_s
from views.bridge import Jobs
from views.page import Page
from views.port import SessionPort
from views.results.exporter import Exporter
from views.results.result_view import ResultView
from views.widgets import Banner, EmptyState, Kit, Table
from views.words import goal_label, status_label

if TYPE_CHECKING:
    from app.store.records import StoredSweep


class ResultsPage(Page):
    """List above, answer below.

    Signals:
        chat_requested: Model path and profile.
        tune_requested: There is nothing yet; the user wants a search.
    """

    chat_requested = Signal(str, str)
    tune_requested = Signal()

    def __init__(self, kit: Kit, session: SessionPort, jobs: Jobs) -> None:
        """Build the page; the list is read each time it shows."""
        super().__init__(kit, "")
        self.title.setText(self.tr("Results"))
        self._session = session
        self._jobs = jobs
        self._sweeps: tuple[StoredSweep, ...] = ()
        self._shown: int | None = None
        self.banner = Banner(kit)
        self.body.addWidget(self.banner)
        self._empty = EmptyState(
            kit, "results", self.tr("No results yet"),
            self.tr("Each search is kept here with everything it measured."),
            self.tr("Find Best Settings"),
        )  # fmt: skip
        self._empty.action_requested.connect(self.tune_requested)
        self.body.addWidget(self._empty, 1)
        self._split = QSplitter(Qt.Orientation.Vertical)
        self._split.setChildrenCollapsible(False)
        self.table = Table(
            kit, self.tr("Stored searches"),
            [self.tr("Model"), self.tr("Goal"), self.tr("Started"), self.tr("Search"),
             self.tr("Trials"), self.tr("Decode")],
            text_columns=4,
        )  # fmt: skip
        self.view = ResultView(kit)
        Exporter(self.view, session, jobs)
        self._split.addWidget(self.table)
        self._split.addWidget(self.view)
        self._split.setSizes([150, 450])
        self._split.setStretchFactor(1, 1)
        self._split.hide()
        self.body.addWidget(self._split, 1)
        self.table.row_selected.connect(self._on_row_selected)
        self.view.chat_requested.connect(self._on_chat_requested)

    def refresh(self) -> None:
        """Read the list again."""
        job = self._jobs.call("results", self._session.sweeps)
        job.event_arrived.connect(self._on_sweeps)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_sweeps(self, sweeps: "tuple[StoredSweep, ...]") -> None:
        shown_before = self._shown
        self._sweeps = tuple(sweeps)
        self._empty.setVisible(not sweeps)
        self._split.setVisible(bool(sweeps))
        self.table.set_rows([_row(sweep) for sweep in sweeps])
        ids = [sweep.id for sweep in sweeps]
        if ids:
            self.table.selectRow(ids.index(shown_before) if shown_before in ids else 0)

    @Slot(int)
    def _on_row_selected(self, row: int) -> None:
        sweep = self._sweeps[row]
        if sweep.id == self._shown:
            return
        self._shown = sweep.id
        job = self._jobs.call("results", partial(self._session.sweep, sweep.id))
        job.event_arrived.connect(self._on_result)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_result(self, result: SweepResult) -> None:
        sweep = self._current()
        if sweep is not None:
            self.view.show_result(result, sweep.model_name, sweep.request.floor_tok_s)

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        self.banner.show_error(error)

    @Slot(str)
    def _on_chat_requested(self, profile_id: str) -> None:
        sweep = self._current()
        if sweep is not None:
            self.chat_requested.emit(sweep.model_path, profile_id)

    def _current(self) -> "StoredSweep | None":
        return next((s for s in self._sweeps if s.id == self._shown), None)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()


def _row(sweep: "StoredSweep") -> tuple[str, ...]:
    point = sweep.recommended
    decode = point.decode_tok_s if point else None
    return (
        sweep.model_name,
        goal_label(sweep.request.goal),
        sweep.created_utc[:16].replace("T", " "),
        status_label(sweep.status),
        str(sweep.n_trials),
        format_tok_s(decode.median if decode else None),
    )
