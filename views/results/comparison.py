"""Before and after: how long the goal's request takes with each configuration."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.sweep import Recommended
from app.domain.units import format_seconds, format_tok_s
from views.widgets.basics import Heading, Kit, ValueLabel, text_label


class Comparison(QWidget):
    """A bar per configuration; shorter is better, and the numbers stand beside it."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2 * kit.unit)
        self._column.addWidget(Heading(self.tr("Time for one request"), 1.1))
        self._rows: QWidget | None = None

    def show_points(self, points: Sequence[tuple[str, Recommended]]) -> None:
        """Show ``points``; those without a time have no bar."""
        if self._rows is not None:
            self._rows.hide()
            self._rows.deleteLater()
        self._rows = QWidget()
        grid = QGridLayout(self._rows)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(3 * self._kit.unit)
        grid.setVerticalSpacing(self._kit.unit // 2)
        grid.setColumnStretch(0, 1)
        longest = max([p.request_s or 0.0 for _, p in points] or [0.0])
        for row, (name, point) in enumerate(points):
            fraction = (point.request_s or 0.0) / longest if longest else 0.0
            bar = _Bar(self._kit, fraction, "accent" if row == 0 else "control")
            speed = ValueLabel(self.tr("{name}: decode").format(name=name))
            decode = point.decode_tok_s
            speed.set_value(format_tok_s(decode.median if decode else None))
            time = ValueLabel(self.tr("{name}: time").format(name=name), bold=row == 0)
            time.set_value(format_seconds(point.request_s))
            grid.addWidget(text_label(name, wrap=False), 2 * row, 0)
            grid.addWidget(speed, 2 * row, 1)
            grid.addWidget(time, 2 * row, 2)
            grid.addWidget(bar, 2 * row + 1, 0, 1, 3)
        self._column.addWidget(self._rows)


class _Bar(QWidget):
    """A horizontal bar from the left."""

    def __init__(self, kit: Kit, fraction: float, color: str) -> None:
        super().__init__()
        self._kit = kit
        self._fraction = fraction
        self._color = color
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        kit.theme.changed.connect(self.update)

    @override
    def sizeHint(self) -> QSize:
        return QSize(30 * self._kit.unit, 2 * self._kit.unit)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._kit.theme.color(self._color))
        area = QRectF(self.rect())
        area.setWidth(max(2.0, area.width() * self._fraction))
        painter.drawRoundedRect(area, 3, 3)
