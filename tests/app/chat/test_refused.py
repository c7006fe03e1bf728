"""A message that cannot fit is taken out again: nothing typed is lost, nothing else changes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chat.conversation import Conversation
from app.chat.overflow import Overflow
from app.chat.thread import Thread
from app.domain.errors import EnvironmentProblem
from app.domain.events import ChatEvent, GenerationFinished, TokenGenerated
from app.store import Store
from tests.fakes.chat_engine import ScriptedEngine

LONG = "x" * 400
"""More than a context of 40 tokens holds."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "rigtune.db") as opened:
        yield opened


def code(events: Iterator[ChatEvent]) -> str | None:
    """Return the code of the error an answer ended with."""
    *_, end = events
    assert isinstance(end, GenerationFinished)
    return None if end.error is None else end.error.code


def shown(conversation: Conversation) -> list[tuple[int, str]]:
    return [(turn.id, turn.content) for turn in conversation.thread.turns]


def test_refused_message_is_handed_back(store: Store) -> None:
    """The conversation is as before, in memory and on the disk; the text is there to be changed."""
    conversation = Conversation(ScriptedEngine("yes", n_ctx=40), thread=Thread(store))
    assert code(conversation.ask("hi")) is None
    before = shown(conversation), store.messages(conversation.thread.id or 0)
    assert code(conversation.ask(LONG)) == "context_full"
    assert conversation.refused == LONG
    assert (shown(conversation), store.messages(conversation.thread.id or 0)) == before
    assert store.search_messages(LONG) == ()
    assert code(conversation.ask("short")) is None
    assert conversation.refused == ""
    assert [text for _, text in shown(conversation)] == ["hi", "yes", "short", "yes"]


def test_refused_first_message_leaves_no_conversation_behind(store: Store) -> None:
    """The list does not show a conversation of nothing; the next message begins it."""
    conversation = Conversation(ScriptedEngine(n_ctx=40), thread=Thread(store))
    assert code(conversation.ask(LONG)) == "context_full"
    assert store.conversations() == ()
    assert (conversation.thread.id, conversation.thread.title) == (None, "")
    assert code(conversation.ask("hi")) is None
    (kept,) = store.conversations()
    assert (kept.id, kept.title) == (conversation.thread.id, "hi")


def test_refused_edit_brings_the_old_branch_back(store: Store) -> None:
    """The message that was edited, its answer and what followed are in view again."""
    engine = ScriptedEngine("yes", n_ctx=40)
    conversation = Conversation(engine, thread=Thread(store))
    for text in ("one", "two"):
        assert code(conversation.ask(text)) is None
    before = shown(conversation)
    assert code(conversation.edit(before[0][0], LONG)) == "context_full"
    assert conversation.refused == LONG
    assert shown(conversation) == before
    assert Thread.open(store, conversation.thread.id or 0).turns[-1].content == "yes"


def test_message_the_protocol_cannot_carry_is_handed_back(store: Store) -> None:
    """A megabyte is refused before the engine sees it."""
    engine = ScriptedEngine()
    engine.max_chars = 300
    conversation = Conversation(engine, thread=Thread(store))
    *_, end = conversation.ask(LONG)
    assert isinstance(end, GenerationFinished)
    assert end.error
    assert end.error.code == "conversation_too_long"
    assert "alone" in end.error.message, "a new conversation would not help"
    assert (conversation.refused, shown(conversation)) == (LONG, [])


@pytest.mark.parametrize("overflow", [Overflow.DROP_OLDEST, Overflow.SUMMARISE])
def test_turns_left_out_in_vain_are_seen_again(overflow: Overflow) -> None:
    """Room was made for a message that does not fit all the same: the model sees all as before."""
    conversation = Conversation(ScriptedEngine("yes", n_ctx=40), overflow=overflow)
    for text in ("one", "two"):
        assert code(conversation.ask(text)) is None
    before = conversation.prompt
    assert code(conversation.ask(LONG)) == "context_full"
    assert conversation.refused == LONG
    assert conversation.prompt == before


def test_answer_that_began_is_kept_with_its_question() -> None:
    """A context that fills up half-way is no refusal, and neither is a dead engine."""
    engine = ScriptedEngine("a " * 80, n_ctx=40)
    conversation = Conversation(engine)
    events = list(conversation.ask("hi"))
    assert any(isinstance(e, TokenGenerated) for e in events)
    assert conversation.refused == ""
    assert len(shown(conversation)) == 2
    engine = ScriptedEngine("yes")
    engine.crash_after = 0
    conversation = Conversation(engine)
    assert code(conversation.ask("go")) == "crashed"
    assert conversation.refused == ""
    assert shown(conversation)[-1][1] == "go"


def test_question_that_waits_is_not_taken_out() -> None:
    """Answering again what was there before refuses nothing new, however small the context."""
    conversation = Conversation(ScriptedEngine(n_ctx=40))
    conversation.thread.add("user", LONG)
    for answer in (conversation.go_on, conversation.retry):
        assert code(answer()) == "context_full"
        assert conversation.refused == ""
        assert [text for _, text in shown(conversation)] == [LONG]


def test_disk_that_refuses_keeps_the_message_where_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be deleted stays in the conversation: in one place, not in none or two."""

    def full(*_: object, **__: object) -> None:
        raise EnvironmentProblem("disk_full", "The disk is full.", "Free some space.")

    conversation = Conversation(ScriptedEngine("yes", n_ctx=40), thread=Thread(store))
    assert code(conversation.ask("hi")) is None
    with monkeypatch.context() as patch:
        patch.setattr(Store, "delete_message", full)
        assert code(conversation.ask(LONG)) == "context_full"
    assert conversation.refused == ""
    assert shown(conversation)[-1][1] == LONG


def test_refused_edit_of_nothing_leaves_the_branch_in_view() -> None:
    """An empty edit is refused before anything moves."""
    conversation = Conversation(ScriptedEngine())
    assert code(conversation.ask("hi")) is None
    before = shown(conversation)
    with pytest.raises(EnvironmentProblem):
        next(conversation.edit(before[0][0], "  "))
    assert shown(conversation) == before
