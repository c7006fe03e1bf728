"""Decode speed while the context fills, with the floor the user set."""

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QShowEvent
from typing_extensions import override

from app.domain.sweep import SweepResult
from app.domain.units import format_tok_s
from views.plots.sweep_data import context_points
from views.plots.twin import PlotTwin
from views.widgets.basics import Kit
from views.words import number, paragraph, rate_text


class ContextPlot(PlotTwin):
    """Speed over tokens in context."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__(kit)
        self.build(
            self.tr("Speed as the context fills"),
            [self.tr("Tokens in context"), self.tr("Decode tok/s")],
        )  # fmt: skip
        self._result: SweepResult | None = None
        self._floor: float | None = None
        self._is_stale = False
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._redraw)
        kit.theme.changed.connect(self._draw_soon)

    def show_result(self, result: SweepResult, floor_tok_s: float | None) -> None:
        """Show the context curve of ``result``."""
        self._result = result
        self._floor = floor_tok_s
        found = context_points(result)
        self.table.set_rows([(number(x), rate_text(r)) for x, r in found])
        self.say(self._sentence())
        self._draw_soon()

    def _sentence(self) -> str:
        found = context_points(self._result) if self._result else ()
        if not found:
            return self.tr("Not measured in this search.")
        (shallow, first), (deep, last) = found[0], found[-1]
        text = self.tr("Decode goes from {first} at {shallow} tokens to {last} at {deep} tokens.")
        text = text.format(
            first=format_tok_s(first.median), shallow=number(shallow),
            last=format_tok_s(last.median), deep=number(deep),
        )  # fmt: skip
        if self._floor is None:
            return text
        floor = self.tr("The floor is {floor}.").format(floor=format_tok_s(self._floor))
        return paragraph([text, floor])

    @Slot()
    def _draw_soon(self) -> None:
        self._is_stale = True
        if self.isVisible():
            self._soon.start(0)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._is_stale:
            self._soon.start(0)

    @Slot()
    def _redraw(self) -> None:
        if not self._is_ready_to_draw(self._soon):
            return
        self._is_stale = False
        found = context_points(self._result) if self._result else ()
        if not found:
            return
        self._axes.clear()
        self._axes.set_labels(self.tr("Tokens in context"), self.tr("Decode, tok/s"))
        x = np.array([p for p, _ in found])
        y = np.array([r.median for _, r in found])
        high = np.array([r.high for _, r in found])
        low = np.array([r.low for _, r in found])
        bars = pg.ErrorBarItem(x=x, y=y, top=high - y, bottom=y - low, pen=self._axes.pen("decode"))
        self._axes.add(bars)
        self._axes.add(
            pg.PlotDataItem(
                x, y, pen=self._axes.pen("decode", 2), symbol="o", symbolSize=8,
                symbolPen=self._axes.pen("decode"), symbolBrush=self._axes.brush("decode"),
            )
        )  # fmt: skip
        self._axes.plot.setYRange(0, 1.2 * float(high.max()), padding=0)
        right = max(1.0, float(x.max()))
        self._axes.plot.setXRange(-0.03 * right, 1.05 * right, padding=0)
        if self._floor is not None:
            pen = self._axes.pen("bad", 1, dashed=True)
            self._axes.add(pg.InfiniteLine(pos=self._floor, angle=0, pen=pen))
            self._axes.add_text(self.tr("Floor"), 0, self._floor, (0.0, 1.0))
