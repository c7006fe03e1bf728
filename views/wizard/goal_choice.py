"""The five goals as a group of choices."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QGridLayout,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.sweep import Goal
from views.widgets.basics import Kit, text_label
from views.words import goal_icon, goal_label, goal_text


class GoalChoice(QWidget):
    """One radio button per goal, with what it means.

    Signals:
        goal_chosen: ``Goal``.
    """

    goal_chosen = Signal(object)

    def __init__(self, kit: Kit) -> None:
        """Start with chat."""
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * kit.unit)
        self._group = QButtonGroup(self)
        self._buttons: dict[Goal, QRadioButton] = {}
        for goal in Goal:
            column.addLayout(self._row(kit, goal))
        self._buttons[Goal.CHAT].setChecked(True)
        self._group.buttonClicked.connect(self._on_clicked)

    def _row(self, kit: Kit, goal: Goal) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(2 * kit.unit)
        grid.setVerticalSpacing(0)
        button = QRadioButton(goal_label(goal))
        button.setAccessibleDescription(goal_text(goal))
        self._group.addButton(button)
        self._buttons[goal] = button
        grid.addWidget(kit.icon_label(goal_icon(goal), "muted", 5 * kit.unit), 0, 0, 2, 1)
        grid.addWidget(button, 0, 1)
        text = text_label(goal_text(goal), muted=True)
        text.setMinimumWidth(20 * text.fontMetrics().averageCharWidth())
        # below the words, not the circle
        text.setContentsMargins(4 * kit.unit + 3 * kit.unit // 2, 0, 0, 0)
        grid.addWidget(text, 1, 1)
        grid.setColumnStretch(1, 1)
        return grid

    @property
    def goal(self) -> Goal:
        """The chosen goal."""
        return next(goal for goal, button in self._buttons.items() if button.isChecked())

    def choose(self, goal: Goal) -> None:
        """Choose ``goal`` as if the user had."""
        self._buttons[goal].setChecked(True)
        self.goal_chosen.emit(goal)

    @Slot(QAbstractButton)
    def _on_clicked(self, _button: QAbstractButton) -> None:
        self.goal_chosen.emit(self.goal)
