"""Heat and power on the dashboard: mode, state, change log, restore, and what is left pending."""

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QWidget

from app.domain.errors import ErrorInfo
from app.power.choice import TARGET_C, PowerChoice
from app.power.records import Mode
from views.bridge import Jobs
from views.power.line import PowerLine
from views.widgets import Banner, Card, Heading, Kit, Table
from views.widgets.basics import indent
from views.widgets.flow import Flow
from views.words import local_time, power_text, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.power.changes import Change, Pending
    from app.power.protocol import PutBack
    from views.port import PowerPort

_SHOWN = 50


class PowerPanel(Card):
    """A card that is one row until its details are asked for."""

    def __init__(self, kit: Kit) -> None:
        """Build it without a source; ``attach`` brings it to life."""
        super().__init__(kit)
        self._power: PowerPort | None = None
        self._jobs: Jobs | None = None
        self._choice = PowerChoice()
        self.banner = Banner(kit)
        self.banner.action_requested.connect(self._on_restore_pending)
        self.column.addWidget(self.banner)
        self.line = PowerLine(says_idle=True)
        self.column.addWidget(self._row(kit))
        self.column.addWidget(self.line)
        self.details = self._details(kit)
        self.details.hide()
        self.column.addWidget(self.details)
        self.setEnabled(False)

    def _row(self, kit: Kit) -> Flow:
        row = Flow(2 * kit.unit)
        row.addWidget(Heading(self.tr("Heat and power"), 1.1))
        row.add_gap()
        self.mode = QComboBox()
        self.mode.setAccessibleName(self.tr("How warm devices may get"))
        for mode in (Mode.FULL, Mode.BALANCED, Mode.QUIET):
            self.mode.addItem(self.line.mode_name(mode), mode)
        self.mode.activated.connect(self._on_chosen)
        self.restore = kit.button(self.tr("Put Everything Back"), "back", "quiet")
        self.restore.clicked.connect(self._on_restore_clicked)
        self._more = kit.button(self.tr("Details"), "table", "quiet")
        self._more.setCheckable(True)
        self._more.toggled.connect(self._on_details_toggled)
        for widget in (self.mode, self.restore, self._more):
            row.addWidget(widget)
        return row

    def _details(self, kit: Kit) -> QWidget:
        holder = Card(kit, role="plain")
        row = Flow(2 * kit.unit)
        self.helper = QCheckBox(self.tr("May set power limits (the system asks for a password)"))
        self.helper.clicked.connect(self._on_chosen)
        self.target = _spin(self.tr("Target temperature"), " °C", TARGET_C[0] - 1, TARGET_C[1])
        self.target.setPrefix(self.tr("Target "))
        self.target.setSpecialValueText(self.tr("Target by mode"))
        self.target.editingFinished.connect(self._on_chosen)
        self.price = _spin(self.tr("Price per kWh"), self.tr(" per kWh"), 0.0, 1000.0)
        self.price.setDecimals(3)
        self.price.setPrefix(self.tr("Price "))
        self.price.setSpecialValueText(self.tr("No price"))
        self.price.editingFinished.connect(self._on_chosen)
        for widget in (self.helper, self.target, self.price):
            row.addWidget(widget)
        holder.column.addWidget(row)
        self.table = Table(
            kit, self.tr("What was changed"),
            [self.tr("Why"), self.tr("When"), self.tr("What"), self.tr("Result"),
             self.tr("Asked for"), self.tr("Before"), self.tr("After")],
            text_columns=4,
        )  # fmt: skip
        self.table.setMinimumHeight(40 * kit.unit)
        holder.column.addWidget(self.table)
        return holder

    def attach(self, power: "PowerPort", jobs: Jobs) -> None:
        """Take the session's heat and power; files are read beside the window."""
        self._power, self._jobs = power, jobs
        job = jobs.call("power", lambda: (power.choice, power.pending()))
        job.event_arrived.connect(self._on_known)
        job.failed.connect(self.banner.show_error)

    @Slot(object)
    def _on_known(self, known: "tuple[PowerChoice, Sequence[Pending]]") -> None:
        assert self._power is not None
        choice, pending = known
        self._show_choice(choice)
        self.setEnabled(True)
        self.line.attach(self._power)
        self._show_pending(pending)

    def _show_choice(self, choice: PowerChoice) -> None:
        self._choice = choice
        self.mode.setCurrentIndex(self.mode.findData(choice.mode))
        self.helper.setChecked(choice.use_helper)
        self.target.setValue(choice.target_c or self.target.minimum())
        self.price.setValue(choice.price_per_kwh or 0.0)

    def _show_pending(self, pending: "Sequence[Pending]") -> None:
        if not pending:
            self.banner.hide()
            return
        names = ", ".join(p.pci_id for p in pending)
        text = self.tr(
            "An earlier run ended without putting the power limit back ({names}). "
            "Putting it back needs an administrator's password; a restart does it, too."
        )
        self.banner.say(text.format(names=names), "warn", self.tr("Put Back Now"))

    @Slot()
    def _on_chosen(self) -> None:
        if self._power is None or self._jobs is None:
            return
        target, price = self.target.value(), self.price.value()
        choice = msgspec.structs.replace(
            self._choice,
            mode=self.mode.currentData(),
            target_c=target if target >= TARGET_C[0] else None,
            use_helper=self.helper.isChecked(),
            price_per_kwh=price or None,
        )
        if choice == self._choice:
            return
        self._choice = choice
        job = self._jobs.call("power", partial(self._power.choose, choice))
        job.failed.connect(self._on_failed)

    @Slot()
    def _on_restore_clicked(self) -> None:
        if self._power is None or self._jobs is None:
            return
        is_paused = self._power.state.is_paused
        call = self._power.resume if is_paused else self._power.restore
        job = self._jobs.call("power", call)
        job.failed.connect(self._on_failed)
        job.ended.connect(self._on_turned)

    @Slot(object)
    def _on_turned(self, _job: object) -> None:
        assert self._power is not None
        is_paused = self._power.state.is_paused
        text = self.tr("Resume") if is_paused else self.tr("Put Everything Back")
        self.restore.setText(f" {text}")
        self.restore.setAccessibleName(text)
        self.line.refresh()
        self._read_log()

    @Slot()
    def _on_restore_pending(self) -> None:
        if self._power is None or self._jobs is None:
            return
        self.banner.say(self.tr("Waiting for the system's password prompt…"))
        power = self._power
        job = self._jobs.call("power-restore", lambda: (power.restore_pending(), power.pending()))
        job.event_arrived.connect(self._on_restored)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_restored(self, answer: "tuple[Sequence[PutBack], Sequence[Pending]]") -> None:
        _, pending = answer
        self._show_pending(pending)
        if not pending:
            self.banner.say(self.tr("The power limit is as it was found."), "good")

    @Slot(bool)
    def _on_details_toggled(self, is_open: bool) -> None:  # noqa: FBT001 - Qt's own signature
        self.details.setVisible(is_open)
        if is_open:
            self._read_log()

    def _read_log(self) -> None:
        if self._power is None or self._jobs is None or self.details.isHidden():
            return
        job = self._jobs.call("power-log", partial(self._power.history, _SHOWN))
        job.event_arrived.connect(self._on_log)
        job.failed.connect(self._on_failed)

    @Slot(object)
    def _on_log(self, changes: "Sequence[Change]") -> None:
        self.table.set_rows([self._change(change) for change in reversed(changes)])

    @property
    def _ends(self) -> dict[str, str]:
        return {
            "applied": self.tr("applied"), "restored": self.tr("restored"),
            "unchanged": self.tr("unchanged"), "left": self.tr("left as it was"),
        }  # fmt: skip

    def _change(self, change: "Change") -> tuple[str, ...]:
        knobs = {
            "pacing": self.tr("pauses"),
            "power_limit": self.tr("power limit"),
            "clocks": self.tr("highest clock"),
        }
        asked = self.tr("put back") if change.requested is None else f"{change.requested:g}"
        return (
            power_text(change.reason),
            local_time(change.at_utc, to_the_second=True),
            knobs.get(change.knob, change.knob),
            self._ends.get(change.result) or sentence("power", change.result, {}) or change.result,
            asked,
            _seen(change.before),
            _seen(change.after),
        )

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        self.banner.show_error(error)


def _spin(name: str, suffix: str, low: float, high: float) -> QDoubleSpinBox:
    spin = QDoubleSpinBox()
    indent(spin)
    spin.setAccessibleName(name)
    spin.setToolTip(name)
    spin.setDecimals(0)
    spin.setRange(low, high)
    spin.setSuffix(suffix)
    return spin


def _seen(value: float | None) -> str:
    return "—" if value is None else f"{value:g}"
