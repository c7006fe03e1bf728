"""The window: pages behind a sidebar, menus, and an orderly end."""

import base64
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QByteArray, QSize, Signal, Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QWidget
from typing_extensions import override

from app.domain.errors import ErrorInfo
from app.domain.machine import Machine
from views.background import Background
from views.beside import close_session, import_pages, write_text
from views.bridge import Jobs
from views.dashboard.page import DashboardPage
from views.ending import Ending
from views.feed import TelemetryFeed
from views.language import Translations
from views.looking import Looking
from views.menus import Menus
from views.on_demand import MODULES, OnDemand
from views.port import SessionPort
from views.preferring import Preferring
from views.sidebar import Sidebar, page_entries
from views.slices import Slices
from views.state import WindowState
from views.widgets import Kit

if TYPE_CHECKING:
    from views.late_pages import LatePages, LatePagesBuilder

MIN_SIZE = QSize(900, 600)


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
        """Build the frame and the page that is there at once.

        Args:
            kit: Look, icons and preferences.
            open_session: Makes the session; called once, on a thread, after the window shows.
            state: What the last window left behind.
            translations: The languages; ``None`` = the window speaks English only.
        """
        super().__init__()
        self._kit = kit
        self._late_module: ModuleType | None = None
        self.state = state
        self.jobs = Jobs(self)
        self.feed = TelemetryFeed(self)
        self._looking = Looking(open_session, kit.options, self.jobs, self.feed, self)
        self._looking.opened.connect(self._on_opened)
        self._looking.seen.connect(self._on_machine_seen)
        self._looking.read.connect(self._show_findings)
        self._looking.failed.connect(self._on_machine_failed)
        self._turns = Slices(self)
        self.background = Background(kit, self)
        self.ending = Ending(self.jobs, self._last_work, self.close, self)
        self.setWindowTitle("RigTune")
        self.setStyleSheet(kit.theme.sheet)
        self._late: LatePages | None = None
        self._builder: LatePagesBuilder | None = None
        self._place()
        self._frame()
        self._first_page()
        self.preferring = Preferring(kit, self.jobs, self.feed, translations, self)
        self.preferring.rebuild_wanted.connect(self.rebuild)
        self.preferring.folders_changed.connect(self._on_folders_changed)
        self.preferring.failed.connect(self._on_save_failed)
        self.open_page("dashboard" if kit.options.value.is_introduced else "intro")
        if kit.options.notice:
            self.dashboard.say_set_aside(kit.options.notice)

    def _frame(self) -> None:
        """Build what is around the pages, in the language in use."""
        self.entries, self.settings_entry = page_entries()
        self.sidebar = Sidebar(self._kit, self.entries, self.settings_entry)
        self._stack = QStackedWidget()
        self.on_demand = OnDemand(self._kit, self._stack, self.jobs, self)
        self._wanted = "dashboard"
        self._lay_out()
        Menus(self._kit, self, self)
        self.sidebar.page_chosen.connect(self.open_page)

    def _first_page(self) -> None:
        self.dashboard = DashboardPage(self._kit, self.feed)
        self._stack.addWidget(self.dashboard)
        self.dashboard.tune_requested.connect(partial(self.open_page, "tune"))
        self.dashboard.export_requested.connect(self._on_export_requested)
        if self._looking.session is not None:
            self._attach(self._looking.session)

    def _attach(self, session: SessionPort) -> None:
        self.dashboard.power.attach(session.power, self.jobs)
        self.on_demand.attach(session)

    @Slot()
    def rebuild(self) -> None:
        """Build every page anew, in another language, say."""
        if self.ending.is_begun:
            return
        self._turns.clear()
        # One page after the other: all of them at once would take longer than a frame.
        away = [page.deleteLater for page in (self._late.widgets if self._late else ())]
        self._turns.add([self._take_down, *away])
        self._turns.add([self._frame, self._first_page, self._show_again])

    def _take_down(self) -> None:
        self._key_before = self._wanted
        self._stop_pages()
        self._late = None
        self.menuBar().clear()

    def _stop_pages(self) -> None:
        if self._late is not None:
            self._late.stop()
        if self._builder is not None:
            self._builder.stop()
        self.dashboard.stop()

    def _show_again(self) -> None:
        self.resizeEvent(QResizeEvent(self.size(), self.size()))
        if self._machine is not None:
            self.dashboard.show_machine(self._machine)
        self._build_late_pages()
        self.open_page(self._key_before)

    def start(self) -> None:
        """Look at the machine and load the other pages' code, both beside the window."""
        self._looking.look(refresh=False)
        self.jobs.start("warm-up", import_pages).event_arrived.connect(self._on_warmed_up)

    @property
    def _machine(self) -> Machine | None:
        return self._looking.machine

    @property
    def is_ready(self) -> bool:
        """Whether start-up is over: every page is built, the machine is known or cannot be."""
        return self._late is not None and (self.dashboard.is_ready or self._looking.has_failed)

    @property
    def late(self) -> "LatePages | None":
        """The pages built after the window showed; ``None`` until then."""
        return self._late

    @Slot(str)
    def open_page(self, key: str) -> None:
        """Show a page; one that is still being built shows as soon as it is."""
        self._wanted = key
        self.sidebar.show_page(key)
        if self.isVisible() and key in MODULES and key not in self.on_demand.pages:
            # Built, placed, filled and shown in turns of their own: together they take too long.
            self.on_demand.build(key, self._machine)
            place, show = partial(self.on_demand.place, key), partial(self._show_if_wanted, key)
            self._turns.add([place, self._show_findings, show])
            return
        page = self._page(key)
        if key == "advice":
            self._show_findings()  # with the newest readings
        if page is not None:
            self._stack.setCurrentWidget(page)

    def _show_if_wanted(self, key: str) -> None:
        if key == self._wanted:
            self._stack.setCurrentWidget(self.on_demand.pages[key])

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
        if key == "dashboard":
            return self.dashboard
        if key in MODULES:
            return self.on_demand.page(key, self._machine)
        return self._late.page(key) if self._late else None

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

    @Slot(object)
    def _on_opened(self, session: SessionPort) -> None:
        self._attach(session)
        self._build_late_pages()

    @Slot(object)
    def _on_machine_seen(self, machine: Machine) -> None:
        self.dashboard.show_machine(machine)
        self._show_findings()
        self.on_demand.show_machine(machine)

    @Slot()
    def _show_findings(self) -> None:
        if self._machine is not None:
            self.on_demand.show_findings(self._machine, self.feed)

    @Slot(object)
    def _on_machine_failed(self, error: ErrorInfo) -> None:
        self.dashboard.show_problem(error)

    @Slot()
    def look_again(self) -> None:
        """Look at the machine once more."""
        self._looking.look(refresh=True)

    @Slot(object)
    def _on_warmed_up(self, late_pages: ModuleType) -> None:
        self._late_module = late_pages
        self._build_late_pages()

    def _build_late_pages(self) -> None:
        session = self._looking.session
        if self.ending.is_begun or session is None or self._late_module is None:
            return
        self._builder = self._late_module.LatePagesBuilder(
            self._kit, session, self.jobs, self.state
        )
        self._builder.setParent(self)
        self._builder.finished.connect(self._on_pages_built)
        self._builder.start()

    @Slot(object)
    def _on_pages_built(self, late: "LatePages") -> None:
        self._turns.add([*late.placing(self._stack), partial(self._take_pages, late)])

    def _take_pages(self, late: "LatePages") -> None:
        self._late = late
        self.preferring.follow(late.chat)
        late.page_requested.connect(self.open_page)
        late.state_changed.connect(self._on_state_changed)
        late.loaded_changed.connect(self.dashboard.show_loaded)
        late.chat.scene.engine_failed.connect(partial(self._looking.look, refresh=False))
        late.wizard.search_told.connect(self.background.tell)
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
    def follow_engine(self) -> None:
        """Look at the machine with the engine that was chosen; nothing stays on the other one."""
        if self._late is not None:
            self._late.chat.unload()
        self.look_again()

    @Slot(str, object)
    def _on_export_requested(self, path: str, make: Callable[[], str]) -> None:
        job = self.jobs.call("export", partial(write_text, path, make))
        job.event_arrived.connect(self.dashboard.show_written)
        job.failed.connect(self.dashboard.show_error)

    @Slot(object)
    def _on_state_changed(self, change: dict[str, str | tuple[str, ...]]) -> None:
        self.state = msgspec.structs.replace(self.state, **change)

    @Slot()
    def finish(self) -> None:
        """Stop everything, keep what was measured, then close."""
        if self.ending.is_begun:
            return
        self.preferring.stop()
        self.setEnabled(False)
        self._stop_pages()
        self._turns.clear()
        self.feed.detach()
        self.ending.begin()

    def _last_work(self) -> Callable[[], object]:
        """Return what a thread is to do last: keep the window's state, end the session."""
        geometry = base64.b64encode(self.saveGeometry().data()).decode()
        state = msgspec.structs.replace(self.state, geometry=geometry)
        return partial(close_session, self._looking.session, state)

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        if self.ending.is_over:
            self.ending.stop()
            event.accept()
            return
        event.ignore()
        is_asking = not self.ending.is_begun and not self.background.is_on
        if is_asking and self.jobs.running("search"):
            self.background.ask(self.finish)
        else:
            self.finish()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.sidebar.fit(self)

    @override
    def sizeHint(self) -> QSize:
        return MIN_SIZE.expandedTo(super().sizeHint()).boundedTo(QSize(1120, 740))
