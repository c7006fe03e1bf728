"""The column of pages on the left; only icons where the window is narrow."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.domain.record import Record
from views.widgets.basics import Kit

translate = QCoreApplication.translate

NARROW_PX, NARROW_CHARS = 800, 110


class PageEntry(Record, frozen=True, kw_only=True):
    """A page as the sidebar shows it."""

    key: str
    icon: str
    label: str
    keys: str = ""


def page_entries() -> tuple[tuple[PageEntry, ...], PageEntry]:
    """Return the pages in the language in use, and the settings, which stand apart."""
    rows = (
        ("dashboard", "dashboard", translate("MainWindow", "Dashboard")),
        ("tune", "tune", translate("MainWindow", "Find best settings")),
        ("chat", "chat", translate("MainWindow", "Chat")),
        ("results", "results", translate("MainWindow", "Results")),
        ("advice", "advice", translate("MainWindow", "Advice")),
    )
    pages = tuple(
        PageEntry(key=key, icon=icon, label=label, keys=f"Ctrl+{n}")
        for n, (key, icon, label) in enumerate(rows, 1)
    )
    label = translate("MainWindow", "Settings")
    return pages, PageEntry(key="settings", icon="settings", label=label, keys="Ctrl+,")


class Sidebar(QWidget):
    """Chooses a page.

    Signals:
        page_chosen: Key of the page.
    """

    page_chosen = Signal(str)

    def __init__(self, kit: Kit, entries: Sequence[PageEntry], last: PageEntry) -> None:
        """Build a button per page, ``last`` at the bottom; their keys work from anywhere."""
        super().__init__()
        self._kit = kit
        self.setProperty("role", "sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(self)
        pad = 2 * kit.unit
        column.setContentsMargins(pad, 3 * kit.unit, pad, 3 * kit.unit)
        column.setSpacing(kit.unit)
        self._group = QButtonGroup(self)
        self._buttons: dict[str, QToolButton] = {}
        for entry in (*entries, last):
            if entry is last:
                column.addStretch(1)
            self._buttons[entry.key] = self._button(entry)
            column.addWidget(self._buttons[entry.key])
        self._group.buttonClicked.connect(self._on_button_clicked)
        self._show_words(True)

    def _button(self, entry: PageEntry) -> QToolButton:
        button = QToolButton()
        button.setProperty("role", "nav")
        button.setProperty("key", entry.key)
        button.setText("  " + entry.label)
        button.setAccessibleName(entry.label)
        button.setToolTip(self.tr("{page} ({keys})").format(page=entry.label, keys=entry.keys))
        button.setCheckable(True)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setIconSize(QSize(5 * self._kit.unit, 5 * self._kit.unit))
        button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._kit.icons.bind(button, entry.icon, "text", 5 * self._kit.unit)
        self._group.addButton(button)
        return button

    def show_page(self, key: str) -> None:
        """Mark the page in use; one that has no button leaves none marked."""
        button = self._buttons.get(key)
        self._group.setExclusive(button is not None)
        for other in self._buttons.values():
            other.setChecked(other is button)

    def fit(self, window: QWidget) -> None:
        """Show icons only in a narrow ``window``; large text needs the room as much."""
        limit = max(NARROW_PX, NARROW_CHARS * window.fontMetrics().averageCharWidth())
        self._show_words(window.width() >= limit)

    def _show_words(self, has_words: bool) -> None:  # noqa: FBT001
        style = Qt.ToolButtonStyle.ToolButtonIconOnly
        if has_words:
            style = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        for button in self._buttons.values():
            button.setToolButtonStyle(style)

    @Slot(object)
    def _on_button_clicked(self, button: QToolButton) -> None:
        self.page_chosen.emit(str(button.property("key")))
