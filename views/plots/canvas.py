"""The painted part of a live strip: grid, throttle bands, curve, limit line, cursor."""

import struct
from collections.abc import Sequence
from itertools import chain, groupby
from typing import cast

from PySide6.QtCore import QByteArray, QDataStream, QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from app.domain.record import Record
from views.widgets.basics import Kit


class StripInfo(Record, frozen=True, kw_only=True):
    """What a strip shows.

    Attributes:
        name: Quantity in plain words.
        color: Colour of the look.
        unit: Unit behind the number.
        top: Fixed top of the axis; ``None`` = the largest value seen.
        is_share: Whether the value is a part of ``top``, and shown as such.
        limit: Where a dashed line is drawn, e.g. the power limit.
        limit_name: What that line is.
        scale: Factor from stored to shown numbers, e.g. bytes to GiB.
        offset: Added after scaling, e.g. for degrees Fahrenheit.
        decimals: Digits after the point.
    """

    name: str
    color: str
    unit: str
    top: float | None = None
    is_share: bool = False
    limit: float | None = None
    limit_name: str = ""
    scale: float = 1.0
    offset: float = 0.0
    decimals: int = 0

    def shown(self, value: float) -> float:
        """Return a stored value as it is shown."""
        return value * self.scale + self.offset


GROUND_FRAC = 0.15
Point = tuple[float, float | None]
Band = tuple[float, float]


class Canvas(QWidget):
    """The curve itself.

    Signals:
        pointed: Seconds before now under the cursor; ``None`` when it has left.
    """

    pointed = Signal(object)

    def __init__(self, kit: Kit, info: StripInfo) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        self._info = info
        self._limit = info.limit
        self._points: Sequence[Point] = ()
        self._bands: Sequence[Band] = ()
        self._window_s = 60.0
        self._cursor_x: float | None = None
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMaximumHeight(24 * kit.unit)
        # Every pixel is painted here: what lies below need not be drawn first.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        kit.theme.changed.connect(self.update)

    def set_limit(self, limit: float) -> None:
        """Move the dashed line."""
        self._limit = limit
        self.update()

    def show_points(
        self, points: Sequence[Point], window_s: float, bands: Sequence[Band] = ()
    ) -> None:
        """Draw ``points`` over ``bands`` from now on."""
        self._points = points
        self._bands = bands
        self._window_s = window_s
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(40 * self._kit.unit, 14 * self._kit.unit)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._cursor_x = event.position().x()
        self.pointed.emit(self._window_s * (1 - self._cursor_x / max(1, self.width())))
        self.update()

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._cursor_x = None
        self.pointed.emit(None)
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        area = QRectF(self.rect())
        colors = self._kit.theme
        painter.fillRect(area, colors.color("window"))
        top = self._top()
        self._draw_curve(painter, area, top)
        self._draw_bands(painter, area)
        # Not the colour of lines: with high contrast that one would outshine the curve.
        line = mixed(colors.color("text"), colors.color("window"), GROUND_FRAC)
        for fraction in (0.25, 0.5, 0.75):
            # A thin rectangle: a line costs four times as much.
            painter.fillRect(0, round(area.height() * fraction), self.width(), 1, line)
        if self._limit is not None and self._limit <= top:
            self._draw_limit(painter, area, top)
        if self._cursor_x is not None:
            painter.setPen(QPen(colors.color("text"), 1))
            painter.drawLine(QPointF(self._cursor_x, 0), QPointF(self._cursor_x, area.height()))

    def _x(self, area: QRectF, age_s: float) -> float:
        return area.width() * (1 - age_s / self._window_s)

    def _draw_bands(self, painter: QPainter, area: QRectF) -> None:
        # Hatched, so that a band is told from the curve's own filling without its colour.
        brush = QBrush(self._kit.theme.color("warn"), Qt.BrushStyle.BDiagPattern)
        for older_s, newer_s in self._bands:
            left, right = max(0.0, self._x(area, older_s)), self._x(area, newer_s)
            painter.fillRect(QRectF(left, 0, max(2.0, right - left), area.height()), brush)

    def _top(self) -> float:
        if self._info.top is not None:
            return self._info.top
        values = [value for _, value in self._points if value is not None]
        return max(max(values, default=0.0), self._limit or 0.0, 1e-9) * 1.1

    def _draw_curve(self, painter: QPainter, area: QRectF, top: float) -> None:
        """Draw the curve over a tint of it, in a mixed colour: a see-through one costs three times.

        Fifty curves a second pass here: the painter maps (age, value) to pixels, not Python.
        """
        theme = self._kit.theme
        color = theme.color(self._info.color)
        ground = mixed(color, theme.color("window"), GROUND_FRAC)
        painter.save()
        painter.translate(area.width(), area.height())
        painter.scale(-area.width() / self._window_s, -(area.height() - 1) / top)
        for run in runs_of(self._points, top):
            oldest, newest = run[0][0], run[-1][0]
            shape = polygon_of([*run, (newest, 0.0), (oldest, 0.0)])
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ground)
            painter.drawPolygon(shape)
            shape.remove(len(run), 2)
            painter.setPen(QPen(color, 0))  # one pixel, whatever the scale
            painter.drawPolyline(shape)
            if len(run) == 1:
                painter.drawPoint(shape.first())
        painter.restore()

    def _draw_limit(self, painter: QPainter, area: QRectF, top: float) -> None:
        y = area.height() * (1 - (self._limit or 0.0) / top)
        painter.setPen(QPen(self._kit.theme.color("bad"), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(0, y), QPointF(area.width(), y))


def runs_of(points: Sequence[Point], top: float) -> list[list[tuple[float, float]]]:
    """Return the points between the gaps, none above ``top``."""
    values = [value for _, value in points]
    if None not in values:  # most of the time
        runs = [list(points)] if points else []
    else:
        runs = [list(run) for is_gap, run in groupby(points, _is_gap) if not is_gap]
    known = cast("list[list[tuple[float, float]]]", runs)
    if max(filter(None, values), default=0.0) > top:  # neither None nor zero is above
        return [[(age_s, min(value, top)) for age_s, value in run] for run in known]
    return known


def _is_gap(point: Point) -> bool:
    return point[1] is None


def polygon_of(points: Sequence[tuple[float, float]]) -> QPolygonF:
    """Return ``points`` for the painter, by Qt's own file format: a call per point costs more."""
    packed = struct.pack(f">I{2 * len(points)}d", len(points), *chain.from_iterable(points))
    shape = QPolygonF()
    QDataStream(QByteArray(packed)) >> shape
    return shape


def mixed(color: QColor, ground: QColor, frac: float) -> QColor:
    """Return what ``frac`` of ``color`` over ``ground`` looks like."""
    rest = 1 - frac
    return QColor.fromRgbF(
        frac * color.redF() + rest * ground.redF(),
        frac * color.greenF() + rest * ground.greenF(),
        frac * color.blueF() + rest * ground.blueF(),
    )


def nearest(points: Sequence[Point], age_s: float) -> Point | None:
    """Return the point next to ``age_s``; ``None`` without points."""
    return min(points, key=lambda point: abs(point[0] - age_s), default=None)


def bands_of(points: Sequence[Point]) -> tuple[Band, ...]:
    """Return where a count is above zero, as spans from one reading to the next."""
    found: list[Band] = []
    for index, (age_s, value) in enumerate(points):
        if not value:
            continue
        before_s = points[index - 1][0] if index else age_s
        if found and found[-1][1] == before_s:
            found[-1] = (found[-1][0], age_s)
        else:
            found.append((before_s, age_s))
    return tuple(found)
