"""What is written and not sent yet: kept in the store, one text per conversation."""

from functools import partial

from PySide6.QtCore import QObject, QTimer, Slot

from views.bridge import Jobs
from views.chat.composer import Composer
from views.port import SessionPort

WAIT_MS = 1000
"""Time without typing after which a draft is written."""


class Drafts(QObject):
    """Keeps the composer's text, and brings it back.

    Attributes:
        is_paused: Whether the composer shows something else: an earlier message that is edited.
    """

    def __init__(self, composer: Composer, session: SessionPort, jobs: Jobs) -> None:
        """Watch ``composer``; nothing is read before ``read``."""
        super().__init__(composer)
        self._composer = composer
        self._session = session
        self._jobs = jobs
        self.is_paused = False
        self._has_read = False
        self._conversation: int | None = None
        self._kept = ""
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(WAIT_MS)
        self._wait.timeout.connect(self.keep)
        composer.changed.connect(self._wait.start)

    @property
    def has_read(self) -> bool:
        """Whether a draft was ever looked for."""
        return self._has_read

    @property
    def text(self) -> str:
        """What was kept last."""
        return self._kept

    @Slot()
    def keep(self) -> None:
        """Write the draft, if it is another one."""
        self._wait.stop()
        text = self._composer.field.toPlainText()
        if self.is_paused or not self._has_read or text == self._kept:
            return
        self._kept, number = text, self._conversation
        self._jobs.call("draft", lambda: self._session.store().keep_draft(number, text))

    def keep_for(self, conversation: int | None, text: str) -> None:
        """Add ``text`` to the draft of a conversation that is not in view."""

        def keep() -> None:
            store = self._session.store()
            kept = store.draft(conversation)
            store.keep_draft(conversation, f"{text}\n\n{kept}" if kept else text)

        self._jobs.call("draft", keep)

    def drop(self) -> None:
        """Forget the draft of a conversation that is deleted; the store does the same."""
        self._wait.stop()
        self._composer.clear()
        self._kept = ""

    def move(self, conversation: int | None) -> None:
        """The conversation that is written in has got its number."""
        if conversation != self._conversation and self._has_read:
            self._forget_unnumbered()
            self._conversation = conversation

    def read(self, conversation: int | None) -> None:
        """Bring the draft of another conversation into the composer."""
        self._conversation = conversation
        job = self._jobs.call("draft", lambda: self._session.store().draft(conversation))
        job.event_arrived.connect(partial(self._on_read, conversation))

    def _forget_unnumbered(self) -> None:
        """What was written before the first message was sent with it."""
        if self._conversation is None:
            self._kept = ""
            self._jobs.call("draft", lambda: self._session.store().keep_draft(None, ""))

    def _on_read(self, conversation: int | None, text: str) -> None:
        self._has_read = True
        is_untouched = self._composer.field.toPlainText() in ("", self._kept)
        if conversation == self._conversation and is_untouched:
            self._kept = text
            self._composer.write(text)
            self._wait.stop()
