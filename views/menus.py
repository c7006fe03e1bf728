"""Menus and keyboard: every page and the few actions that belong to the whole window."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QMessageBox

from app.runtime import version
from views.colors import Scheme
from views.sidebar import PageEntry
from views.widgets import Kit

translate = QCoreApplication.translate

Shortcut = QKeySequence.StandardKey | str | None


class Pages(Protocol):
    """What the menus act on."""

    @property
    def entries(self) -> tuple[PageEntry, ...]:
        """The pages."""
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
        # Read now: nothing opens a file on the GUI thread later.
        self._version = version()
        self._file()
        self._view()
        self._help()

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
        for index, entry in enumerate(self._pages.entries):
            slot = partial(self._pages.open_page, entry.key)
            self._add(menu, entry.label, f"Ctrl+{index + 1}", slot)
        menu.addSeparator()
        looks = QActionGroup(menu)
        names = {
            Scheme.AUTO: translate("Menus", "Look: as the &System"), Scheme.LIGHT: translate("Menus", "Look: &Light"),
            Scheme.DARK: translate("Menus", "Look: &Dark"),
        }  # fmt: skip
        for scheme, name in names.items():
            action = self._add(menu, name, None, partial(self._kit.theme.choose, scheme))
            action.setCheckable(True)
            action.setChecked(scheme is self._kit.theme.scheme)
            looks.addAction(action)

    def _help(self) -> None:
        menu = self._window.menuBar().addMenu(translate("Menus", "&Help"))
        self._add(menu, translate("Menus", "&Keyboard Shortcuts"), QKeySequence.StandardKey.HelpContents,
                  self._show_shortcuts)  # fmt: skip
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
        self._tell(translate("Menus", "About RigTune"), text.format(version=self._version))

    def _tell(self, title: str, text: str) -> None:
        box = QMessageBox(self._window)
        box.setWindowTitle(title)
        box.setText(text)
        box.open()
