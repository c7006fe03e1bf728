"""One conversation with a model: keeps every turn, also when an answer is cut short."""

from collections.abc import Iterator
from typing import Protocol

from app.domain.events import ChatEvent, TokenGenerated
from app.worker.protocol import ChatMessage, Sampling


class Answering(Protocol):
    """What a conversation needs of an engine."""

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Stream an answer; closing the generator cancels it within one token."""
        ...


class Conversation:
    """Turns of user and assistant on one engine. Not thread-safe: one caller at a time."""

    def __init__(
        self,
        engine: Answering,
        system: str | None = None,
        history: tuple[ChatMessage, ...] = (),
    ) -> None:
        """Start empty, or where another engine left off.

        Args:
            engine: What answers.
            system: System prompt, if any.
            history: Turns of user and assistant that were had before.
        """
        self._engine = engine
        self._messages: list[ChatMessage] = []
        if system:
            self._messages.append(ChatMessage(role="system", content=system))
        self._messages.extend(m for m in history if m.role != "system")

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """Every turn so far, the system prompt first."""
        return tuple(self._messages)

    def ask(
        self, text: str, sampling: Sampling | None = None, max_tokens: int | None = None
    ) -> Iterator[ChatEvent]:
        """Send ``text`` and stream the answer; what arrived is kept whatever happens."""
        self._messages.append(ChatMessage(role="user", content=text))
        yield from self._answer(sampling, max_tokens)

    def retry(
        self, sampling: Sampling | None = None, max_tokens: int | None = None
    ) -> Iterator[ChatEvent]:
        """Answer the last message of the user anew; its old answer, if any, is dropped."""
        if self._messages and self._messages[-1].role == "assistant":
            self._messages.pop()
        yield from self._answer(sampling, max_tokens)

    def _answer(self, sampling: Sampling | None, max_tokens: int | None) -> Iterator[ChatEvent]:
        answer = ""
        stream = self._engine.generate(self.messages, sampling, max_tokens)
        try:
            for event in stream:
                if isinstance(event, TokenGenerated):
                    answer += event.text
                yield event
        finally:
            if answer:
                self._messages.append(ChatMessage(role="assistant", content=answer))
