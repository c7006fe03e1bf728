"""A card with live strips: the part that GPU cards and the CPU card share."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.domain.machine import STALE
from app.domain.units import MISSING
from views.dashboard.strips import Strip, statistics
from views.feed import TelemetryFeed
from views.plots.canvas import Band, bands_of
from views.plots.live_strip import LiveStrip, Point
from views.theme import scale_font
from views.widgets.basics import Card, Heading, Kit, text_label
from views.widgets.pill import Pill
from views.widgets.table import Table
from views.words import absence_text

Span = tuple[float, float | None]
"""Length of the window and its end (``time.perf_counter()``; ``None`` = now), seconds."""
MAX_COLUMNS = 3
KEPT_BACK = {"implausible", "no_permission"}
"""Reasons of a reading that a device has and that cannot be shown."""
BANDED = ("clock_mhz", "power_w", "temp_c")
"""Strips that show when the device was slowed down."""
REASON_OF = {"limited_most_pct": "limited_pct"}
"""A figure made of another reading is absent for that one's reason."""


class DeviceCard(Card):
    """Icon, name, state, facts, strips, and the table that says the same."""

    def __init__(self, kit: Kit, icon: str, name: str, facts: str, strips: Sequence[Strip]) -> None:
        """Build the card; strips without any reading hide once others have one."""
        super().__init__(kit)
        self._kit = kit
        self.name = name
        self.has_readings = False
        self._points: dict[str, list[Point]] = {}
        self._shown: tuple[str, ...] = ()
        self._columns = 0
        self.setAccessibleName(name)
        self.pill = Pill(kit)
        self.column.addLayout(self._header(icon, facts))
        self._strips = {strip.field: LiveStrip(kit, strip.info) for strip in strips}
        self._graphs = QWidget()
        self._grid = QGridLayout(self._graphs)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(4 * kit.unit)
        self._grid.setVerticalSpacing(3 * kit.unit)
        self._table: Table | None = None
        self._stack = QStackedWidget()
        self._stack.addWidget(self._graphs)
        self.column.addWidget(self._stack)
        self._arrange(tuple(self._strips))

    @property
    def table(self) -> Table:
        """The readings as numbers, made when they are wanted first: most users never do."""
        if self._table is None:
            self._table = Table(
                self._kit, self.tr("Readings of {name}").format(name=self.name),
                [self.tr("Quantity"), self.tr("Now"), self.tr("Lowest"), self.tr("Mean"),
                 self.tr("Highest")],
            )  # fmt: skip
            # The card is as high as its curves; the table scrolls where it needs more.
            self._table.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
            self._stack.addWidget(self._table)
        return self._table

    def _header(self, icon: str, facts: str) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(3 * self._kit.unit)
        row.addWidget(self._kit.icon_label(icon, "accent", 8 * self._kit.unit))
        texts = QVBoxLayout()
        texts.setSpacing(0)
        heading = Heading(self.name, 1.15)
        heading.setWordWrap(True)
        texts.addWidget(heading)
        self._facts = text_label(facts, muted=True)
        scale_font(self._facts, 0.95)
        texts.addWidget(self._facts)
        row.addLayout(texts, 1)
        row.addWidget(self.pill)
        return row

    def show_series(
        self, feed: TelemetryFeed, key: str, span: Span, missing: dict[str, str]
    ) -> None:
        """Show the newest readings.

        Args:
            feed: Where they come from.
            key: The device.
            span: What of the past to show.
            missing: Why a field has no reading now.
        """
        length_s, end_s = span
        points_of = {field: feed.points(key, field, length_s, end_s) for field in self._strips}
        for field, points in points_of.items():
            if points and missing.get(REASON_OF.get(field, field)) == STALE:
                points.append((0.0, None))  # the last reading is none of now
        slowed: tuple[Band, ...] = ()
        if any(field in self._strips for field in BANDED):
            slowed = bands_of(feed.points(key, "n_throttle", length_s, end_s))
        shown = []
        for field, strip in self._strips.items():
            points = points_of[field]
            reason = missing.get(REASON_OF.get(field, field), "")
            if statistics(points) is None and reason not in KEPT_BACK:
                continue  # this device does not tell; a capability that is not there is not shown
            shown.append(field)
            bands = slowed if field in BANDED else ()
            strip.show_points(points, length_s, absence_text(reason), bands)
        if shown:
            self.has_readings = True
            self._arrange(tuple(shown))
        self._points = {field: points_of[field] for field in shown}
        if self._table is not None and self._table.isVisible():
            self._fill_table()

    def _fill_table(self) -> None:
        self.table.set_rows([self._row(field) for field in self._points])

    def _row(self, field: str) -> list[str]:
        strip, points = self._strips[field], self._points[field]
        newest = points[-1][1] if points else None
        now = MISSING if newest is None else strip.format(newest)
        past = statistics(points)
        known = [MISSING] * 3 if past is None else map(strip.format, past)
        return [strip.info.name, now, *known]

    @Slot(bool)
    def show_as_table(self, is_table: bool) -> None:  # noqa: FBT001
        """Show numbers instead of curves."""
        if is_table:
            self._fill_table()
        self._stack.setCurrentWidget(self.table if is_table else self._graphs)

    @property
    def quantities(self) -> tuple[Strip, ...]:
        """Everything this card could show."""
        return tuple(Strip(field=f, info=strip.info) for f, strip in self._strips.items())

    def set_facts(self, facts: str) -> None:
        """Change the line below the name."""
        self._facts.setText(facts)

    def set_limit(self, field: str, limit: float | None) -> None:
        """Move the limit line of a strip."""
        self._strips[field].set_limit(limit)

    def hide_strips(self) -> None:
        """Show no curves: nothing can be read now."""
        self._arrange(())

    def _arrange(self, shown: tuple[str, ...]) -> None:
        if shown == self._shown and self._columns:
            return
        self._shown = shown
        self._stack.setVisible(bool(shown))
        self._columns = 0
        for strip in self._strips.values():
            self._grid.removeWidget(strip)
            strip.setVisible(False)
        self._place()

    def _place(self) -> None:
        """Put the strips into as many columns as there is room for."""
        shown = [self._strips[field] for field in self._shown]
        wanted = 2 if len(shown) in (2, 4) else MAX_COLUMNS
        widest = max((strip.minimumSizeHint().width() for strip in shown), default=1)
        room = self.width() - 2 * self.column.contentsMargins().left()
        columns = max(1, min(wanted, room // (widest + self._grid.horizontalSpacing())))
        if columns == self._columns:
            return
        self._columns = columns
        for index, strip in enumerate(shown):
            self._grid.addWidget(strip, index // columns, index % columns)
            strip.show()
        for column in range(MAX_COLUMNS):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)

    @override
    def minimumSizeHint(self) -> QSize:
        shown = [self._strips[field] for field in self._shown]
        widest = max((strip.minimumSizeHint().width() for strip in shown), default=0)
        margins = 2 * self.column.contentsMargins().left()
        return QSize(widest + margins, super().minimumSizeHint().height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()
