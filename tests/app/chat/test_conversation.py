"""A conversation keeps what was said, also when an answer is cut short."""

from collections.abc import Iterator

from app.chat.conversation import Conversation
from app.domain.events import ChatEvent, GenerationFinished, TokenGenerated
from app.worker.protocol import ChatMessage, Sampling


class Echo:
    """Answers with the last message, word by word."""

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        words = messages[-1].content.split()
        for n_tok, word in enumerate(words, 1):
            yield TokenGenerated(text=word + " ", n_tok=n_tok)
        yield GenerationFinished(reason="stop", n_prompt=len(words))


def test_turns_alternate_and_the_system_prompt_comes_first() -> None:
    """Each question and its answer become turns."""
    conversation = Conversation(Echo(), system="be brief")
    list(conversation.ask("one two"))
    list(conversation.ask("three"))
    roles = [message.role for message in conversation.messages]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    assert conversation.messages[2].content == "one two "


def test_a_stopped_answer_keeps_its_text() -> None:
    """Closing the stream keeps what had arrived."""
    conversation = Conversation(Echo())
    stream = conversation.ask("one two three")
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert conversation.messages[-1] == ChatMessage(role="assistant", content="one ")
