"""Menus and keyboard: every page and the few actions that belong to the whole window."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QAction, QActionGroup, QKeySequence, QShortcut
from PySide6.QtWidgets import QMainWindow, QMenu, QMessageBox

from app.runtime import version
from views.colors import Scheme
from views.options import Options
from views.sidebar import PageEntry
from views.widgets import Kit

translate = QCoreApplication.translate

# Read now: nothing opens a file on the GUI thread later.
_VERSION = version()

Shortcut = QKeySequence.StandardKey | str | None


class Pages(Protocol):
    """What the menus act on."""

    @property
    def entries(self) -> tuple[PageEntry, ...]:
        """The pages."""
        ...

    @property
    def settings_entry(self) -> PageEntry:
        """The settings."""
        ...

    def open_page(self, key: str) -> None:
        """Show a page."""
        ...

    def open_model(self) -> None:
        """Ask for a model file."""
        ...

    def new_chat(self) -> None:
        """Begin a conversation."""
        ...


class Menus:
    """Builds the menu bar of a window."""

    def __init__(self, kit: Kit, window: QMainWindow, pages: Pages) -> None:
        """Add File, View and Help."""
        self._kit = kit
        self._window = window
        self._pages = pages
        self._file()
        self._view()
        self._help()
        self._gallery()

    def _add(
        self, menu: QMenu, text: str, shortcut: Shortcut, slot: Callable[[], object]
    ) -> QAction:  # fmt: skip
        action = menu.addAction(text)
        if isinstance(shortcut, QKeySequence.StandardKey):
            action.setShortcuts(QKeySequence.keyBindings(shortcut))
        elif shortcut:
            action.setShortcut(QKeySequence(shortcut))
        action.triggered.connect(lambda _checked=False, slot=slot: slot())
        return action

    def _file(self) -> None:
        menu = self._window.menuBar().addMenu(translate("Menus", "&File"))
        key = QKeySequence.StandardKey
        self._add(menu, translate("Menus", "&Open Model…"), key.Open, self._pages.open_model)
        self._add(menu, translate("Menus", "&New Chat"), key.New, self._pages.new_chat)
        menu.addSeparator()
        quit_keys = key.Quit if QKeySequence.keyBindings(key.Quit) else "Ctrl+Q"
        self._add(menu, translate("Menus", "&Quit"), quit_keys, self._window.close)

    def _view(self) -> None:
        menu = self._window.menuBar().addMenu(translate("Menus", "&View"))
        for entry in (*self._pages.entries, self._pages.settings_entry):
            slot = partial(self._pages.open_page, entry.key)
            self._add(menu, entry.label, entry.keys, slot)
        menu.addSeparator()
        looks = QActionGroup(menu)
        names = {
            Scheme.AUTO: translate("Menus", "Look: as the &System"),
            Scheme.LIGHT: translate("Menus", "Look: &Light"),
            Scheme.DARK: translate("Menus", "Look: &Dark"),
        }
        options = self._kit.options
        for scheme, name in names.items():
            slot = partial(options.change, theme=scheme.value)
            action = self._add(menu, name, None, slot)
            action.setCheckable(True)
            action.setChecked(scheme.value == options.value.theme)
            looks.addAction(action)
        menu.aboutToShow.connect(partial(_check_look, looks, options))

    def _help(self) -> None:
        menu = self._window.menuBar().addMenu(translate("Menus", "&Help"))
        help_keys = QKeySequence.StandardKey.HelpContents
        self._add(menu, translate("Menus", "&Keyboard Shortcuts"), help_keys, self._show_shortcuts)
        self._add(
            menu, translate("Menus", "&Introduction"), None, partial(self._pages.open_page, "intro")
        )
        self._add(menu, translate("Menus", "&About RigTune"), None, self._show_about)

    def _show_shortcuts(self) -> None:
        rows = [
            (action.shortcut().toString(QKeySequence.SequenceFormat.NativeText),
             action.text().replace("&", "").rstrip("…"))
            for menu in self._window.menuBar().findChildren(QMenu)
            for action in menu.actions()
            if not action.shortcut().isEmpty()
        ]  # fmt: skip
        rows += [
            ("Enter", translate("Menus", "Chat: send (Shift+Enter: new line)")),
            ("Esc", translate("Menus", "Stop what runs on this page")),
        ]
        text = "<table cellpadding=3>" + "".join(
            f"<tr><td><b>{keys}</b></td><td>{what}</td></tr>" for keys, what in rows
        )
        self._tell(translate("Menus", "Keyboard shortcuts"), text + "</table>")

    def _show_about(self) -> None:
        text = translate(
            "Menus",
            "<b>RigTune {version}</b><br>Finds the best llama.cpp settings for the GPU you own "
            "and shows why.<br>Apache License 2.0. Works offline; nothing leaves this machine.",
        )
        self._tell(translate("Menus", "About RigTune"), text.format(version=_VERSION))

    def _gallery(self) -> None:
        # For developers: every state of every building block. In no menu.
        keys = QShortcut(QKeySequence("Ctrl+Shift+G"), self._window)
        keys.activated.connect(partial(self._pages.open_page, "gallery"))

    def _tell(self, title: str, text: str) -> None:
        box = QMessageBox(self._window)
        box.setWindowTitle(title)
        box.setText(text)
        box.open()


def _check_look(looks: QActionGroup, options: Options) -> None:
    schemes = [scheme.value for scheme in (Scheme.AUTO, Scheme.LIGHT, Scheme.DARK)]
    looks.actions()[schemes.index(options.value.theme)].setChecked(True)
