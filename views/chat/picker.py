"""Chooses what to chat with: a tuned profile, or the demo model on default settings."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QComboBox

from app.domain.record import Record
from app.domain.units import format_tok_s
from views.widgets.basics import Kit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.store.records import Profile

DEMO = "demo"


class Choice(Record, frozen=True, kw_only=True):
    """A model, and the profile to run it on; without one, on default settings."""

    model: str
    profile_id: str | None = None


class ModelPicker(QComboBox):
    """A list of choices.

    Signals:
        chosen: ``Choice``; the user (or another page) wants something else.
    """

    chosen = Signal(object)

    def __init__(self, kit: Kit) -> None:
        """Start with the demo model."""
        super().__init__()
        self.setAccessibleName(self.tr("Model and settings"))
        self.setMinimumWidth(70 * kit.unit)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._choices: list[Choice] = []
        self._names: dict[str, str] = {}
        self._choice = Choice(model=DEMO)
        self._fill([])
        self.activated.connect(self._on_activated)

    @property
    def choice(self) -> Choice:
        """What is chosen."""
        return self._choice

    def offer(self, choice: Choice) -> None:
        """Choose ``choice``, known or not."""
        if choice != self._choice:
            self._choice = choice
            self._fill([])
            self.chosen.emit(choice)

    def show_choice(self, choice: Choice) -> None:
        """Show ``choice``, which is in use already."""
        if choice != self._choice:
            self._choice = choice
            self._fill([])

    def show_profiles(self, profiles: "Sequence[Profile]") -> None:
        """Offer the stored profiles."""
        for profile in profiles:
            self._names[profile.id] = self._name(profile)
        self._fill([Choice(model=p.model_path, profile_id=p.id) for p in profiles])

    def _fill(self, choices: list[Choice]) -> None:
        known: dict[str, Choice] = {}
        # A profile is one choice however its model was named.
        for choice in (self._choice, *choices, *self._choices, Choice(model=DEMO)):
            known.setdefault(choice.profile_id or choice.model, choice)
        self._choices = list(known.values())
        with QSignalBlocker(self):
            self.clear()
            for choice in self._choices:
                name = self._names.get(choice.profile_id or "")
                self.addItem(name or self._plain_name(choice))
            self.setCurrentIndex(0)

    def _name(self, profile: "Profile") -> str:
        speed = profile.decode_tok_s
        parts = [profile.model_name or profile.name]
        if speed is not None:
            parts.append(format_tok_s(speed.median))
        return " · ".join(parts)

    def _plain_name(self, choice: Choice) -> str:
        if choice.model == DEMO:
            name = self.tr("Demo model")
        else:
            name = choice.model.replace("\\", "/").rsplit("/", 1)[-1]
        if choice.profile_id is None:
            return self.tr("{name}, default settings").format(name=name)
        return self.tr("{name}, tuned").format(name=name)

    @Slot(int)
    def _on_activated(self, index: int) -> None:
        choice = self._choices[index]
        if choice != self._choice:
            self._choice = choice
            self.chosen.emit(choice)
