"""The power limits of a tuned model: measured on request, as a table with a recommendation."""

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout

from app.domain.errors import ErrorInfo
from app.domain.units import MISSING, significant
from app.session.capsweep import CapsProgress, CapsResult, CapsStarted
from views.bridge import Job, Jobs
from views.port import SessionPort
from views.widgets import Banner, Card, Heading, Kit, Table, text_label
from views.words import error_text, rate_text

if TYPE_CHECKING:
    from app.domain.settings import Settings
    from app.power.caps import CapPoint

KIND = "caps"


class CapsCard(Card):
    """Measures what each power limit gives, and offers the best one.

    Signals:
        started: A measurement begins; the devices are needed from now on.
    """

    started = Signal()

    def __init__(self, kit: Kit, session: SessionPort, jobs: Jobs) -> None:
        """Build it idle."""
        super().__init__(kit)
        self._session, self._jobs = session, jobs
        self._job: Job | None = None
        self._model = ""
        self._settings: Settings | None = None
        self._values: tuple[float, ...] = ()
        self._result: CapsResult | None = None
        row = QHBoxLayout()
        row.addWidget(Heading(self.tr("Power limits"), 1.1), 1)
        self.start = kit.button(self.tr("Measure Power Limits"), "start")
        self.start.clicked.connect(self._on_start_clicked)
        self.use = kit.button(self.tr("Use This Limit"), "good", "primary")
        self.use.clicked.connect(self._on_use_clicked)
        self.copy = kit.button(self.tr("Copy Administrator's Commands"), "copy")
        self.copy.clicked.connect(self._on_copy_clicked)
        for button in (self.start, self.copy, self.use):
            row.addWidget(button)
        self.column.addLayout(row)
        self.banner = Banner(kit)
        self.column.addWidget(self.banner)
        self.text = text_label(self.tr(
            "Measures speed, draw, temperature and fan at each power limit, 2 to 7 minutes each, "
            "and puts the limit back. The system asks for a password; without it, pauses between "
            "tokens are measured instead."
        ))  # fmt: skip
        self.column.addWidget(self.text)
        self.table = Table(
            kit, self.tr("What each power limit gives"),
            [self.tr("Limit"), self.tr("Decode tok/s"), self.tr("Draw W"), self.tr("tok/J"),
             self.tr("°C"), self.tr("Fan %"), self.tr("After 30 min tok/s (estimated)")],
        )  # fmt: skip
        self.table.setMinimumHeight(40 * kit.unit)
        self.column.addWidget(self.table)
        self._show_parts()

    def offer(self, model: str, settings: "Settings") -> None:
        """Offer to measure ``model`` on ``settings``; what was shown before is dropped."""
        self.stop()
        self._model, self._settings, self._result = model, settings, None
        self._show_parts()

    def stop(self) -> None:
        """End a measurement; what was measured is kept by the session's own rule."""
        if self._job is not None:
            self._job.cancel()

    @Slot()
    def _on_start_clicked(self) -> None:
        if self._job is not None:
            self._job.cancel()
            return
        if self._settings is None:
            return
        self.started.emit()
        work = _sweep(self._session, self._jobs, self._model, self._settings)
        self._job = self._jobs.start(KIND, work)
        self._job.event_arrived.connect(self._on_event)
        self._job.failed.connect(self._on_failed)
        self._job.ended.connect(self._on_ended)
        self.start.setText(f" {self.tr('Stop')}")
        self.text.setText(self.tr("Starting…"))

    @Slot(object)
    def _on_event(self, event: object) -> None:
        match event:
            case CapsStarted():
                self._values = event.values
            case CapsProgress(phase="password"):
                self.text.setText(self.tr("Waiting for the system's password prompt…"))
            case CapsProgress(phase="load"):
                self.text.setText(self.tr("Loading the model…"))
            case CapsProgress():
                self._show_progress(event)
            case CapsResult():
                self._result = event
                self._show_result(event)

    def _show_progress(self, event: CapsProgress) -> None:
        sample = event.sample
        text = self.tr("{value} ({n} of {all}): {speed} tok/s, {watts} W, {temp} °C")
        self.text.setText(
            text.format(
                value=self._value(event.value), n=event.n_done + 1, all=len(self._values),
                speed=_number(sample.decode_tok_s if sample else None),
                watts=_number(sample.power_w if sample else None),
                temp=_number(sample.temp_c if sample else None),
            )
        )  # fmt: skip

    def _show_result(self, result: CapsResult) -> None:
        self.table.set_rows([self._row(result, i, p) for i, p in enumerate(result.points)])
        self.text.setText(self._verdict(result))
        if result.why_not is not None:
            self.banner.say(error_text(result.why_not), "info")

    def _verdict(self, result: CapsResult) -> str:
        if result.choice is not None and result.cap_w is not None:
            text = self.tr(
                "{cap} W is the best: {loss} % slower than the fastest, {saved} % less energy "
                "per request."
            )
            return text.format(
                cap=_number(result.cap_w), loss=significant(100 * result.choice.loss_frac),
                saved=significant(100 * result.choice.saved_frac),
            )  # fmt: skip
        if result.device is None:
            return self.tr("There is no power limit to measure here.")
        return self.tr("The quiet mode paces: short pauses between tokens, without any rights.")

    def _row(self, result: CapsResult, index: int, point: "CapPoint") -> tuple[str, ...]:
        name = self._value(point.cap_w)
        if point.refused is not None:
            return (name, self.tr("refused"), *[MISSING] * 5)
        after = result.sustained[index]
        return (
            name if point.is_steady else self.tr("{limit} (still warming)").format(limit=name),
            rate_text(point.decode_tok_s),
            _number(point.power_w),
            _number(point.tok_per_j),
            _number(point.temp_c),
            _number(point.fan_pct),
            rate_text(after.decode_tok_s) if after else MISSING,
        )

    def _value(self, value: float | None) -> str:
        if value is None:
            return MISSING
        if value > 1.0:
            return self.tr("{watts} W").format(watts=f"{value:.0f}")
        return self.tr("at work {share} %").format(share=f"{100 * value:.0f}")

    @Slot()
    def _on_use_clicked(self) -> None:
        result, power = self._result, self._session.power
        if result is None or result.cap_w is None:
            return
        key, cap_w = result.key, result.cap_w

        def use() -> None:
            caps = {**power.choice.caps_w, key: cap_w}
            power.choose(msgspec.structs.replace(power.choice, caps_w=caps, use_helper=True))

        job = self._jobs.call("power", use)
        job.failed.connect(self._on_failed)
        self.banner.say(self.tr("Chats on this device keep to that limit from now on."), "good")

    @Slot()
    def _on_copy_clicked(self) -> None:
        if self._result is not None:
            lines = [f"{c.set}\n{c.undo}  # undo" for c in self._result.commands]
            QGuiApplication.clipboard().setText("\n".join(lines))
            self.banner.say(self.tr("The commands are on the clipboard."), "good")

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        self.banner.show_error(error)

    @Slot(object)
    def _on_ended(self, job: Job) -> None:
        if job is self._job:
            self._job = None
            self.start.setText(f" {self.tr('Measure Power Limits')}")
            self._show_parts()

    def _show_parts(self) -> None:
        result = self._result
        self.table.setVisible(result is not None and bool(result.points))
        self.use.setVisible(result is not None and result.cap_w is not None)
        self.copy.setVisible(result is not None and bool(result.commands))


def _sweep(
    session: SessionPort, jobs: Jobs, model: str, settings: "Settings"
) -> Callable[[threading.Event], Iterator[object]]:
    def work(cancel: threading.Event) -> Iterator[object]:
        with jobs.engine_turn(cancel) as is_ours:
            if is_ours:
                yield from session.sweep_caps(model, settings, cancel=cancel)

    return work


def _number(value: float | None) -> str:
    return MISSING if value is None else significant(value)
