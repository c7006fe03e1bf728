"""Two areas side by side, one below the other where there is no room."""

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QWidget
from typing_extensions import override

from views.widgets.basics import Kit


class Sides(QWidget):
    """A row that becomes a column: large text needs the width of the whole page."""

    def __init__(self, kit: Kit, gap: int = 3) -> None:
        """Build it empty; ``gap`` is what lies between the areas, units."""
        super().__init__()
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(gap * kit.unit)
        self._widgets: list[QWidget] = []

    def add(self, widget: QWidget, stretch: int = 1) -> None:
        """Add an area."""
        self._widgets.append(widget)
        self._row.addWidget(widget, stretch)

    def _needs(self) -> list[int]:
        return [
            max(w.minimumSizeHint().width(), w.minimumWidth())
            for w in self._widgets
            if not w.isHidden()
        ]

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(max(self._needs(), default=0), super().minimumSizeHint().height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._turn()

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._turn()
        return super().event(event)

    def _turn(self) -> None:
        needs = self._needs()
        fits = sum(needs) + self._row.spacing() * (len(needs) - 1) <= self.width()
        direction = QBoxLayout.Direction.LeftToRight
        if not fits:
            direction = QBoxLayout.Direction.TopToBottom
        if direction != self._row.direction():
            self._row.setDirection(direction)
