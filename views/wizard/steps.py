"""The line of steps above the wizard."""

from PySide6.QtGui import QFont, QShowEvent
from PySide6.QtWidgets import QLabel
from typing_extensions import override

from views.widgets.basics import Kit, set_tone
from views.widgets.flow import Flow

STEPS = ("model", "goal", "plan", "run", "result")


class StepLine(Flow):
    """Shows where the user is; read as "Step 2 of 5: Goal"."""

    def __init__(self, kit: Kit) -> None:
        """Start at the first step."""
        super().__init__(2 * kit.unit)
        names = (
            self.tr("Model"), self.tr("Goal"), self.tr("Plan"), self.tr("Measure"),
            self.tr("Result"),
        )  # fmt: skip
        self._labels = [QLabel(f"{i + 1} {name}") for i, name in enumerate(names)]
        self._names = names
        for index, label in enumerate(self._labels):
            if index:
                self.addWidget(kit.icon_label("next", "muted", 3 * kit.unit))
            self.addWidget(label)
        self._step = "model"

    def show_step(self, step: str) -> None:
        """Mark ``step``."""
        self._step = step
        current = STEPS.index(step)
        for index, label in enumerate(self._labels):
            set_tone(label, "info" if index == current else "muted")
            font = QFont(self.font())
            font.setWeight(QFont.Weight.Bold if index == current else QFont.Weight.Normal)
            label.setFont(font)
        self.setAccessibleName(
            self.tr("Step {n} of {count}: {name}").format(
                n=current + 1, count=len(STEPS), name=self._names[current]
            )
        )

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.show_step(self._step)  # the style sheet has reset the fonts by now
