"""A conversation that goes on: answered anew, or on another engine."""

from collections.abc import Iterator

from app.chat.conversation import Conversation
from app.chat.overflow import Overflow
from app.domain.events import ChatEvent, GenerationStarted, TokenGenerated, TurnsDropped
from app.worker.protocol import ChatMessage, Sampling
from tests.fakes.chat_engine import ScriptedEngine


class Echo:
    """Answers with the number of messages it was given."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self.asked: list[tuple[ChatMessage, ...]] = []

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Answer in one token."""
        self.asked.append(messages)
        yield TokenGenerated(text=str(len(messages)), n_tok=1)


def test_retry_asks_the_same_without_the_old_answer() -> None:
    """The engine must get the conversation up to the user's last message."""
    engine = Echo()
    conversation = Conversation(engine)
    list(conversation.ask("one"))
    list(conversation.retry())
    assert [m.content for m in engine.asked[1]] == ["one"]
    assert [m.content for m in conversation.messages] == ["one", "1"]


def test_new_answer_that_never_began_leaves_the_old_one_in_view() -> None:
    """Stopped before its first word, or empty: the old answer must not be out of reach."""
    engine = ScriptedEngine("old")
    conversation = Conversation(engine)
    list(conversation.ask("one"))
    stream = conversation.retry()
    assert isinstance(next(stream), GenerationStarted)
    stream.close()  # type: ignore[attr-defined]
    assert [m.content for m in conversation.messages] == ["one", "old"]
    engine._answers = [""]
    list(conversation.retry())
    assert [m.content for m in conversation.messages] == ["one", "old"]


def test_new_answer_that_failed_can_be_asked_for_again() -> None:
    """After a crash going on means answering, not adding to the old answer."""
    engine = ScriptedEngine("old", "new")
    conversation = Conversation(engine)
    list(conversation.ask("one"))
    engine.crash_after = 0
    list(conversation.retry())
    assert [m.content for m in conversation.messages] == ["one"]
    list(conversation.go_on())
    assert conversation.messages[-1].content != "old"
    assert len(conversation.thread.siblings(conversation.thread.turns[-1].id)) == 2


def test_history_is_taken_over_with_the_new_system_prompt() -> None:
    """Turns had before must lead, but a system prompt only once."""
    history = (
        ChatMessage(role="system", content="old"),
        ChatMessage(role="user", content="one"),
        ChatMessage(role="assistant", content="1"),
    )
    engine = Echo()
    list(Conversation(engine, "new", history).ask("two"))
    assert [m.content for m in engine.asked[0]] == ["new", "one", "1", "two"]


def test_room_is_made_for_an_answer_by_its_true_length() -> None:
    """What the answer takes so far counts: else too few turns go, and soon again some."""
    history = tuple(
        ChatMessage(role=role, content="x" * 20) for role in ("user", "assistant") * 3
    )  # 30 of 100 tokens; the answer fills the rest
    engine = ScriptedEngine("wordwor " * 40, " end", n_ctx=100)
    conversation = Conversation(engine, None, history, overflow=Overflow.DROP_OLDEST)
    dropped = [e for e in conversation.ask("y" * 20) if isinstance(e, TurnsDropped)]
    assert [e.n_turns for e in dropped] == [6]
