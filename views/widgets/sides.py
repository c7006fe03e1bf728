"""Two areas side by side, one below the other where there is no room."""

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QWidget
from typing_extensions import override

from views.widgets.basics import Kit


class Sides(QWidget):
    """A row that becomes a column: large text needs the width of the whole page."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(3 * kit.unit)
        self._widgets: list[QWidget] = []

    def add(self, widget: QWidget, stretch: int = 1) -> None:
        """Add an area."""
        self._widgets.append(widget)
        self._row.addWidget(widget, stretch)

    def _needs(self) -> list[int]:
        return [w.minimumSizeHint().width() for w in self._widgets]

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(max(self._needs(), default=0), super().minimumSizeHint().height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        gaps = self._row.spacing() * (len(self._widgets) - 1)
        fits = sum(self._needs()) + gaps <= self.width()
        direction = QBoxLayout.Direction.LeftToRight
        if not fits:
            direction = QBoxLayout.Direction.TopToBottom
        if direction != self._row.direction():
            self._row.setDirection(direction)
