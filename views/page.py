"""The frame all pages share: title, actions beside it, scrolling content."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget
from typing_extensions import override

from views.widgets.basics import Heading, Kit
from views.widgets.flow import Flow

MIN_UNITS = 130
"""Height a page is laid out for at least: what the smallest window gives it with normal text."""
SCROLLED_UNITS = 60
"""The same for a page whose whole content scrolls: one scroll bar is enough for it."""


class Page(QWidget):
    """A page of the window.

    With large text it scrolls up and down as a whole; sideways it never needs to.

    Attributes:
        top: Row with the title; add actions to its end.
        body: Column below it.
    """

    def __init__(self, kit: Kit, title: str, *, min_units: int = MIN_UNITS) -> None:
        """Build an empty page, laid out for a height of ``min_units`` at least."""
        super().__init__()
        self.kit = kit
        self.setProperty("role", "page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._content = _Content()
        self.lay_out_for(min_units)
        inner = QVBoxLayout(self._content)
        pad = 5 * kit.unit
        inner.setContentsMargins(pad, 4 * kit.unit, pad, 4 * kit.unit)
        inner.setSpacing(3 * kit.unit)
        self.top = Flow(2 * kit.unit)
        self.title = Heading(title)
        self.top.addWidget(self.title)
        self.top.add_gap()
        inner.addWidget(self.top)
        self.body = QVBoxLayout()
        self.body.setSpacing(3 * kit.unit)
        inner.addLayout(self.body, 1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scrolling(self._content))

    def lay_out_for(self, min_units: int) -> None:
        """Scroll as a whole only where the window gives less than ``min_units`` of height."""
        self._content.setMinimumHeight(min_units * self.kit.unit)


class _Content(QWidget):
    """As high as the window, or as the least it needs: its parts scroll on their own."""

    @override
    def heightForWidth(self, width: int) -> int:
        return self.minimumHeight()


def scrolling(content: QWidget) -> QScrollArea:
    """Return ``content`` in an area that scrolls when it must."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidget(content)
    area.viewport().setAutoFillBackground(False)
    content.setAutoFillBackground(False)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area
