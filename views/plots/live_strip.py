"""A live strip: one quantity over the last minutes.

Painted by hand instead of with pyqtgraph: eight GPUs show up to fifty of these once a second,
and together they may take one per cent of one core.
"""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.record import Record
from views.widgets.basics import Kit, ValueLabel, text_label
from views.words import number


class StripInfo(Record, frozen=True, kw_only=True):
    """What a strip shows.

    Attributes:
        name: Quantity in plain words.
        color: Colour of the look.
        unit: Unit behind the number.
        top: Fixed top of the axis; ``None`` = the largest value seen.
        limit: Where a dashed line is drawn, e.g. the power limit.
        limit_name: What that line is.
        scale: Factor from stored to shown numbers, e.g. bytes to GiB.
        decimals: Digits after the point.
    """

    name: str
    color: str
    unit: str
    top: float | None = None
    limit: float | None = None
    limit_name: str = ""
    scale: float = 1.0
    decimals: int = 0


Point = tuple[float, float | None]


class LiveStrip(QWidget):
    """Caption, value of now, and the curve."""

    def __init__(self, kit: Kit, info: StripInfo) -> None:
        """Build it empty."""
        super().__init__()
        self.info = info
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(kit.unit // 2)
        top = QHBoxLayout()
        caption = info.name
        if info.limit is not None:
            caption = f"{info.name} · {info.limit_name} {self.format(info.limit)}"
        self._caption = text_label(caption, muted=True, wrap=False)
        self._value = ValueLabel(info.name, bold=True)
        top.addWidget(self._caption, 1)
        top.addWidget(self._value)
        column.addLayout(top)
        self._canvas = _Canvas(kit, info)
        column.addWidget(self._canvas, 1)

    def show_points(self, points: Sequence[Point], window_s: float, reason: str = "") -> None:
        """Show the curve.

        Args:
            points: ``(seconds before now, value)``, oldest first; ``None`` = not read.
            window_s: Length of the axis, seconds.
            reason: Why the newest value is missing, if it is.
        """
        newest = points[-1][1] if points else None
        self._value.set_value(None if newest is None else self.format(newest), reason)
        self._canvas.show_points(points, window_s)
        self.setAccessibleName(self.summary(points))

    def format(self, value: float) -> str:
        """Return ``value`` as it is shown, with its unit."""
        return f"{number(value * self.info.scale, self.info.decimals)}\u00a0{self.info.unit}"

    def summary(self, points: Sequence[Point]) -> str:
        """Return the curve as one sentence, for who does not see it."""
        values = [value for _, value in points if value is not None]
        if not values:
            return self.tr("{name}: no readings").format(name=self.info.name)
        return self.tr("{name}: now {now}, between {low} and {high}").format(
            name=self.info.name, now=self._value.text(),
            low=self.format(min(values)), high=self.format(max(values)),
        )  # fmt: skip


class _Canvas(QWidget):
    """The curve itself."""

    def __init__(self, kit: Kit, info: StripInfo) -> None:
        super().__init__()
        self._kit = kit
        self._info = info
        self._points: Sequence[Point] = ()
        self._window_s = 60.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMaximumHeight(24 * kit.unit)
        kit.theme.changed.connect(self.update)

    def show_points(self, points: Sequence[Point], window_s: float) -> None:
        self._points = points
        self._window_s = window_s
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(40 * self._kit.unit, 14 * self._kit.unit)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        area = QRectF(self.rect())
        colors = self._kit.theme
        painter.fillRect(area, colors.color("window"))
        painter.setPen(QPen(colors.color("line"), 1))
        for fraction in (0.25, 0.5, 0.75):
            y = round(area.height() * fraction)
            painter.drawLine(0, y, int(area.width()), y)
        top = self._top()
        for run in self._runs(area, top):
            self._draw_run(painter, area, run)
        if self._info.limit is not None and self._info.limit <= top:
            self._draw_limit(painter, area, top)

    def _top(self) -> float:
        if self._info.top is not None:
            return self._info.top
        values = [value for _, value in self._points if value is not None]
        return max([*values, self._info.limit or 0.0, 1e-9]) * 1.1

    def _runs(self, area: QRectF, top: float) -> list[list[QPointF]]:
        """Return the points in pixels, split where a reading is missing."""
        runs: list[list[QPointF]] = [[]]
        for age_s, value in self._points:
            if value is None:
                runs.append([])
                continue
            x = area.width() * (1 - age_s / self._window_s)
            y = area.height() * (1 - min(1.0, value / top))
            runs[-1].append(QPointF(x, max(1.0, y)))
        return [run for run in runs if run]

    def _draw_run(self, painter: QPainter, area: QRectF, run: list[QPointF]) -> None:
        color = self._kit.theme.color(self._info.color)
        fill = QColor(color)
        fill.setAlphaF(0.15)
        ground = [QPointF(run[-1].x(), area.height()), QPointF(run[0].x(), area.height())]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(fill)
        painter.drawPolygon(QPolygonF([*run, *ground]))
        painter.setPen(QPen(color, 1))
        painter.drawPolyline(QPolygonF(run))
        if len(run) == 1:
            painter.drawPoint(run[0])

    def _draw_limit(self, painter: QPainter, area: QRectF, top: float) -> None:
        y = area.height() * (1 - (self._info.limit or 0.0) / top)
        painter.setPen(QPen(self._kit.theme.color("bad"), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(0, y), QPointF(area.width(), y))
