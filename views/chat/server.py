"""Serves the chosen model to other programs: address, token, requests, stop."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLabel, QPushButton, QSpinBox
from typing_extensions import override

from app.domain.events import ServerProgress, ServerStarted, ServerStopped, TrialProgress
from app.domain.record import Record
from views.bridge import Job, Jobs
from views.chat.picker import DEMO, Choice
from views.port import SessionPort
from views.theme import use_tabular_digits
from views.widgets import Card, Kit, Pill, text_label
from views.widgets.basics import indent
from views.widgets.flow import Flow
from views.words import settings_text


class ServerNamed(Record, frozen=True, kw_only=True):
    """Who the server is to its clients."""

    token: str
    alias: str


class ServerPanel(Card):
    """A form with the server's state.

    Signals:
        starting: The server needs the engine now.
        failed: ``ErrorInfo``.
    """

    starting = Signal()
    failed = Signal(object)

    def __init__(self, kit: Kit, session: SessionPort, jobs: Jobs) -> None:
        """Prepare; it is built when it is first looked at, so that the page is there soon."""
        super().__init__(kit)
        self._kit = kit
        self._is_built = False
        self._session = session
        self._jobs = jobs
        self._job: Job | None = None
        self._choice: Callable[[], Choice] = lambda: Choice(model=DEMO)

    def _build(self) -> None:
        kit = self._kit
        text = self.tr(
            "Other programs on this machine can use the chosen model through an OpenAI-compatible "
            "address. Nothing is reachable from outside, and the token is new each time."
        )
        self.column.addWidget(text_label(text, muted=True))
        row = Flow(2 * kit.unit)
        label = QLabel(self.tr("&Port"))
        self.port = QSpinBox()
        indent(self.port)
        self.port.setRange(0, 65535)
        self.port.setSpecialValueText(self.tr("any free one"))
        self.port.setAccessibleName(self.tr("Port"))
        label.setBuddy(self.port)
        self.start = kit.button(self.tr("Start Server"), "start", "primary")
        self.stop = kit.button(self.tr("Stop Server"), "stop")
        self.state = Pill(kit)
        for widget in (label, self.port, self.start, self.stop, self.state):
            row.addWidget(widget)
        self.column.addWidget(row)
        self._form = QFormLayout()
        self._form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        self.column.addLayout(self._form)
        self.address = self._line(self.tr("Address"), self.tr("Copy the address"))
        self.token = self._line(self.tr("API key"), self.tr("Copy the API key"))
        self.model = self._line(self.tr("Model"), self.tr("Copy the model's name"))
        self.requests = text_label()
        use_tabular_digits(self.requests)
        self._form.addRow(self.tr("Requests"), self.requests)
        self.column.addStretch(1)
        self.start.clicked.connect(self._on_start_clicked)
        self.stop.clicked.connect(self._on_stop_clicked)
        self._show_running(is_running=False)

    def serve_from(self, choice: Callable[[], Choice]) -> None:
        """Serve what ``choice`` returns when the server is started."""
        self._choice = choice

    @override
    def showEvent(self, event: QShowEvent) -> None:
        if not self._is_built:
            self._is_built = True
            self._build()
        super().showEvent(event)

    @property
    def is_running(self) -> bool:
        """Whether a server runs, or is about to."""
        return self._job is not None

    def end(self) -> None:
        """Stop the server, if one runs."""
        if self._job is not None:
            self._job.cancel()

    def _line(self, name: str, copy_name: str) -> QLabel:
        value = text_label()
        value.setAccessibleName(name)
        copy = self._kit.icon_button(copy_name, "copy")
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(value.text()))
        row = QHBoxLayout()
        row.addWidget(value, 1)
        row.addWidget(copy)
        self._form.addRow(name, row)
        return value

    @Slot()
    def _on_start_clicked(self) -> None:
        self.starting.emit()
        choice, port = self._choice(), self.port.value()
        self._job = self._jobs.start(
            "serve", lambda cancel: _serve(self._session, self._jobs, choice, port, cancel)
        )
        self._job.event_arrived.connect(self._on_event)
        self._job.failed.connect(self.failed)
        self._job.ended.connect(self._on_ended)
        self.state.show_state(self.tr("loading the model…"), "info")
        self._show_running(is_running=True)

    @Slot(object)
    def _on_event(self, event: object) -> None:
        match event:
            case ServerNamed(token=token, alias=alias):
                self.token.setText(token)
                self.model.setText(alias)
            case TrialProgress(phase="wait"):
                self.state.show_state(self.tr("waiting for the engine…"), "warn")
            case ServerStarted(port=port, effective=effective):
                self.address.setText(f"http://127.0.0.1:{port}/v1")
                self.state.show_state(settings_text(effective), "good")
                self._show_requests(0, 0)
            case ServerProgress(n_requests=n_requests, n_active=n_active):
                self._show_requests(n_requests, n_active)
            case ServerStopped(error=error) if error is not None:
                self.failed.emit(error)
            case _:
                pass

    def _show_requests(self, n_requests: int, n_active: int) -> None:
        self.requests.setText(
            self.tr("{n} so far, {active} now").format(n=n_requests, active=n_active)
        )

    @Slot()
    def _on_stop_clicked(self) -> None:
        self.state.show_state(self.tr("stopping…"), "warn")
        self.end()

    @Slot(object)
    def _on_ended(self, _job: Job) -> None:
        self._job = None
        for value in (self.address, self.token, self.model, self.requests):
            value.setText("")
        self.state.show_state("", "muted")
        self._show_running(is_running=False)

    def _show_running(self, *, is_running: bool) -> None:
        had_focus = self.start.hasFocus() or self.stop.hasFocus()
        self.start.setVisible(not is_running)
        self.stop.setVisible(is_running)
        self.port.setEnabled(not is_running)
        for row in range(self._form.rowCount()):
            self._form.setRowVisible(row, is_running)
        if had_focus:
            button: QPushButton = self.stop if is_running else self.start
            button.setFocus()


def _serve(
    session: SessionPort, jobs: Jobs, choice: Choice, port: int, cancel: threading.Event
) -> Iterator[object]:
    """Serve until cancelled; runs on a job's thread."""
    yield TrialProgress(phase="wait")
    with jobs.engine_turn(cancel):
        pass  # a chat that gives the memory back is waited for; later ones may share it
    with jobs.engine_turn(cancel, shares=True) as is_ours:
        if not is_ours:
            return
        server = session.serve(choice.model, choice.profile_id)
        yield ServerNamed(token=server.token, alias=server.alias)
        with closing(server.run(port)) as events:
            for event in events:
                yield event
                if cancel.is_set():
                    return
