"""One line about heat and power: temperature, limit, action and reason."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QLabel
from typing_extensions import override

from app.domain.units import MISSING, significant
from app.power.records import Mode
from views.theme import use_tabular_digits
from views.words import paragraph, power_text, said_text

if TYPE_CHECKING:
    from app.power.keeper import DeviceState
    from app.session.power_views import EnergyReport, PowerState
    from views.port import PowerPort

REFRESH_MS = 1000


class PowerLine(QLabel):
    """Says how the devices in use stand; empty while nothing is governed.

    Looking costs nothing: the figures lie ready, read on another thread.
    """

    def __init__(self, *, says_idle: bool = False) -> None:
        """Start without a source; ``says_idle`` = say so where nothing is governed."""
        super().__init__()
        self._says_idle = says_idle
        self._power: PowerPort | None = None
        self.setWordWrap(True)
        self.setProperty("role", "muted")
        use_tabular_digits(self)
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)

    def attach(self, power: "PowerPort") -> None:
        """Show how ``power`` stands from now on."""
        self._power = power
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show how it stands now."""
        if self._power is None:
            return
        text = self.text_of(self._power.state)
        if text != self.text():
            self.setText(text)
            self.setAccessibleName(text)

    def text_of(self, state: "PowerState") -> str:
        """Return the line for ``state``."""
        parts = [self._device(device) for device in state.devices]
        if state.is_paused and parts:
            parts.append(self.tr("Everything was put back; nothing is turned until you resume."))
        if energy := self._energy(state.conversation):
            parts.append(energy)
        if not parts and self._says_idle:
            return self.tr("No model is loaded on a GPU, so there is nothing to govern now.")
        return paragraph(parts)

    def mode_name(self, mode: Mode) -> str:
        """Return what the user reads for a mode."""
        names = {
            Mode.FULL: self.tr("Full speed"),
            Mode.BALANCED: self.tr("Balanced"),
            Mode.QUIET: self.tr("Quiet"),
        }
        return names[mode]

    def _device(self, state: "DeviceState") -> str:
        status = state.status
        if status is None:
            return self.tr("{name}: no reading yet.").format(name=state.name)
        text = self.tr("{name}: {temp} of {target} °C, limit {limit} W, at work {duty} %, {mode}.")
        line = text.format(
            name=state.name, temp=_number(status.temp_c), target=_number(status.target_c),
            limit=_number(status.limit_w or state.limit_w), duty=_number(100 * status.duty),
            mode=self.mode_name(status.mode).lower(),
        )  # fmt: skip
        reasons = [*([status.action] if status.action else []), *status.notes]
        problem = [said_text(state.problem.message)] if state.problem else []
        return paragraph([line, *(power_text(reason) for reason in reasons), *problem])

    def _energy(self, report: "EnergyReport | None") -> str:
        if report is None or report.j_per_tok is None or report.watt_hours is None:
            return ""
        text = self.tr("{joules} J per token, {wh} Wh in this conversation").format(
            joules=significant(report.j_per_tok), wh=significant(report.watt_hours)
        )
        if report.cost_per_1000 is None:
            return text + "."
        cost = f"{significant(report.cost_per_1000)} {report.currency}".strip()
        return self.tr("{energy}; {cost} per 1,000 tokens.").format(energy=text, cost=cost)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
        self._timer.start()

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f}"
