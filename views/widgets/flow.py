"""A row that goes on below where there is no room: large text needs several lines.

A widget that places its children itself instead of a ``QLayout``: items of a layout written in
Python may be freed by Qt while Python still holds them.
"""

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget
from shiboken6 import isValid
from typing_extensions import override


class Flow(QWidget):
    """Places widgets in a row; those after ``add_gap`` stand at the end of the first line."""

    def __init__(self, spacing_px: int) -> None:
        """Build it empty."""
        super().__init__()
        self._spacing = spacing_px
        self._widgets: list[QWidget] = []
        self._n_before_gap: int | None = None
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def addWidget(self, widget: QWidget) -> None:
        """Add ``widget`` at the end."""
        self.insert_widget(len(self._widgets), widget)

    def add_gap(self) -> None:
        """Push what is added from now on to the other side."""
        self._n_before_gap = len(self._widgets)

    def count(self) -> int:
        """Return how many widgets there are."""
        return len(self._widgets)

    def insert_widget(self, index: int, widget: QWidget) -> None:
        """Put ``widget`` at ``index``; at 0 it stands before the gap."""
        widget.setParent(self)
        self._widgets.insert(index, widget)
        if index < len(self._widgets) - 1:  # not by the order of creation, which Tab would follow
            QWidget.setTabOrder(widget, self._widgets[index + 1])
        gap = self._n_before_gap
        if gap is not None and (index < gap or (index == 0 and len(self._widgets) > 1)):
            self._n_before_gap = gap + 1

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
            self._place(self.width(), is_dry=False)
        return super().event(event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place(self.width(), is_dry=False)

    @override
    def heightForWidth(self, width: int) -> int:
        return self._place(width, is_dry=True)

    @override
    def sizeHint(self) -> QSize:
        sizes = [w.sizeHint() for w in self._shown()]
        wide = sum(s.width() for s in sizes) + self._spacing * max(0, len(sizes) - 1)
        return QSize(wide, max((s.height() for s in sizes), default=0))

    @override
    def minimumSizeHint(self) -> QSize:
        sizes = [least(w) for w in self._shown()]
        wide = max((s.width() for s in sizes), default=0)
        return QSize(wide, max((s.height() for s in sizes), default=0))

    def _shown(self) -> list[QWidget]:
        # Asked by Qt even while a child goes: an error in an answer to it would end the program.
        return [w for w in self._widgets if isValid(w) and not w.isHidden()]

    def _place(self, room: int, *, is_dry: bool) -> int:
        """Place everything in the width ``room`` and return the height it takes, pixels."""
        top = 0
        for number, line in enumerate(self._lines(room)):
            heights = [_height(widget, width) for widget, width in line]
            if not is_dry:
                self._place_line(line, heights, room, top, may_push=number == 0)
            top += max(heights) + self._spacing
        return max(0, top - self._spacing)

    def _lines(self, room: int) -> list[list[tuple[QWidget, int]]]:
        """Return the widgets of each line with their widths."""
        lines: list[list[tuple[QWidget, int]]] = []
        used = 0
        for widget in self._shown():
            least_px = least(widget).width()
            width = max(min(widget.sizeHint().width(), room), least_px)
            if not lines or used + self._spacing + width > room:
                lines.append([])
                used = -self._spacing
            lines[-1].append((widget, width))
            used += self._spacing + width
        return lines

    def _place_line(
        self, line: list[tuple[QWidget, int]], heights: list[int], room: int, top: int,
        *, may_push: bool,
    ) -> None:  # fmt: skip
        widths = sum(width for _, width in line) + self._spacing * (len(line) - 1)
        push = room - widths if may_push and self._n_before_gap is not None else 0
        pushed = self._widgets[self._n_before_gap or 0 :]
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        high, left = max(heights), 0
        for (widget, width), own in zip(line, heights, strict=True):
            at = left + (push if widget in pushed else 0)
            if is_mirrored:
                at = room - at - width
            widget.setGeometry(QRect(at, top + (high - own) // 2, width, own))
            left += width + self._spacing


def least(widget: QWidget) -> QSize:
    """Return the size that ``widget`` needs at least."""
    return widget.minimumSizeHint().expandedTo(widget.minimumSize())


def _height(widget: QWidget, width: int) -> int:
    if widget.sizePolicy().hasHeightForWidth() or widget.hasHeightForWidth():
        return widget.heightForWidth(width)
    return max(widget.sizeHint().height(), least(widget).height())
