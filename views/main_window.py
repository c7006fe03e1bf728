"""The window: pages behind a sidebar, menus, and an orderly end."""

import base64
import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QByteArray, QSize, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDesktopServices, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QWidget
from typing_extensions import override

from app.advice.rules import machine_findings
from app.domain.errors import ErrorInfo
from app.domain.machine import Machine
from app.runtime import data_dir
from views.advice_page import AdvicePage
from views.background import Background
from views.beside import Opened, close_session, import_pages, look_at_machine, write_text
from views.bridge import Jobs
from views.dashboard.page import DashboardPage
from views.feed import TelemetryFeed, TelemetryPort
from views.language import Translations
from views.menus import Menus
from views.port import SessionPort
from views.preferring import Preferring
from views.sidebar import PageEntry, Sidebar
from views.slices import Slices
from views.state import WindowState
from views.widgets import Kit

if TYPE_CHECKING:
    from views.late_pages import LatePages, LatePagesBuilder

MIN_SIZE = QSize(900, 600)
CLOSE_BUDGET_MS = 10_000
NARROW_PX = 800
NARROW_CHARS = 110

LAZY_PAGES = ("settings", "intro", "gallery")


class MainWindow(QMainWindow):
    """Wires the pages to the session; decides nothing.

    Signals:
        pages_built: Every page is there; start-up is over.
    """

    pages_built = Signal()

    def __init__(
        self,
        kit: Kit,
        open_session: Callable[[], SessionPort],
        state: WindowState,
        translations: Translations | None = None,
    ) -> None:
        """Build the frame and the two pages that are there at once.

        Args:
            kit: Look, icons and preferences.
            open_session: Makes the session; called once, on a thread, after the window shows.
            state: What the last window left behind.
            translations: The languages; ``None`` = the window speaks English only.
        """
        super().__init__()
        self._kit = kit
        self._open_session = open_session
        self._session: SessionPort | None = None
        self._machine: Machine | None = None
        self._late_module: ModuleType | None = None
        self.state = state
        self.jobs = Jobs(self)
        self.feed = TelemetryFeed(self)
        self._is_closing = self._is_saved = self._is_given_up = self._has_failed = False
        self._turns = Slices(self)
        self.background = Background(kit, self)
        self._deadline = QTimer(self)
        self._deadline.setSingleShot(True)
        self._deadline.setInterval(CLOSE_BUDGET_MS)
        self._deadline.timeout.connect(self._on_deadline)
        self.setWindowTitle("RigTune")
        self.setStyleSheet(kit.theme.sheet)
        self._late: LatePages | None = None
        self._builder: LatePagesBuilder | None = None
        self._place()
        self._frame()
        self._first_page()
        self._second_page()
        self.jobs.idle.connect(self._on_jobs_idle)
        self.preferring = Preferring(kit, self.jobs, self.feed, translations, self)
        self.preferring.rebuild_wanted.connect(self.rebuild)
        self.preferring.folders_changed.connect(self._on_folders_changed)
        self.preferring.failed.connect(self._on_save_failed)
        self.open_page("dashboard" if kit.options.value.is_introduced else "intro")
        if kit.options.notice:
            self.dashboard.say_set_aside(kit.options.notice)

    def _frame(self) -> None:
        """Build what is around the pages, in the language in use."""
        kit = self._kit
        self.entries = self._entries()
        self.settings_entry = PageEntry(
            key="settings", icon="settings", label=self.tr("Settings"), keys="Ctrl+,"
        )
        self.sidebar = Sidebar(kit, self.entries, self.settings_entry)
        self._stack = QStackedWidget()
        self._lazy: dict[str, QWidget] = {}
        self._wanted = "dashboard"
        self._lay_out()
        Menus(kit, self, self)
        self.sidebar.page_chosen.connect(self.open_page)

    def _first_page(self) -> None:
        self.dashboard = DashboardPage(self._kit, self.feed)
        self._stack.addWidget(self.dashboard)
        self.dashboard.tune_requested.connect(self._on_tune_requested)
        self.dashboard.export_requested.connect(self._on_export_requested)

    def _second_page(self) -> None:
        self.advice = AdvicePage(self._kit)
        self._stack.addWidget(self.advice)
        self.advice.refresh_requested.connect(self._on_refresh_requested)

    @Slot()
    def rebuild(self) -> None:
        """Build every page anew, in another language, say."""
        if self._is_closing:
            return
        self._turns.clear()
        self._turns.add(
            [self._take_down, self._frame, self._first_page, self._second_page, self._show_again]
        )

    def _take_down(self) -> None:
        self._key_before = self._wanted
        if self._late is not None:
            self._late.stop()
        if self._builder is not None:
            self._builder.stop()
        self._late = None
        self.dashboard.stop()
        self.menuBar().clear()
        # Setting the next central widget deletes this one with every page in it.

    def _show_again(self) -> None:
        self.resizeEvent(QResizeEvent(self.size(), self.size()))
        if self._machine is not None:
            self.dashboard.show_machine(self._machine)
        self._build_late_pages()
        self.open_page(self._key_before)

    def start(self) -> None:
        """Look at the machine and load the other pages' code, both beside the window."""
        self._look_at_machine(refresh=False)
        warm_up = self.jobs.start("warm-up", import_pages)
        warm_up.event_arrived.connect(self._on_warmed_up)

    @property
    def is_ready(self) -> bool:
        """Whether start-up is over: every page is built, the machine is known or cannot be."""
        return self._late is not None and (self.dashboard.is_ready or self._has_failed)

    @property
    def late(self) -> "LatePages | None":
        """The pages built after the window showed; ``None`` until then."""
        return self._late

    @Slot(str)
    def open_page(self, key: str) -> None:
        """Show a page; one that is still being built shows as soon as it is."""
        self._wanted = key
        self.sidebar.show_page(key)
        page = self._page(key)
        if key == "advice":
            self._show_findings()  # with the newest readings
        if page is not None:
            self._stack.setCurrentWidget(page)

    @Slot()
    def open_model(self) -> None:
        """Ask for a model file to tune."""
        self.open_page("tune")
        if self._late is not None:
            self._late.wizard.model_step.open_file()

    @Slot()
    def new_chat(self) -> None:
        """Begin a conversation."""
        self.open_page("chat")
        if self._late is not None:
            self._late.chat.new_chat()

    def _page(self, key: str) -> QWidget | None:
        early: dict[str, QWidget] = {"dashboard": self.dashboard, "advice": self.advice}
        if key in early:
            return early[key]
        if key in LAZY_PAGES:
            return self._lazy_page(key)
        return self._late.page(key) if self._late else None

    def _lazy_page(self, key: str) -> QWidget:
        if key not in self._lazy:
            # Imported by the warm-up thread; here only where the user was quicker.
            pages = importlib.import_module("views.lazy_pages")
            self._lazy[key] = pages.build(key, self._kit, self, self._machine)
            self._stack.addWidget(self._lazy[key])
        return self._lazy[key]

    def _entries(self) -> tuple[PageEntry, ...]:
        rows = (
            ("dashboard", "dashboard", self.tr("Dashboard")),
            ("tune", "tune", self.tr("Find best settings")),
            ("chat", "chat", self.tr("Chat")),
            ("results", "results", self.tr("Results")),
            ("advice", "advice", self.tr("Advice")),
        )
        return tuple(
            PageEntry(key=key, icon=icon, label=label, keys=f"Ctrl+{n}")
            for n, (key, icon, label) in enumerate(rows, 1)
        )

    def _lay_out(self) -> None:
        central = QWidget()
        row = QHBoxLayout(central)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.sidebar)
        row.addWidget(self._stack, 1)
        self.setCentralWidget(central)

    def _place(self) -> None:
        screen = QGuiApplication.primaryScreen().availableSize()
        self.setMinimumSize(MIN_SIZE.boundedTo(screen))
        self.resize(QSize(1120, 740).boundedTo(screen))
        if self.state.geometry:
            self.restoreGeometry(QByteArray(base64.b64decode(self.state.geometry)))

    def _look_at_machine(self, *, refresh: bool) -> None:
        interval_s = self._kit.options.value.interval_s
        look = look_at_machine(self._session, self._open_session, interval_s, refresh=refresh)
        job = self.jobs.start("start", look)
        job.event_arrived.connect(self._on_machine_event)
        job.failed.connect(self._on_machine_failed)

    @Slot(object)
    def _on_machine_event(self, event: object) -> None:
        if isinstance(event, Opened):
            self._session = event.session
            self.dashboard.power.attach(event.session.power, self.jobs)
            self._build_late_pages()
        elif isinstance(event, Machine):
            self.dashboard.show_machine(event)
            self._machine = event
            self._show_findings()
            if "intro" in self._lazy:
                pages = importlib.import_module("views.lazy_pages")
                pages.tell_machine(self._lazy["intro"], event)
        else:
            telemetry: TelemetryPort = event  # type: ignore[assignment]
            self.feed.attach(telemetry)
            # The session keeps one telemetry: an earlier pace may be another.
            self.feed.set_interval(self._kit.options.value.interval_s)
            self._show_findings()

    def _show_findings(self) -> None:
        if self._machine is not None:
            readings = self.feed.readings([gpu.key for gpu in self._machine.gpus])
            host = self.feed.latest_host()
            self.advice.show_findings(machine_findings(self._machine, readings, host))
            self.advice.show_facts(self._machine)

    @Slot(object)
    def _on_machine_failed(self, error: ErrorInfo) -> None:
        self._has_failed = True
        self.dashboard.show_problem(error)

    @Slot()
    def _on_refresh_requested(self) -> None:
        self._look_at_machine(refresh=True)

    @Slot(object)
    def _on_warmed_up(self, late_pages: ModuleType) -> None:
        self._late_module = late_pages
        self._build_late_pages()

    def _build_late_pages(self) -> None:
        if self._is_closing or self._session is None or self._late_module is None:
            return
        self._builder = self._late_module.LatePagesBuilder(
            self._kit, self._session, self.jobs, self.state
        )
        self._builder.setParent(self)
        self._builder.finished.connect(self._on_pages_built)
        self._builder.start()

    @Slot(object)
    def _on_pages_built(self, late: "LatePages") -> None:
        self._turns.add(partial(self._stack.addWidget, page) for page in late.widgets)
        self._turns.add([partial(self._take_pages, late)])

    def _take_pages(self, late: "LatePages") -> None:
        self._late = late
        late.page_requested.connect(self.open_page)
        late.state_changed.connect(self._on_state_changed)
        late.loaded_changed.connect(self.dashboard.show_loaded)
        late.wizard.search_ended.connect(self.background.tell)
        self.open_page(self._wanted)
        self.pages_built.emit()

    @Slot()
    def _on_folders_changed(self) -> None:
        if self._late is not None:
            self._late.wizard.forget_models()

    @Slot(object)
    def _on_save_failed(self, error: ErrorInfo) -> None:
        self.dashboard.show_error(error)

    @Slot(str)
    def end_intro(self, page: str) -> None:
        """Go to ``page``; the introduction was seen or skipped."""
        self._kit.options.change(is_introduced=True)
        self.open_page(page)

    @Slot()
    def show_data_folder(self) -> None:
        """Show where RigTune keeps its files."""
        job = self.jobs.call("folder", data_dir)
        job.event_arrived.connect(self._on_data_folder)

    @Slot(object)
    def _on_data_folder(self, folder: Path) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
        pages = importlib.import_module("views.lazy_pages")
        pages.tell_folder(self._lazy.get("settings"), str(folder))

    @Slot(str, object)
    def _on_export_requested(self, path: str, make: Callable[[], str]) -> None:
        job = self.jobs.call("export", partial(write_text, path, make))
        job.event_arrived.connect(self.dashboard.show_written)
        job.failed.connect(self.dashboard.show_error)

    @Slot()
    def _on_tune_requested(self) -> None:
        self.open_page("tune")

    @Slot(object)
    def _on_state_changed(self, change: dict[str, str | tuple[str, ...]]) -> None:
        self.state = msgspec.structs.replace(self.state, **change)

    @Slot()
    def finish(self) -> None:
        """Stop everything, keep what was measured, then close."""
        if self._is_closing:
            return
        self._is_closing = True
        self.preferring.stop()
        self.setEnabled(False)
        if self._late is not None:
            self._late.stop()
        if self._builder is not None:
            self._builder.stop()
        self._turns.clear()
        self.dashboard.stop()
        self.feed.detach()
        self.jobs.cancel_all()
        self._deadline.start()
        if not self.jobs.running():
            self._on_jobs_idle()

    @Slot()
    def _on_jobs_idle(self) -> None:
        if not self._is_closing:
            return
        if self._is_saved:
            self.close()
            return
        self._is_saved = True
        geometry = base64.b64encode(self.saveGeometry().data()).decode()
        state = msgspec.structs.replace(self.state, geometry=geometry)
        self.jobs.call("state", partial(close_session, self._session, state))

    @Slot()
    def _on_deadline(self) -> None:
        # A job that does not end must not keep the window: its thread dies with the process.
        self._is_given_up = True
        self.close()

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        if self._is_given_up or (self._is_saved and not self.jobs.running()):
            self._deadline.stop()
            event.accept()
            return
        event.ignore()
        if self._is_closing:
            return
        if self.jobs.running("search") and not self.background.is_on:
            self.background.ask(self.finish)
        else:
            self.finish()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # Large text needs the room as much as a small window does.
        limit = max(NARROW_PX, NARROW_CHARS * self.fontMetrics().averageCharWidth())
        self.sidebar.set_narrow(self.width() < limit)

    @override
    def sizeHint(self) -> QSize:
        return MIN_SIZE.expandedTo(super().sizeHint()).boundedTo(QSize(1120, 740))
