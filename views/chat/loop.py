"""The engine's side of a chat: one thread that loads the model and answers until told to end."""

import queue
import threading
from collections.abc import Iterator
from contextlib import closing

from app.chat.conversation import Conversation
from app.domain.events import ChatEvent
from app.domain.record import Record
from app.domain.settings import Settings
from app.worker.protocol import ChatMessage
from views.bridge import Jobs
from views.chat.picker import Choice
from views.port import ChatPort, SessionPort


class ChatReady(Record, frozen=True, kw_only=True):
    """The model is loaded.

    Attributes:
        settings: What it runs on.
        profile_id: The profile those come from, if any.
        has_template: Whether the model says how a conversation is written.
        notes: Sentences the user should read first.
    """

    settings: Settings
    profile_id: str | None
    has_template: bool
    notes: tuple[str, ...]


class AnswerStopped(Record, frozen=True, kw_only=True):
    """The user stopped the answer; what came so far is kept."""


class ChatWaiting(Record, frozen=True, kw_only=True):
    """The engine is in use by something else; the model is loaded after that."""


class ChatLoading(Record, frozen=True, kw_only=True):
    """The model is being loaded; ``frac`` of it is there, where that is known."""

    frac: float | None = None


class ChatLoop:
    """Work for a job: loads, then answers what ``ask`` and ``retry`` put into its box."""

    def __init__(
        self,
        session: SessionPort,
        jobs: Jobs,
        choice: Choice,
        *,
        system: str = "",
        history: tuple[ChatMessage, ...] = (),
    ) -> None:
        """Prepare; nothing is loaded before ``work`` runs."""
        self._session = session
        self._jobs = jobs
        self._choice = choice
        self._system = system
        self._box: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._history = history
        self.is_ready = False

    @property
    def history(self) -> tuple[ChatMessage, ...]:
        """The turns so far; complete once the job has ended."""
        return self._history

    def ask(self, text: str) -> None:
        """Send ``text``; an empty one asks for the last answer anew."""
        self._stop.clear()
        self._box.put(text)

    def stop_answer(self) -> None:
        """Stop the answer that is being written."""
        self._stop.set()

    def end(self) -> None:
        """Stop answering and unload the model; part of cancelling the job."""
        self._stop.set()
        self._box.put(None)

    def work(self, cancel: threading.Event) -> Iterator[object]:
        """Load and answer; runs on the job's thread."""
        yield ChatWaiting()
        with self._jobs.engine_turn(cancel) as is_ours:
            if is_ours:
                yield from self._talk(cancel)

    def _talk(self, cancel: threading.Event) -> Iterator[object]:
        choice = self._choice
        with closing(self._session.chat(choice.model, choice.profile_id)) as chat:
            conversation = Conversation(chat, self._system or None, self._history)
            while not cancel.is_set():
                if not chat.is_running:
                    yield from self._load(chat, cancel)
                    continue
                text = self._box.get()
                if text is None:
                    return
                stream = conversation.ask(text) if text else conversation.retry()
                try:
                    yield from self._until_stopped(stream)
                finally:
                    self._history = conversation.messages

    def _load(self, chat: ChatPort, cancel: threading.Event) -> Iterator[object]:
        yield ChatLoading()
        for progress in chat.load():
            if cancel.is_set():
                return
            yield ChatLoading(frac=progress.frac)
        self.is_ready = True
        yield ChatReady(
            settings=chat.settings,
            profile_id=chat.profile_id,
            has_template=chat.has_template,
            notes=tuple(chat.notes),
        )

    def _until_stopped(self, stream: Iterator[ChatEvent]) -> Iterator[object]:
        for event in stream:
            yield event
            if self._stop.is_set():
                # Closing the generator is what stops the engine, within one token.
                getattr(stream, "close", _nothing)()
                yield AnswerStopped()
                return


def _nothing() -> None:
    """Stand in for the ``close`` of an iterator that has none."""
