"""The pages that most starts never show: imported and built when they are first asked for."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.domain.machine import Machine
from app.runtime import data_dir
from views.bridge import Jobs
from views.feed import TelemetryFeed
from views.port import SessionPort
from views.widgets import Kit

if TYPE_CHECKING:
    from views.advice_page import AdvicePage
    from views.intro import IntroPage
    from views.settings.page import SettingsPage

MODULES = {
    "advice": "views.advice_page",
    "settings": "views.settings.page",
    "intro": "views.intro",
    "gallery": "views.gallery",
}


class Handlers(Protocol):
    """What the pages ask of the window."""

    def end_intro(self, page: str) -> None:
        """Go to a page; the introduction was seen or skipped."""
        ...

    def follow_engine(self) -> None:
        """Another engine is in use from now on."""
        ...

    def look_again(self) -> None:
        """Look at the machine once more."""
        ...


class OnDemand(QObject):
    """Advice, settings, introduction and gallery."""

    def __init__(
        self, kit: Kit, stack: QStackedWidget, jobs: Jobs, handlers: Handlers
    ) -> None:  # fmt: skip
        """Build nothing yet; pages are added to ``stack``."""
        super().__init__(stack)
        self._kit = kit
        self._stack = stack
        self._jobs = jobs
        self._session: SessionPort | None = None
        self._handlers = handlers
        self.pages: dict[str, QWidget] = {}

    def page(self, key: str, machine: Machine | None) -> QWidget:
        """Return a page, built and placed if it is the first time; ``machine`` where known."""
        self.build(key, machine)
        self.place(key)
        return self.pages[key]

    def build(self, key: str, machine: Machine | None) -> None:
        """Build a page if it is the first time: half of what ``page`` does."""
        if key not in self.pages:
            # Imported by the warm-up thread; here only where the user was quicker.
            self.pages[key] = self._build(key, machine)

    def place(self, key: str) -> None:
        """Put a page that is built into the stack, where it takes the look of the window."""
        if self._stack.indexOf(self.pages[key]) < 0:
            self._stack.addWidget(self.pages[key])

    def _build(self, key: str, machine: Machine | None) -> QWidget:
        module = importlib.import_module(MODULES[key])
        if key == "advice":
            advice: AdvicePage = module.AdvicePage(self._kit)
            advice.refresh_requested.connect(self._handlers.look_again)
            testing = importlib.import_module("views.self_test")
            testing.SelfTest(advice, self._jobs, lambda: self._session)
            return advice
        if key == "intro":
            intro: IntroPage = module.IntroPage(self._kit)
            intro.show_machine(machine)
            intro.done.connect(self._handlers.end_intro)
            return intro
        if key == "settings":
            settings: SettingsPage = module.SettingsPage(self._kit)
            settings.data_folder_requested.connect(self._show_data_folder)
            settings.engine.switched.connect(self._handlers.follow_engine)
            if self._session is not None:
                settings.engine.attach(self._session, self._jobs)
            return settings
        gallery: QWidget = module.GalleryPage(self._kit)
        return gallery

    def show_machine(self, machine: Machine) -> None:
        """Tell the introduction, if it is there, of ``machine``."""
        if "intro" in self.pages:
            intro: IntroPage = self.pages["intro"]  # type: ignore[assignment]
            intro.show_machine(machine)

    def attach(self, session: SessionPort) -> None:
        """Tell the settings, if they are there or once they are, of the session."""
        self._session = session
        if "settings" in self.pages:
            settings: SettingsPage = self.pages["settings"]  # type: ignore[assignment]
            settings.engine.attach(session, self._jobs)

    @Slot()
    def _show_data_folder(self) -> None:
        self._jobs.call("folder", data_dir).event_arrived.connect(self._on_data_folder)

    @Slot(object)
    def _on_data_folder(self, folder: Path) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
        settings: SettingsPage = self.pages["settings"]  # type: ignore[assignment]
        settings.show_file(str(folder))

    def show_findings(self, machine: Machine, feed: TelemetryFeed) -> None:
        """Show on the advice page, if it is there, what there is to say."""
        if "advice" in self.pages:
            readings = feed.readings([gpu.key for gpu in machine.gpus])
            host = feed.latest_host()
            rules = importlib.import_module("app.advice.rules")
            advice: AdvicePage = self.pages["advice"]  # type: ignore[assignment]
            advice.show_findings(rules.machine_findings(machine, readings, host))
            advice.show_facts(machine)
