"""A row that goes on below where there is no room: large text needs several lines."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget
from typing_extensions import override


class Flow(QLayout):
    """Places widgets in a row; those after ``add_gap`` stand at the end of the first line."""

    def __init__(self, spacing_px: int, parent: QWidget | None = None) -> None:
        """Build it empty; ``parent`` gets it as its layout."""
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._n_before_gap: int | None = None
        if parent is not None:
            parent.setLayout(self)
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing_px)

    def add_gap(self) -> None:
        """Push what is added from now on to the other side."""
        self._n_before_gap = len(self._items)

    def insert_widget(self, index: int, widget: QWidget) -> None:
        """Put ``widget`` at ``index``; at 0 it stands before the gap."""
        self.addWidget(widget)
        self._items.insert(index, self._items.pop())
        if self._n_before_gap is not None and (index == 0 or index < self._n_before_gap):
            self._n_before_gap += 1

    @override
    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    @override
    def count(self) -> int:
        return len(self._items)

    @override
    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    @override
    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    @override
    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    @override
    def hasHeightForWidth(self) -> bool:
        return True

    @override
    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), is_dry=True)

    @override
    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place(rect, is_dry=False)

    @override
    def sizeHint(self) -> QSize:
        sizes = [item.sizeHint() for item in self._items if not item.isEmpty()]
        wide = sum(s.width() for s in sizes) + self.spacing() * max(0, len(sizes) - 1)
        return QSize(wide, max((s.height() for s in sizes), default=0))

    @override
    def minimumSize(self) -> QSize:
        sizes = [item.minimumSize() for item in self._items if not item.isEmpty()]
        wide = max((s.width() for s in sizes), default=0)
        return QSize(wide, max((s.height() for s in sizes), default=0))

    def _place(self, rect: QRect, *, is_dry: bool) -> int:
        """Place everything inside ``rect`` and return the height it takes, pixels."""
        top = rect.top()
        for number, line in enumerate(self._lines(rect.width())):
            heights = [_height(item, width) for _, item, width in line]
            high = max(heights)
            if not is_dry:
                self._place_line(line, heights, rect, top, may_push=number == 0)
            top += high + self.spacing()
        return max(0, top - self.spacing() - rect.top())

    def _lines(self, room: int) -> list[list[tuple[int, QLayoutItem, int]]]:
        """Return index, item and width of what stands in each line."""
        lines: list[list[tuple[int, QLayoutItem, int]]] = []
        used = 0
        for index, item in enumerate(self._items):
            if item.isEmpty():
                continue
            width = min(item.sizeHint().width(), max(room, item.minimumSize().width()))
            if not lines or used + self.spacing() + width > room:
                lines.append([])
                used = -self.spacing()
            lines[-1].append((index, item, width))
            used += self.spacing() + width
        return lines

    def _place_line(
        self, line: list[tuple[int, QLayoutItem, int]], heights: list[int], rect: QRect, top: int,
        *, may_push: bool,
    ) -> None:  # fmt: skip
        widths = sum(width for _, _, width in line) + self.spacing() * (len(line) - 1)
        push = rect.width() - widths if may_push and self._n_before_gap is not None else 0
        high, left = max(heights), 0
        for (index, item, width), own in zip(line, heights, strict=True):
            shift = push if index >= (self._n_before_gap or 0) else 0
            place = QRect(rect.left() + left + shift, top + (high - own) // 2, width, own)
            if self._is_mirrored():
                place.moveRight(rect.right() - left - shift)
            item.setGeometry(place)
            left += width + self.spacing()

    def _is_mirrored(self) -> bool:
        widget = self.parentWidget()
        return widget is not None and widget.layoutDirection() == Qt.LayoutDirection.RightToLeft


def _height(item: QLayoutItem, width: int) -> int:
    return item.heightForWidth(width) if item.hasHeightForWidth() else item.sizeHint().height()
