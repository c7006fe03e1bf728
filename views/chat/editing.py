"""Which message is in the composer: a new one, or an earlier one while the draft waits."""

from PySide6.QtCore import QObject, Slot

from views.chat.composer import Composer
from views.chat.drafts import Drafts
from views.chat.turns import MessageReturned


class Editing(QObject):
    """Puts earlier messages into the composer and the draft back after them."""

    def __init__(self, composer: Composer, drafts: Drafts) -> None:
        """Begin with a new message."""
        super().__init__(composer)
        self._composer = composer
        self._drafts = drafts
        self._turn_id: int | None = None
        composer.edit_ended.connect(self.end)

    def begin(self, turn_id: int, text: str) -> None:
        """Let the user change a turn's ``text``; the draft waits."""
        self._drafts.keep()
        self._drafts.is_paused = True
        self._turn_id = turn_id
        self._composer.set_editing(True)
        self._composer.write(text)
        self._composer.field.setFocus()

    @Slot()
    def end(self) -> int | None:
        """Bring the draft back; return the turn that was edited, if any."""
        edited, self._turn_id = self._turn_id, None
        if edited is not None:
            self._composer.set_editing(False)
            self._composer.write(self._drafts.text)
            self._drafts.is_paused = False
        return edited

    def take_back(self, message: MessageReturned) -> None:
        """Let the user change a message that did not fit, where it was written."""
        if message.edits is not None:
            self.begin(message.edits, "")
        self._composer.bring_back(message.text)
        self._drafts.keep()
