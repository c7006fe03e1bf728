"""The search while it runs: what it does now, the curve so far, and Stop."""

import time

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAccessible, QAccessibleEvent, QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.events import TrialProgress, TrialStarted
from app.domain.sweep import SweepPlan, SweepResult
from app.domain.trial import Trial
from app.domain.units import format_seconds
from views.plots.sweep_plot import SweepPlot
from views.widgets import Card, Heading, Kit, text_label
from views.words import phase_label, sentence, settings_text

TICK_MS = 1000


class RunStep(QWidget):
    """Follows a search.

    Signals:
        stop_requested: The user has seen enough.
        go_on_requested: The search that waits shall go on.
    """

    stop_requested = Signal()
    go_on_requested = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build it idle."""
        super().__init__()
        self._plan: SweepPlan | None = None
        self._trials: list[Trial] = []
        self._begin_s = 0.0
        self._now = ""
        self._tick = QTimer(self)
        self._tick.setInterval(TICK_MS)
        self._tick.timeout.connect(self._show_time)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3 * kit.unit)
        column.addWidget(self._status_card(kit))
        card = Card(kit)
        self.plot = SweepPlot(kit)
        card.column.addWidget(self.plot)
        column.addWidget(card, 1)

    def _status_card(self, kit: Kit) -> Card:
        card = Card(kit)
        row = QHBoxLayout()
        self._headline = Heading(self.tr("Measuring"), 1.1)
        row.addWidget(self._headline, 1)
        self.stop = kit.button(self.tr("Stop"), "stop")
        self.stop.setToolTip(self.tr("Everything measured so far is kept (Esc)"))
        self.stop.setShortcut(Qt.Key.Key_Escape)
        self.stop.clicked.connect(self.stop_requested)
        row.addWidget(self.stop)
        card.column.addLayout(row)
        self._bar = QProgressBar()
        self._bar.setRange(0, 1000)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Progress of the search"))
        card.column.addWidget(self._bar)
        card.column.addWidget(self._question(kit))
        self._what = text_label(muted=True)
        self._time = text_label(muted=True)
        card.column.addWidget(self._what)
        card.column.addWidget(self._time)
        return card

    def _question(self, kit: Kit) -> QWidget:
        """Build what asks whether a search that waits shall go on; hidden until it waits."""
        self._paused = QWidget()
        row = QHBoxLayout(self._paused)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2 * kit.unit)
        row.addWidget(kit.icon_label("warn", "warn"))
        self.why_paused = text_label()
        row.addWidget(self.why_paused, 1)
        self.go_on = kit.button(self.tr("Go On"), "play", "primary")
        self.go_on.clicked.connect(self._on_go_on)
        row.addWidget(self.go_on)
        self._paused.hide()
        return self._paused

    def begin(self, plan: SweepPlan) -> None:
        """Start to follow ``plan``."""
        self._plan = plan
        self._trials = []
        self._begin_s = time.perf_counter()
        self._headline.setText(self.tr("Measuring {model}").format(model=plan.space.model.name))
        self.stop.setEnabled(True)
        self._paused.hide()
        self._what.setText(self.tr("Starting the engine…"))
        self.plot.show_trials(())
        self._tick.start()
        self._show_time()
        self.stop.setFocus()

    def show_earlier(self, result: SweepResult) -> None:
        """Add what a search that goes on had measured before."""
        earlier = [trial for trial in result.trials if trial not in self._trials]
        self._trials = [*earlier, *self._trials]
        self.plot.show_trials(self._trials)

    def end(self) -> None:
        """Stop following."""
        self._plan = None
        self._paused.hide()
        self._tick.stop()

    @Slot(str)
    def show_paused(self, code: str) -> None:
        """Say why the search waits, and ask whether it shall go on."""
        self.why_paused.setText(sentence("note", code, {}))
        self._what.setText(self.tr("Waiting for you: go on, or stop and keep what was measured."))
        self._paused.show()
        self.go_on.setFocus()
        alert = QAccessibleEvent(self.why_paused, QAccessible.Event.Alert)
        QAccessible.updateAccessibility(alert)

    @Slot()
    def _on_go_on(self) -> None:
        self._paused.hide()
        self.stop.setFocus()
        self.go_on_requested.emit()

    def show_stopping(self) -> None:
        """Say that the stop is under way."""
        self.stop.setEnabled(False)
        self._paused.hide()
        self._what.setText(self.tr("Stopping; what was measured is kept…"))

    def show_trial_started(self, event: TrialStarted) -> None:
        """Say what runs now."""
        text = self.tr("Trial {n}: {settings}")
        self._now = text.format(n=event.index + 1, settings=settings_text(event.request.settings))
        self._what.setText(self._now)

    def show_progress(self, event: TrialProgress) -> None:
        """Say how far the trial is."""
        if not self.stop.isEnabled():
            return
        percent = "" if event.frac is None else f" {event.frac * 100:.0f}\u00a0%"
        self._what.setText(f"{self._now} · {phase_label(event.phase)}{percent}")

    def show_trial_finished(self, trial: Trial) -> None:
        """Add a trial to the curve."""
        self._trials.append(trial)
        self.plot.show_trials(self._trials)
        self._show_time()

    @Slot()
    def _show_time(self) -> None:
        if self._plan is None:
            return
        elapsed = time.perf_counter() - self._begin_s
        loads = max((trial.load_id for trial in self._trials), default=0)
        parts = [
            self._time_text(max(1.0, elapsed), self._plan.time_low_s, self._plan.time_high_s),
            self.tr("trials {trials}, loads {loads}").format(trials=len(self._trials), loads=loads),
        ]
        if best := self.plot.best_text():
            parts.append(self.tr("best so far: {what}").format(what=best))
        self._time.setText(" · ".join(parts))
        expected = max(1.0, (self._plan.time_low_s + self._plan.time_high_s) / 2)
        self._bar.setValue(int(1000 * min(0.97, elapsed / expected)))

    def _time_text(self, elapsed_s: float, low_s: float, high_s: float) -> str:
        """Return how long it has taken, and what of the planned time is still ahead."""
        text = self.tr("{elapsed}, longer than planned")
        if elapsed_s <= low_s:
            text = self.tr("{elapsed} of about {low} to {high}")
        elif elapsed_s <= high_s:
            text = self.tr("{elapsed} of at most about {high}")
        return text.format(
            elapsed=format_seconds(elapsed_s), low=format_seconds(low_s),
            high=format_seconds(high_s),
        )  # fmt: skip

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._plan is not None:
            self._tick.start()

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._tick.stop()
