"""What will happen, before anything is loaded."""

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.domain.sweep import SweepPlan
from app.domain.units import format_seconds
from views.advice_page import sentence as advice
from views.page import scrolling
from views.widgets import Banner, Card, Heading, Kit, Table, text_label
from views.words import budget_label, goal_label, number, sentence, stage_label

GPU_STAGES = ("auto_fit", "devices", "layers", "load_mode")

translate = QCoreApplication.translate


class PlanStep(QWidget):
    """The plan, and the decision to start.

    Signals:
        back_requested: Change the goal.
        start_requested: Carry it out.
    """

    back_requested = Signal()
    start_requested = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build it without a plan."""
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3 * kit.unit)
        self.banner = Banner(kit)
        column.addWidget(self.banner)
        card = Card(kit)
        self._headline = Heading(self.tr("Making the plan…"), 1.2)
        card.column.addWidget(self._headline, 0, Qt.AlignmentFlag.AlignTop)
        self._details = QWidget()  # there is nothing to show before the plan is made
        details = QVBoxLayout(self._details)
        details.setContentsMargins(0, 0, 0, 0)
        details.setSpacing(2 * kit.unit)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(4 * kit.unit)
        self._grid.setVerticalSpacing(kit.unit)
        self._grid.setColumnStretch(1, 1)
        details.addLayout(self._grid)
        self._values = {
            name: self._row(i, name)
            for i, name in enumerate(
                (self.tr("Model"), self.tr("Goal"), self.tr("Time"), self.tr("Budget"),
                 self.tr("Context"), self.tr("GPU layers"))
            )
        }  # fmt: skip
        self.table = Table(
            kit, self.tr("Stages of the plan"), [self.tr("Stage"), self.tr("Loads of the model")]
        )
        details.addWidget(self.table)
        self._notes = text_label(muted=True)
        details.addWidget(self._notes)
        details.addStretch(1)
        card.column.addWidget(self._details, 1)
        self._details.hide()
        column.addWidget(scrolling(card), 1)
        column.addLayout(self._footer(kit))

    def _row(self, row: int, name: str) -> QLabel:
        self._grid.addWidget(text_label(name, muted=True, wrap=False), row, 0)
        value = text_label()
        self._grid.addWidget(value, row, 1)
        return value

    def _footer(self, kit: Kit) -> QHBoxLayout:
        row = QHBoxLayout()
        back = kit.button(self.tr("Back"), "back")
        back.clicked.connect(self.back_requested)
        row.addWidget(back)
        hint = self.tr("Nothing is loaded yet. Stop at any time and keep the results.")
        row.addWidget(text_label(hint, muted=True), 1)
        self.start = kit.button(self.tr("Start Measuring"), "start", "primary")
        self.start.clicked.connect(self.start_requested)
        self.start.setEnabled(False)
        row.addWidget(self.start)
        return row

    def show_waiting(self) -> None:
        """Say that the plan is being made."""
        self.banner.hide()
        self.start.setEnabled(False)
        self._headline.setText(self.tr("Making the plan…"))
        self._details.hide()

    def show_plan(self, plan: SweepPlan) -> None:
        """Show ``plan``."""
        low, high = format_seconds(plan.time_low_s), format_seconds(plan.time_high_s)
        self._headline.setText(self.tr("About {low} to {high}").format(low=low, high=high))
        layers = plan.space.model.n_layer + 1
        texts = (
            plan.space.model.name,
            goal_label(plan.request.goal),
            self.tr("{low} to {high}").format(low=low, high=high),
            budget_label(plan.request.budget),
            self.tr("{n} tokens").format(n=number(plan.n_ctx)),
            self._layers_text(plan, layers),
        )
        for value, text in zip(self._values.values(), texts, strict=True):
            value.setText(text)
        self.table.set_all_rows(_stage_rows(plan))
        notes = [note_text(code) for code in plan.notes]
        notes += [f"{advice('finding', f)} {advice('remedy', f)}" for f in plan.findings]
        self._notes.setText("\n".join(notes))
        self._notes.setVisible(bool(notes))
        self._details.show()
        self.start.setEnabled(True)
        self.start.setFocus()

    def _layers_text(self, plan: SweepPlan, layers: int) -> str:
        if not _has_gpu(plan):
            return self.tr("none: this search runs on the CPU")
        text = self.tr("up to {n} of {all} fit")
        return text.format(n=plan.max_n_gpu_layers, all=layers)


def note_text(code: str) -> str:
    """Return the sentence of a plan's note; the code itself where a text is missing."""
    return sentence("note", code, {}) or code.replace("_", " ")


def _stage_rows(plan: SweepPlan) -> list[tuple[str, str]]:
    if _has_gpu(plan):
        return [(stage_label(s.stage), _loads(s.min_loads, s.max_loads)) for s in plan.stages]
    rows = []
    for s in plan.stages:
        if s.stage == "cpu":  # not a reference here, but where the search itself begins
            label = translate("PlanStep", "Speed on the CPU")
            rows.append((label, _loads(max(1, s.min_loads), max(1, s.max_loads))))
        elif s.stage not in GPU_STAGES:
            rows.append((stage_label(s.stage), _loads(s.min_loads, s.max_loads)))
    return rows


def _has_gpu(plan: SweepPlan) -> bool:
    return bool(plan.space.devices) and plan.request.pinned.get("n_gpu_layers") != 0


def _loads(low: int, high: int) -> str:
    if not high:
        return translate("PlanStep", "none: on a loaded model")
    return str(high) if low == high else f"{low}–{high}"
