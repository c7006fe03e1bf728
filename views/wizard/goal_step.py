"""What for, and within which bounds; the estimate follows every move."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.domain.model import ModelSpec
from app.domain.sweep import GOAL_WORKLOADS, Goal, SweepRequest
from views.page import scrolling
from views.units import format_bytes
from views.widgets import Banner, Card, Heading, Kit, text_label
from views.widgets.sides import Sides
from views.wizard.constraints import Constraints
from views.wizard.estimate_panel import EstimatePanel
from views.wizard.goal_choice import GoalChoice
from views.words import paragraph, said_text

if TYPE_CHECKING:
    from app.session import Estimate


class GoalStep(QWidget):
    """Goal on the left, bounds and estimate on the right.

    Signals:
        back_requested: Another model.
        plan_requested: The request is complete.
        estimate_requested: Context length to estimate, tokens.
    """

    back_requested = Signal()
    plan_requested = Signal()
    estimate_requested = Signal(int)

    def __init__(self, kit: Kit) -> None:
        """Build it without a model."""
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3 * kit.unit)
        self.banner = Banner(kit)
        column.addWidget(self.banner)
        self._is_busy = self._is_blocked = False
        self._model = text_label(muted=True)
        column.addWidget(self._model)
        content = Sides(kit)
        self.goals = GoalChoice(kit)
        left = Card(kit)
        left.column.addWidget(Heading(self.tr("What is it for?"), 1.1))
        left.column.addWidget(self.goals)
        left.column.addStretch(1)
        content.add(left, 2)
        self.constraints = Constraints(kit)
        self.estimate = EstimatePanel(kit)
        right = Card(kit)
        right.column.addWidget(Heading(self.tr("Bounds"), 1.1))
        right.column.addWidget(self.constraints)
        right.column.addWidget(self.estimate)
        right.column.addStretch(1)
        content.add(right, 3)
        column.addWidget(scrolling(content), 1)
        column.addLayout(self._footer(kit))
        self.goals.goal_chosen.connect(self._on_goal_chosen)
        self.constraints.context_changed.connect(self.estimate_requested)

    def _footer(self, kit: Kit) -> QHBoxLayout:
        row = QHBoxLayout()
        back = kit.button(self.tr("Back"), "back")
        back.clicked.connect(self.back_requested)
        row.addWidget(back)
        row.addStretch(1)
        self.next = kit.button(self.tr("Make a Plan"), "next", "primary")
        self.next.clicked.connect(self.plan_requested)
        row.addWidget(self.next)
        return row

    def show_model(self, spec: ModelSpec) -> None:
        """Offer what ``spec`` allows."""
        facts = [spec.name, spec.arch, spec.ftype or "", format_bytes(spec.file_bytes)]
        facts.append(self.tr("%n block(s)", "", spec.n_layer))
        if spec.n_expert:
            text = self.tr("{used} of {all} experts")
            facts.append(text.format(used=spec.n_expert_used, all=spec.n_expert))
        if spec.chat_template is None:
            facts.append(self.tr("no chat template"))
        self._model.setText(" · ".join(x for x in facts if x))
        self._is_blocked = spec.kind != "text"
        self._show_next()
        if self._is_blocked:
            self.banner.say(self._blocked_text(spec.kind), "bad")
        elif spec.problems:
            self.banner.say(paragraph(map(said_text, spec.problems)), "warn")
        else:
            self.banner.hide()
        self.constraints.set_model(spec, needed_context(self.goals.goal))

    def set_busy(self, is_busy: bool) -> None:  # noqa: FBT001
        """Hold the next plan back while an earlier search still ends."""
        self._is_busy = is_busy
        self._show_next()

    def _show_next(self) -> None:
        self.next.setEnabled(not (self._is_busy or self._is_blocked))

    def _blocked_text(self, kind: str) -> str:
        whats = {
            "adapter": self.tr("an adapter that belongs to another model"),
            "projector": self.tr("the image part of another model"),
            "vocabulary": self.tr("a vocabulary without weights"),
            "embedding": self.tr("a model that turns text into numbers"),
        }
        text = self.tr("This file is {what}: it writes no text, so there is nothing to tune.")
        return text.format(what=whats.get(kind, kind))

    def show_estimate(self, estimate: "Estimate", spec: ModelSpec) -> None:
        """Show what the context at hand costs."""
        self.estimate.show_estimate(estimate, spec)

    def request(self) -> SweepRequest:
        """Return what the user asks for."""
        return self.constraints.request(self.goals.goal)

    @Slot(object)
    def _on_goal_chosen(self, goal: Goal) -> None:
        self.constraints.need_context(needed_context(goal))


def needed_context(goal: Goal) -> int:
    """Return the context a goal needs at least, tokens."""
    work = GOAL_WORKLOADS[goal]
    return (work.depth + work.n_prompt + work.n_gen) * work.n_seq
