"""The curve of a search: measured points with intervals, knee, cliff, spilled and failed ones."""

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QSignalBlocker, QTimer, Slot
from PySide6.QtGui import QShowEvent
from typing_extensions import override

from app.domain.sweep import Cliff, SweepResult
from app.domain.trial import Trial
from app.domain.units import format_tok_s
from views.plots.sweep_data import (
    BAND_KNOBS,
    Measure,
    PlotPoint,
    best_index,
    best_line,
    distinct_knee,
    points,
    predicted_band,
    settings_of,
    speed_of,
    usual_depth,
    varied_knobs,
)
from views.plots.twin import PlotTwin
from views.widgets.basics import Kit, text_label
from views.words import (
    depth_text,
    differing_texts,
    knob_label,
    number,
    outcome_label,
    paragraph,
    rate_text,
    settings_text,
)

# kind -> pyqtgraph symbol; the same shapes are named in the key below the plot
MIN_GAP_MS = 100
MIN_BAND = 3
BEAM_FRAC = 0.015
"""Width of the ends of an interval, of the axis: however few places it has."""
SYMBOLS = {"measured": "o", "spilled": "t", "failed": "x"}


class SweepPlot(PlotTwin):
    """Speed over one knob, with everything a person must see marked by shape and word."""

    def __init__(self, kit: Kit) -> None:
        """Build it without trials."""
        super().__init__(kit)
        self.build(
            self.tr("Speed by settings"),
            [self.tr("Settings"), self.tr("Depth"), self.tr("Outcome"), self.tr("Prefill tok/s"),
             self.tr("Decode tok/s")],
            text_columns=3,
        )  # fmt: skip
        self._trials: tuple[Trial, ...] = ()
        self._result: SweepResult | None = None
        self._measure = self.add_choice(self.tr("Measure"))
        self._measure.addItem(self.tr("Decode"), "decode")
        self._measure.addItem(self.tr("Prefill"), "prefill")
        self._knob = self.add_choice(self.tr("Against"))
        self._key = text_label(muted=True)
        self.column.addWidget(self._key)
        self._measure.currentIndexChanged.connect(self._on_choice_changed)
        self._knob.activated.connect(self._on_knob_activated)
        self._knob_chosen: str | None = None
        self._is_stale = True
        # Trials of a replay arrive by the dozen; nobody reads more than ten plots a second.
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._refresh)
        kit.theme.changed.connect(self._on_theme_changed)

    def show_trials(self, trials: Sequence[Trial], result: SweepResult | None = None) -> None:
        """Show the trials so far; ``result`` adds what the search concluded."""
        self._trials = tuple(trials)
        self._result = result
        self._is_stale = True
        if self.isVisible() and not self._soon.isActive():
            self._soon.start(MIN_GAP_MS)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._is_stale:
            self._soon.start(0)

    @Slot()
    def _refresh(self) -> None:
        self._fill_knobs()
        self.table.set_rows(_rows(self._trials))
        if not self._is_ready_to_draw(self._soon):
            return
        self._is_stale = False
        self._redraw()

    @Slot()
    def _on_theme_changed(self) -> None:
        self._is_stale = True
        if self.isVisible():
            self._refresh()

    @property
    def knob(self) -> str:
        """The knob on the axis."""
        return str(self._knob.currentData() or "trial")

    @Slot()
    def _on_choice_changed(self) -> None:
        self._redraw()

    @Slot()
    def _on_knob_activated(self) -> None:
        self._knob_chosen = self.knob
        self._redraw()

    def _fill_knobs(self) -> None:
        knobs = varied_knobs(self._trials)
        wanted = self._knob_chosen if self._knob_chosen in knobs else knobs[0]
        with QSignalBlocker(self._knob):
            self._knob.clear()
            for knob in knobs:
                self._knob.addItem(knob_label(knob), knob)
            self._knob.setCurrentIndex(knobs.index(wanted))

    @Slot()
    def _redraw(self) -> None:
        measure: Measure = "prefill" if self._measure.currentData() == "prefill" else "decode"
        found = points(self._trials, self.knob, measure)
        self._axes.widget.setVisible(bool(found))  # numbers on empty axes would mean nothing
        self._has_knee = False
        self._axes.clear()
        self._axes.set_labels(knob_label(self.knob), self._speed_label())
        self._draw_band(found, measure)
        self._draw_line(found, measure)
        for kind in SYMBOLS:
            self._draw_kind([p for p in found if p.kind == kind], kind, measure)
        if self._result is not None:
            self._draw_conclusions(self._result, found)
        self._show_key(found)
        self.say(self._sentence(found, measure))

    def _speed_label(self) -> str:
        # How full the context was is said below: it would not fit beside a low plot.
        return self.tr("tok/s")

    def _draw_line(self, found: Sequence[PlotPoint], measure: Measure) -> None:
        line = best_line(found)
        if len(line) > 1:
            x, y = np.array(line).T
            self._axes.add(pg.PlotCurveItem(x, y, pen=self._axes.pen(measure, 2)))
        # Intervals stay in sight, unless one is so wide that it would flatten the rest.
        speeds = [p.speed for p in found if p.speed is not None]
        top = max([min(s.high, 1.6 * s.median) for s in speeds] or [1.0])
        places = [p.x for p in found] or [1.0]
        pad = max(0.5, 0.05 * (max(places) - min(places)))
        self._axes.plot.setXRange(min(places) - pad, max(places) + pad, padding=0)
        self._axes.plot.setYRange(-0.06 * top, 1.25 * top, padding=0)

    def _draw_band(self, found: Sequence[PlotPoint], measure: Measure) -> None:
        """Shade what the speed model expects between measured points, behind them."""
        self._has_band = False
        if self.knob not in BAND_KNOBS:
            return
        band = predicted_band(found)
        if len(band) < MIN_BAND:
            return
        self._has_band = True
        x, low, high = np.array(band).T
        fill = self._axes.brush(measure, 0.18)
        edges = [pg.PlotCurveItem(x, y, pen=None) for y in (low, high)]
        for item in (*edges, pg.FillBetweenItem(*edges, brush=fill)):
            self._axes.add(item)

    def _draw_kind(self, found: Sequence[PlotPoint], kind: str, measure: Measure) -> None:
        if not found:
            return
        x = np.array([p.x for p in found])
        y = np.array([p.speed.median if p.speed else 0.0 for p in found])
        if kind != "failed":
            low = np.array([p.speed.low if p.speed else 0.0 for p in found])
            high = np.array([p.speed.high if p.speed else 0.0 for p in found])
            left, right = self._axes.plot.viewRange()[0]
            beam = BEAM_FRAC * (right - left)
            self._axes.add(
                pg.ErrorBarItem(
                    x=x, y=y, top=high - y, bottom=y - low, beam=beam, pen=self._axes.pen(measure)
                )
            )
        color = measure if kind == "measured" else "bad"
        fill = self._axes.brush(color) if kind == "measured" else self._axes.brush("surface")
        self._axes.add(
            pg.ScatterPlotItem(
                x=x, y=y, symbol=SYMBOLS[kind], size=9, pen=self._axes.pen(color, 2), brush=fill
            )
        )

    def _draw_conclusions(self, result: SweepResult, found: Sequence[PlotPoint]) -> None:
        by_index = {p.index: p for p in found}
        if result.cliff is not None and result.cliff.knob == self.knob:
            self._draw_cliff(result.cliff)
        # The knee is named in the key: beside it lie the curve and the best point's own name.
        knee, best = (
            by_index.get(what.trial) if what is not None else None
            for what in (distinct_knee(result), result.recommended)
        )
        if knee is not None:
            self._has_knee = self._draw_ring(knee, "d")
        if best is not None and best.speed is not None and self._draw_ring(best, "o"):
            left, right = self._axes.plot.viewRange()[0]
            # Near an edge the text stands where there is room.
            anchor_x = min(1.0, max(0.0, (best.x - left) / (right - left)))
            text = self.tr("Recommended")
            self._axes.add_text(text, best.x, best.speed.median, (anchor_x, 1.5))

    def _draw_ring(self, point: PlotPoint, symbol: str) -> bool:
        """Mark ``point``; one without a speed has no place."""
        if point.speed is None:
            return False
        self._axes.add(
            pg.ScatterPlotItem(
                x=[point.x], y=[point.speed.median], symbol=symbol, size=18,
                pen=self._axes.pen("text", 2), brush=None,
            )
        )  # fmt: skip
        return True

    def _draw_cliff(self, cliff: Cliff) -> None:
        x = (cliff.last_good + cliff.first_bad) / 2
        line = pg.InfiniteLine(pos=x, angle=90, pen=self._axes.pen("bad", 1, dashed=True))
        self._axes.add(line)
        # Low on the near side: the labels of the best points are high, failed points are lower.
        top = self._axes.plot.viewRange()[1][1]
        self._axes.add_text(self.tr("Cliff"), x, 0.35 * top, (1.05, 0.5))

    def _show_key(self, found: Sequence[PlotPoint]) -> None:
        kinds = {p.kind for p in found}
        words = {
            "measured": self.tr("● measured, with 95 % interval"),
            "spilled": self.tr("▽ spilled into shared memory"),
            "failed": self.tr("✕ did not run"),
        }
        shown = [words[k] for k in SYMBOLS if k in kinds]
        if self._has_band:
            shown.append(self.tr("▒ expected in between, ±\u00a08\u00a0%"))
        if self._has_knee:
            shown.append(self.tr("◇ knee: saves memory"))
        self._key.setText("   ".join(shown))

    def _sentence(self, found: Sequence[PlotPoint], measure: Measure) -> str:
        line = best_line(found)
        if not line:
            return self.tr("No speed measured yet.")
        best = max(line, key=lambda p: p[1])
        name = self.tr("Prefill") if measure == "prefill" else self.tr("Decode")
        text = self.tr("{measure} is best at {knob} {x:g}: {speed}. Trials shown: {n}.")
        text = text.format(
            measure=name, knob=knob_label(self.knob), x=best[0], speed=format_tok_s(best[1]),
            n=len(found),
        )  # fmt: skip
        depth = usual_depth(self._trials)
        if depth is None:
            return text
        speeds = self.tr("Speeds {depth}.").format(depth=depth_text(depth))
        return paragraph([text, speeds])

    def best_text(self) -> str:
        """Return the fastest trial so far in one line."""
        index = best_index(self._trials)
        if index is None:
            return ""
        trial = self._trials[index]
        speed = speed_of(trial, "decode")
        parts = (
            f"{format_tok_s(speed.median if speed else None)} "
            f"{depth_text(trial.request.workload.depth)}",
            settings_text(settings_of(trial)),
        )
        return " · ".join(parts)


def _rows(trials: Sequence[Trial]) -> list[tuple[str, ...]]:
    texts = differing_texts([settings_of(trial) for trial in trials])
    return [
        (
            text,
            number(trial.request.workload.depth),
            outcome_label(trial.outcome),
            rate_text(speed_of(trial, "prefill")),
            rate_text(speed_of(trial, "decode")),
        )
        for text, trial in zip(texts, trials, strict=True)
    ]
