"""The frame all pages share: title, actions beside it, scrolling content."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from views.widgets.basics import Heading, Kit


class Page(QWidget):
    """A page of the window.

    Attributes:
        top: Row with the title; add actions to its end.
        body: Column below it.
    """

    def __init__(self, kit: Kit, title: str) -> None:
        """Build an empty page."""
        super().__init__()
        self.kit = kit
        self.setProperty("role", "page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        outer = QVBoxLayout(self)
        pad = 5 * kit.unit
        outer.setContentsMargins(pad, 4 * kit.unit, pad, 4 * kit.unit)
        outer.setSpacing(3 * kit.unit)
        self.top = QHBoxLayout()
        self.top.setSpacing(2 * kit.unit)
        self.title = Heading(title)
        self.top.addWidget(self.title)
        self.top.addStretch(1)
        outer.addLayout(self.top)
        self.body = QVBoxLayout()
        self.body.setSpacing(3 * kit.unit)
        outer.addLayout(self.body, 1)


def scrolling(content: QWidget) -> QScrollArea:
    """Return ``content`` in an area that scrolls when it must; sideways with huge text only."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidget(content)
    area.viewport().setAutoFillBackground(False)
    content.setAutoFillBackground(False)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area
