"""Files that go along with the next message: read beside the window, counted by the model."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.attach import Attachment, read_attachment
from views.bridge import Jobs
from views.chat.commands import Count
from views.chat.composer import Composer
from views.chat.dialogs import ask_for_files
from views.chat.staff import Staff


class Attaching(QObject):
    """Reads what the user attaches and has it counted.

    Signals:
        failed: ``ErrorInfo`` of a file that cannot be attached.
    """

    failed = Signal(object)

    def __init__(self, composer: Composer, staff: Staff, jobs: Jobs) -> None:
        """Serve ``composer``."""
        super().__init__(composer)
        self._composer = composer
        self._staff = staff
        self._jobs = jobs
        self._asked: set[str] = set()
        composer.attach_requested.connect(self._on_attach_requested)
        composer.files_dropped.connect(self.read)
        composer.changed.connect(self.count)

    @Slot(list)
    def read(self, paths: Sequence[str]) -> None:
        """Have text files go along with the next message."""
        for path in paths:
            job = self._jobs.call("attach", partial(read_attachment, Path(path)))
            job.event_arrived.connect(self._on_attachment)
            job.failed.connect(self.failed)

    @Slot()
    def count(self) -> None:
        """Have the model count what it was not asked for yet; without one, it stays estimated."""
        texts = self._composer.uncounted()
        for key, text in texts.items():
            if key not in self._asked:
                # one by one: what is too long to be counted must not keep the rest from it
                self._staff.tell(Count(texts={key: text}))
        self._asked = set(texts)

    def count_anew(self) -> None:
        """Have everything counted: another model is loaded, which counts otherwise."""
        self._asked.clear()
        self._composer.forget_counts()
        self.count()

    @Slot(object)
    def _on_attachment(self, attachment: Attachment) -> None:
        self._composer.add(attachment)
        self._composer.field.setFocus()

    @Slot()
    def _on_attach_requested(self) -> None:
        ask_for_files(self._composer, self.read)
