"""Pages that most starts never show: built when they are asked for."""

from typing import Protocol

from PySide6.QtWidgets import QWidget

from app.domain.machine import Machine
from views.gallery import GalleryPage
from views.intro import IntroPage
from views.settings.page import SettingsPage
from views.widgets import Kit


class Handlers(Protocol):
    """What the pages ask of the window."""

    def end_intro(self, page: str) -> None:
        """Go to a page; the introduction was seen or skipped."""
        ...

    def show_data_folder(self) -> None:
        """Show where RigTune keeps its files."""
        ...


def build(key: str, kit: Kit, handlers: Handlers, machine: Machine | None) -> QWidget:
    """Return a new page, connected."""
    if key == "intro":
        intro = IntroPage(kit)
        intro.show_machine(machine)
        intro.done.connect(handlers.end_intro)
        return intro
    if key == "settings":
        settings = SettingsPage(kit)
        settings.data_folder_requested.connect(handlers.show_data_folder)
        return settings
    return GalleryPage(kit)


def tell_machine(page: QWidget | None, machine: Machine) -> None:
    """Show ``machine`` on the introduction, if it is there."""
    if isinstance(page, IntroPage):
        page.show_machine(machine)


def tell_folder(page: QWidget | None, folder: str) -> None:
    """Name RigTune's folder on the settings page, if it is there."""
    if isinstance(page, SettingsPage):
        page.show_file(folder)
