"""The user's preferences as the window holds them: one value, and a signal when it changes."""

import msgspec
from PySide6.QtCore import QObject, Signal

from app.store.preferences import Preferences

# What widgets show follows from these when they are built: a change builds the pages anew.
BUILT_IN = ("level", "language", "memory_unit", "temperature_unit")


class Options(QObject):
    """Holds the preferences in use.

    Signals:
        changed: The preferences before the change.
    """

    changed = Signal(object)

    def __init__(self, value: Preferences | None = None, notice: str = "") -> None:
        """Start with what was stored.

        Args:
            value: The stored preferences.
            notice: Where a broken file was put aside; empty = nothing to say.
        """
        super().__init__()
        self.value = value or Preferences(is_introduced=True)
        self.notice = notice

    def change(self, **fields: object) -> None:
        """Prefer something else from now on."""
        before = self.value
        self.value = msgspec.structs.replace(before, **fields)
        if self.value != before:
            self.changed.emit(before)

    def differs(self, before: Preferences, *names: str) -> bool:
        """Whether one of ``names`` has changed since ``before``."""
        return any(getattr(self.value, name) != getattr(before, name) for name in names)
