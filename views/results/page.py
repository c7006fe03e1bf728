"""Stored searches: a list, the answer of the one chosen, and what can be done with them."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QInputDialog, QSplitter, QStackedWidget
from typing_extensions import override

from app.domain.errors import ErrorInfo
from app.domain.units import format_tok_s
from views.bridge import Jobs, Latest
from views.page import Page
from views.port import SessionPort
from views.results import work
from views.results.compare import LABEL_SEP, CompareView
from views.results.exporter import Exporter
from views.results.recheck import Rechecker
from views.results.report import file_stem
from views.results.result_view import ResultView
from views.results.toolbar import Toolbar
from views.widgets import Banner, EmptyState, Kit, Table
from views.words import goal_label, local_time, status_label

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.domain.sweep import SweepResult
    from app.store.records import StoredSweep
    from views.port import ResultsPort

MAX_NAME = 120


class ResultsPage(Page):
    """List above, answer below.

    Signals:
        chat_requested: Model path and profile.
        apply_requested: Model path and profile.
        search_requested: Model path and ``Goal``.
        tune_requested: There is nothing yet; the user wants a search.
    """

    chat_requested = Signal(str, str)
    apply_requested = Signal(str, str)
    search_requested = Signal(str, object)
    tune_requested = Signal()

    def __init__(self, kit: Kit, session: SessionPort, jobs: Jobs, view: ResultView) -> None:
        """Build the page around ``view``; the list is read each time it shows."""
        super().__init__(kit, "")
        self.title.setText(self.tr("Results"))
        self._session = session
        self._jobs = jobs
        self._sweeps: tuple[StoredSweep, ...] = ()
        self._shown: int | None = None
        self._loaded: StoredSweep | None = None
        self._result: SweepResult | None = None
        self._results = Latest(jobs, "results", self)
        self._deleted: int | None = None
        self._compared: tuple[str, SweepResult] | None = None
        self.tools = Toolbar(kit)
        self.top.addWidget(self.tools)
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
            [self.tr("Name"), self.tr("Goal"), self.tr("Started"), self.tr("Search"),
             self.tr("Trials"), self.tr("Decode")],
            text_columns=4,
        )  # fmt: skip
        self.table.setMinimumHeight(30 * kit.unit)  # two rows, whatever the size of the text
        self.view, self.compare = view, CompareView(kit)
        self._lower = QStackedWidget()
        self._lower.addWidget(view)
        self._lower.addWidget(self.compare)
        self._split.addWidget(self.table)
        self._split.addWidget(self._lower)
        self._split.setSizes([150, 450])
        self._split.setStretchFactor(1, 1)
        self._split.hide()
        self.body.addWidget(self._split, 1)
        self.rechecker = Rechecker(session, jobs, self.banner, self)
        Exporter(self.view, session, jobs)
        self._connect()

    def _connect(self) -> None:
        self._results.result_arrived.connect(self._on_result)
        self._results.failed.connect(self._on_failed)
        self.table.row_selected.connect(self._on_row_selected)
        self.view.chat_requested.connect(self._on_chat_requested)
        self.view.apply_requested.connect(self._on_apply_requested)
        self.view.search_requested.connect(self._on_search_requested)
        self.compare.closed.connect(self._on_compare_closed)
        self.banner.action_requested.connect(self._on_banner_action)
        self.rechecker.changed.connect(self._show_tools)
        tools = self.tools
        tools.compare.clicked.connect(self._on_compare_clicked)
        tools.rename.clicked.connect(self._on_rename_clicked)
        tools.delete.clicked.connect(self._on_delete_clicked)
        tools.check.clicked.connect(self._on_check_clicked)
        tools.save.clicked.connect(self._on_save_clicked)
        tools.load.clicked.connect(self._on_load_clicked)
        self._show_tools()

    def refresh(self) -> None:
        """Read the list again."""
        job = self._jobs.call("results", self._session.sweeps)
        job.event_arrived.connect(self._on_sweeps)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_sweeps(self, sweeps: "tuple[StoredSweep, ...]") -> None:
        self._sweeps = tuple(sweeps)
        self._empty.setVisible(not sweeps)
        self._split.setVisible(bool(sweeps))
        ids = [sweep.id for sweep in sweeps]
        row = ids.index(self._shown) if self._shown in ids else 0
        with QSignalBlocker(self.table):  # rows have moved: where one was is another now
            self.table.set_rows([_row(sweep) for sweep in sweeps])
            self.table.selectRow(row)
        if sweeps:
            self._show_sweep(sweeps[row])
        else:
            self._shown = self._loaded = None
            self._show_tools()

    @Slot()
    def _show_tools(self) -> None:
        sweep = self._current()
        has_answer = sweep is not None and sweep.recommended is not None
        self.tools.show_state(
            has_row=sweep is not None,
            can_compare=len(self._sweeps) > 1,
            can_check=has_answer and not self.rechecker.is_running,
        )

    @Slot(int)
    def _on_row_selected(self, row: int) -> None:
        self._show_sweep(self._sweeps[row])

    def _show_sweep(self, sweep: "StoredSweep") -> None:
        """Show the answer of ``sweep``; it is read again only where something is different."""
        self._shown = sweep.id
        self._show_tools()
        if sweep != self._loaded:
            self._results.submit(partial(work.read, self._session, sweep))
        else:
            self.rechecker.look(sweep)  # the engine may be another since

    @Slot(object)
    def _on_result(self, found: "tuple[StoredSweep, SweepResult]") -> None:
        sweep, result = found
        if sweep.id != self._shown:
            return  # another row was chosen, or this one deleted, meanwhile
        self._loaded, self._result = sweep, result
        self.view.show_result(result, name_of(sweep), sweep.request.floor_tok_s)
        if self._compared is not None:
            self.compare.show_results(self._compared, (_label(sweep), result))
            if not self.compare.isVisible():
                self.banner.hide()  # the question is answered
            self._lower.setCurrentWidget(self.compare)
        self.rechecker.look(sweep)

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        self.banner.show_error(error)

    @Slot(str)
    def _on_chat_requested(self, profile_id: str) -> None:
        if (sweep := self._current()) is not None:
            self.chat_requested.emit(sweep.model_path, profile_id)

    @Slot(str)
    def _on_apply_requested(self, profile_id: str) -> None:
        if (sweep := self._current()) is not None:
            self.apply_requested.emit(sweep.model_path, profile_id)

    @Slot(object)
    def _on_search_requested(self, goal: object) -> None:
        if (sweep := self._current()) is not None:
            self.search_requested.emit(sweep.model_path, goal)

    def _current(self) -> "StoredSweep | None":
        return next((s for s in self._sweeps if s.id == self._shown), None)

    @Slot()
    def _on_compare_clicked(self) -> None:
        sweep = self._current()
        if sweep is not None and self._result is not None:
            self._compared = (_label(sweep), self._result)
            self.banner.say(self.tr("Choose the other result in the list."))
            self.table.setFocus()

    @Slot()
    def _on_compare_closed(self) -> None:
        self._compared = None
        self.banner.hide()
        self._lower.setCurrentWidget(self.view)

    # --- names, deleting, files ------------------------------------------------------------

    @Slot()
    def _on_rename_clicked(self) -> None:
        sweep = self._current()
        if sweep is None:
            return
        dialog = QInputDialog(self)
        dialog.setWindowTitle(self.tr("Rename"))
        dialog.setLabelText(self.tr("Name of this result"))
        dialog.setTextValue(name_of(sweep))
        dialog.setOkButtonText(self.tr("Rename"))
        dialog.setCancelButtonText(self.tr("Cancel"))
        dialog.textValueSelected.connect(self.rename)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    @Slot(str)
    def rename(self, name: str) -> None:
        """Give the chosen result a name."""
        sweep = self._current()
        if sweep is not None and name.strip():
            self._change(partial(work.rename, sweep_id=sweep.id, name=name.strip()[:MAX_NAME]))

    @Slot()
    def _on_delete_clicked(self) -> None:
        sweep = self._current()
        if sweep is None:
            return
        self._deleted = sweep.id
        self._change(partial(work.delete, sweep_id=sweep.id))
        text = self.tr("Deleted: {name}").format(name=name_of(sweep))
        self.banner.say(text, "info", self.tr("Undo"))

    @Slot()
    def _on_banner_action(self) -> None:
        if self.rechecker.is_running:
            self.rechecker.stop()
        elif self._deleted is not None:
            deleted, self._deleted = self._deleted, None
            self._shown = deleted
            self.banner.hide()
            self._change(partial(work.restore, sweep_id=deleted))
        else:
            self._on_check_clicked()

    def _change(self, action: "Callable[[ResultsPort], None]") -> None:
        session = self._session
        job = self._jobs.call("results", lambda: action(session.results()))
        job.ended.connect(self._on_changed)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_changed(self, _job: object) -> None:
        self.refresh()

    @Slot()
    def _on_check_clicked(self) -> None:
        if (sweep := self._current()) is not None:
            self._deleted = None
            self.rechecker.start(sweep)

    @Slot()
    def _on_save_clicked(self) -> None:
        sweep = self._current()
        if sweep is None:
            return
        dialog = QFileDialog(self, self.tr("Save the result"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(self.tr("RigTune results (*.json)"))
        dialog.setDefaultSuffix("json")
        dialog.selectFile(f"{file_stem(name_of(sweep))}.json")
        dialog.fileSelected.connect(self.save_to)
        dialog.open()

    @Slot(str)
    def save_to(self, path: str) -> None:
        """Write the chosen result to ``path``."""
        if self._shown is None:
            return
        job = self._jobs.call("results", partial(work.save, self._session, self._shown, path))
        job.event_arrived.connect(self._on_saved)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_saved(self, path: str) -> None:
        self._deleted = None
        self.banner.say(self.tr("Written: {path}").format(path=path), "good")

    @Slot()
    def _on_load_clicked(self) -> None:
        dialog = QFileDialog(self, self.tr("Open a result"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilter(self.tr("RigTune results (*.json)"))
        dialog.fileSelected.connect(self.load_from)
        dialog.open()

    @Slot(str)
    def load_from(self, path: str) -> None:
        """Take a result from a file into the list."""
        job = self._jobs.call("results", partial(work.load, self._session, path))
        job.event_arrived.connect(self._on_loaded)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_loaded(self, sweep_id: int) -> None:
        self._shown = sweep_id
        self._deleted = None
        self.banner.say(self.tr("The result is in the list now."), "good")
        self.refresh()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self.rechecker.is_running and self._deleted is None and self._compared is None:
            self.banner.hide()  # what it said was of the last visit
        self.refresh()


def name_of(sweep: "StoredSweep") -> str:
    """Return the user's name for a search, or else its model's."""
    return sweep.name or sweep.model_name


def _label(sweep: "StoredSweep") -> str:
    return f"{name_of(sweep)}{LABEL_SEP}{local_time(sweep.created_utc)}"


def _row(sweep: "StoredSweep") -> tuple[str, ...]:
    point = sweep.recommended
    decode = point.decode_tok_s if point else None
    return (
        name_of(sweep),
        goal_label(sweep.request.goal),
        local_time(sweep.created_utc),
        status_label(sweep.status),
        str(sweep.n_trials),
        format_tok_s(decode.median if decode else None),
    )
