"""A live strip: one quantity over the last minutes.

The curve is painted by hand (``canvas``) instead of with pyqtgraph: eight GPUs show up to fifty
of these once a second, and together they may take one per cent of one core.
"""

from collections.abc import Sequence

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from views.plots.canvas import Band, Canvas, Point, StripInfo, nearest
from views.widgets.basics import Kit, ValueLabel, text_label
from views.words import number

__all__ = ["Band", "LiveStrip", "Point", "StripInfo"]


class LiveStrip(QWidget):
    """Caption, value of now (or under the cursor), and the curve."""

    def __init__(self, kit: Kit, info: StripInfo) -> None:
        """Build it empty."""
        super().__init__()
        self.info = info
        self._limit = info.limit
        self._points: Sequence[Point] = ()
        self._bands: Sequence[Band] = ()
        self._reason = ""
        self._cursor_s: float | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(kit.unit // 2)
        top = QHBoxLayout()
        self._caption = text_label(self._caption_text(), muted=True, wrap=False)
        self._value = ValueLabel(info.name, bold=True)
        top.addWidget(self._caption, 1)
        top.addWidget(self._value)
        column.addLayout(top)
        self._canvas = Canvas(kit, info)
        self._canvas.pointed.connect(self._on_pointed)
        column.addWidget(self._canvas, 1)

    def _caption_text(self) -> str:
        if self._limit is None:
            return self.info.name
        return f"{self.info.name} · {self.info.limit_name} {self.format(self._limit)}"

    def set_limit(self, limit: float | None) -> None:
        """Move the dashed line, e.g. when the enforced power limit changes."""
        if limit is not None and limit != self._limit:
            self._limit = limit
            self._caption.setText(self._caption_text())
            self._canvas.set_limit(limit)

    def show_points(
        self,
        points: Sequence[Point],
        window_s: float,
        reason: str = "",
        bands: Sequence[Band] = (),
    ) -> None:
        """Show the curve.

        Args:
            points: ``(seconds before now, value)``, oldest first; ``None`` = not read.
            window_s: Length of the axis, seconds.
            reason: Why the newest value is missing, if it is.
            bands: Spans to mark, as (older, newer) seconds before now: the device was slowed.
        """
        self._points = points
        self._bands = bands
        self._reason = reason
        self._canvas.show_points(points, window_s, bands)
        self._show_value()
        self.setAccessibleName(self.summary(points))

    def _show_value(self) -> None:
        if self._cursor_s is None:
            newest = self._points[-1][1] if self._points else None
            self._say(None if newest is None else self._shown(newest), self._reason)
            return
        found = nearest(self._points, self._cursor_s)
        if found is None:
            return
        age_s, value = found
        shown = None if value is None else self.format(value)
        text = self.tr("{seconds} s ago: {value}")
        self._say(text.format(seconds=number(age_s), value=shown or "—"))

    def _shown(self, value: float) -> str:
        """Return ``value``, of what it is a part of."""
        if not self.info.is_share or self.info.top is None:
            return self.format(value)
        part = number(self.info.shown(value), self.info.decimals)
        return f"{part}\u00a0/\u00a0{self.format(self.info.top)}"

    def _say(self, text: str | None, reason: str = "") -> None:
        """Show ``text`` in a place that only grows: a label of fixed size needs no new layout."""
        metrics = self._value.fontMetrics()
        wide = metrics.horizontalAdvance(text or "—") + 2
        if metrics.height() != self._value.minimumHeight() or wide > self._value.minimumWidth():
            self._value.setFixedSize(wide, metrics.height())
        self._value.set_value(text, reason)

    @Slot(object)
    def _on_pointed(self, age_s: float | None) -> None:
        self._cursor_s = age_s
        self._show_value()

    def format(self, value: float) -> str:
        """Return ``value`` as it is shown, with its unit."""
        return f"{number(self.info.shown(value), self.info.decimals)}\u00a0{self.info.unit}"

    def summary(self, points: Sequence[Point]) -> str:
        """Return the curve as one sentence, for who does not see it."""
        values = [value for _, value in points if value is not None]
        if not values:
            return self.tr("{name}: no readings").format(name=self.info.name)
        newest = points[-1][1]
        text = self.tr("{name}: now {now}, between {low} and {high}").format(
            name=self.info.name, now="—" if newest is None else self.format(newest),
            low=self.format(min(values)), high=self.format(max(values)),
        )  # fmt: skip
        if not self._bands:
            return text
        slowed_s = sum(old - new for old, new in self._bands)
        slowed = self.tr("slowed down for {n} s of it").format(n=number(slowed_s))
        return f"{text}, {slowed}"
