"""Counts how often a page is laid out anew."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from typing_extensions import override


class LayoutCount(QObject):
    """Counts how often a widget is asked to lay its children out anew."""

    n = 0

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.n += event.type() is QEvent.Type.LayoutRequest
        return False


def settle() -> None:
    """Let layouts come to rest: one may ask for another."""
    for _ in range(4):
        QApplication.processEvents()


def shown(qtbot: QtBot, child: QWidget) -> tuple[QWidget, LayoutCount]:
    """Return a page that shows ``child``, and what counts its layouts."""
    page = QWidget()
    qtbot.addWidget(page)
    QVBoxLayout(page).addWidget(child)
    page.resize(300, 200)
    page.show()
    qtbot.waitExposed(page)
    settle()
    count = LayoutCount(page)
    for widget in (page, child):
        widget.installEventFilter(count)
    return page, count
