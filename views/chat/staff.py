"""Runs the engine's side of the chat page as a job, from the first command on."""

from PySide6.QtCore import QObject, Signal, Slot

from app.domain.errors import ErrorInfo
from views.bridge import Job, Jobs
from views.chat import commands
from views.chat.desk import Desk
from views.chat.picker import Choice
from views.port import SessionPort


class Staff(QObject):
    """Takes commands to the desk and brings back what it reports.

    Signals:
        reported: An event of the core or of ``views.chat.turns``.
        failed: ``ErrorInfo``; the desk has ended because of a bug.
        ended: The desk has ended; the next command starts another one.
    """

    reported = Signal(object)
    failed = Signal(object)
    ended = Signal()

    def __init__(self, session: SessionPort, jobs: Jobs) -> None:
        """Start nothing yet."""
        super().__init__()
        self._session = session
        self._jobs = jobs
        self._job: Job | None = None
        self.desk: Desk | None = None

    @property
    def is_there(self) -> bool:
        """Whether somebody carries out commands now."""
        return self.desk is not None

    def begin(self, choice: Choice, asked: commands.Configure, conversation: int | None) -> None:
        """Start, where it was left off: with this model, manner and conversation."""
        self.desk = Desk(self._session, self._jobs, choice)
        self._job = self._jobs.start("chat", self.desk.work, self.desk.end)
        self._job.event_arrived.connect(self._on_event)
        self._job.failed.connect(self._on_failed)
        self._job.ended.connect(self._on_ended)
        self.desk.send(asked)
        if conversation is not None:
            self.desk.send(commands.Open(conversation_id=conversation))

    def tell(self, command: commands.Command) -> None:
        """Have ``command`` carried out, if somebody is there."""
        if self.desk is not None:
            self.desk.send(command)

    def stop_answer(self) -> None:
        """Stop the answer that is being written."""
        if self.desk is not None:
            self.desk.stop_answer()

    def unload(self) -> None:
        """Stop the answer and give the model's memory back."""
        if self.desk is not None:
            self.desk.unload()

    def end(self) -> None:
        """End for good."""
        if self._job is not None:
            self._job.cancel()

    @Slot(object)
    def _on_event(self, event: object) -> None:
        if self.sender() is self._job:
            self.reported.emit(event)

    @Slot(object)
    def _on_failed(self, error: ErrorInfo) -> None:
        if self.sender() is self._job:
            self.failed.emit(error)

    @Slot(object)
    def _on_ended(self, job: Job) -> None:
        if job is self._job:
            self.desk = self._job = None
            self.ended.emit()
