"""A conversation keeps what was said, also when an answer is cut short."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chat.conversation import Conversation
from app.chat.overflow import Overflow
from app.chat.thread import Thread
from app.chat.writing import SAVE_EVERY_S
from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.events import (
    ChatEvent,
    GenerationFinished,
    SaveFailed,
    TokenGenerated,
    TurnsDropped,
)
from app.store import Store
from app.worker.protocol import ChatMessage
from tests.fakes.chat_engine import ScriptedEngine


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "rigtune.db") as opened:
        yield opened


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def said(events: Iterator[ChatEvent]) -> tuple[str, GenerationFinished]:
    text, end = "", None
    for event in events:
        if isinstance(event, TokenGenerated):
            text += event.text
        elif isinstance(event, GenerationFinished):
            end = event
    assert end is not None
    return text, end


def texts(conversation: Conversation) -> list[str]:
    return [turn.content for turn in conversation.thread.turns]


def test_turns_alternate_and_the_system_prompt_comes_first() -> None:
    """Each question and its answer become turns."""
    conversation = Conversation(ScriptedEngine("one two", "three"), system="be brief")
    said(conversation.ask("a"))
    said(conversation.ask("b"))
    roles = [message.role for message in conversation.messages]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    assert conversation.messages[2].content == "one two"


def test_a_stopped_answer_keeps_its_text_and_stops_the_engine() -> None:
    """Closing the stream keeps what had arrived."""
    engine = ScriptedEngine("one two three")
    conversation = Conversation(engine)
    stream = conversation.ask("x")
    while not isinstance(next(stream), TokenGenerated):
        pass
    stream.close()  # type: ignore[attr-defined]
    assert conversation.messages[-1] == ChatMessage(role="assistant", content="one")
    assert engine.is_closed


def test_history_of_another_conversation_is_gone_on_with() -> None:
    """Earlier turns can be handed in; their system message is not one of them."""
    history = (
        ChatMessage(role="system", content="old"),
        ChatMessage(role="user", content="a"),
        ChatMessage(role="assistant", content="b"),
    )
    conversation = Conversation(ScriptedEngine(), "new", history)
    said(conversation.ask("c"))
    assert [m.content for m in conversation.messages] == ["new", "a", "b", "c", "yes"]


def test_another_answer_becomes_a_branch() -> None:
    """Answering again and editing keep what was there; either can be brought back."""
    conversation = Conversation(ScriptedEngine("first", "second", "third"))
    said(conversation.ask("x"))
    said(conversation.retry())
    assert texts(conversation) == ["x", "second"]
    answers = conversation.thread.siblings(conversation.thread.turns[1].id)
    assert [t.content for t in answers] == ["first", "second"]
    question = conversation.thread.turns[0]
    said(conversation.edit(question.id, "y"))
    assert texts(conversation) == ["y", "third"]
    conversation.switch(answers[0].id)
    assert texts(conversation) == ["x", "first"]
    conversation.switch(question.id)
    assert texts(conversation) == ["x", "second"]


def test_answer_after_a_crash_is_gone_on_with() -> None:
    """The engine gets what it had said and goes on in the same turn."""
    engine = ScriptedEngine("one two three", " four", reasoning="hm")
    engine.crash_after = 2
    conversation = Conversation(engine)
    text, end = said(conversation.ask("x"))
    assert text == "hmone two"
    assert end.error
    said(conversation.go_on())
    begun = ChatMessage(role="assistant", content="one two", reasoning="hm")
    assert engine.asked[-1][-1] == begun
    assert texts(conversation) == ["x", "one two four"]


def test_go_on_without_an_answer_begins_one() -> None:
    """A question whose answer never began is simply answered."""
    conversation = Conversation(ScriptedEngine("yes"))
    conversation.thread.add("user", "x")
    said(conversation.go_on())
    assert texts(conversation) == ["x", "yes"]


def test_reasoning_is_kept_apart() -> None:
    """What the model thought is no part of what it said."""
    conversation = Conversation(ScriptedEngine("yes", reasoning="let me see\n"))
    said(conversation.ask("x"))
    turn = conversation.thread.turns[-1]
    assert (turn.content, turn.reasoning) == ("yes", "let me see")
    assert turn.timing
    assert turn.timing.n_gen == 1


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_empty_message_is_refused(text: str) -> None:
    """Nothing is sent and nothing kept."""
    conversation = Conversation(ScriptedEngine())
    with pytest.raises(UsageProblem):
        next(conversation.ask(text))
    assert conversation.thread.turns == ()
    with pytest.raises(UsageProblem):
        next(conversation.retry())


def test_text_is_never_two_seconds_ahead_of_the_disk(store: Store) -> None:
    """A long answer is written while it grows: what a crash loses is bounded."""
    clock, engine = Clock(), ScriptedEngine(" ".join("abcdefghij"))
    thread = Thread(store)
    conversation = Conversation(engine, thread=thread, clock_s=clock)
    lags = []

    def pass_time() -> None:
        clock.now_s += 0.4
        if thread.id is not None:
            kept = store.messages(thread.id)[-1].content
            lags.append((len(thread.turns[-1].content) if len(thread.turns) > 1 else 0, kept))

    engine.on_word = pass_time
    stream = conversation.ask("x")
    shown = ""
    for event in stream:
        shown += event.text if isinstance(event, TokenGenerated) else ""
        kept = store.messages(thread.id or 0)[-1]
        behind = shown.removeprefix(kept.content if kept.role == "assistant" else "")
        assert len(behind.split()) * 0.4 <= 2
    assert SAVE_EVERY_S < 2
    assert store.messages(thread.id or 0)[-1].content == "a b c d e f g h i j"
    assert lags


def test_stored_conversation_opens_with_its_newest_branch(store: Store) -> None:
    """Branches, reasoning and timings come back; searching finds what was said."""
    conversation = Conversation(
        ScriptedEngine("first", "second", reasoning="hm"), thread=Thread(store, system="be kind")
    )
    said(conversation.ask("x"))
    said(conversation.retry())
    opened = Thread.open(store, conversation.thread.id or 0)
    assert opened.system == "be kind"
    assert [t.content for t in opened.turns] == ["x", "second"]
    assert [t.content for t in opened.siblings(opened.turns[1].id)] == ["first", "second"]
    assert opened.turns[1].reasoning == "hm"
    assert opened.turns[1].timing
    assert store.search_messages("second")[0].conversation_id == opened.id


def test_full_disk_is_said_once_and_caught_up_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chat goes on in memory; when there is room again nothing is missing."""
    problem = EnvironmentProblem("disk_full", "The disk is full.", "Free some space.")

    def full(*_: object, **__: object) -> None:
        raise problem

    conversation = Conversation(ScriptedEngine("one two"), thread=Thread(store))
    with monkeypatch.context() as patch:
        patch.setattr(Store, "start_conversation", full)
        events = [*conversation.ask("x"), *conversation.ask("y")]
    assert [e.error.code for e in events if isinstance(e, SaveFailed)] == ["disk_full"]
    assert texts(conversation) == ["x", "one two", "y", "one two"]
    assert conversation.thread.save() is None
    kept = store.messages(conversation.thread.id or 0)
    assert [m.content for m in kept] == texts(conversation)


def test_full_context_stops_by_default() -> None:
    """The answer ends, and the reason says what is too long."""
    conversation = Conversation(ScriptedEngine("yes", n_ctx=20), system="s" * 40)
    _, end = said(conversation.ask("x" * 100))
    assert (end.reason, end.n_gen) == ("context_full", 0)
    assert end.error
    assert "alone" in end.error.message
    said(conversation.ask("short"))
    _, end = said(conversation.ask("x" * 60))
    assert end.error
    assert "alone" not in end.error.message


def test_oldest_turns_are_left_out_when_the_user_chose_so() -> None:
    """The prompt shrinks to a quarter of free room, it is said, and every turn stays."""
    engine = ScriptedEngine("a" * 40, n_ctx=100)
    conversation = Conversation(engine, system="s" * 8, overflow=Overflow.DROP_OLDEST)
    dropped = [
        e for i in range(8) for e in conversation.ask(f"{i}" * 60) if isinstance(e, TurnsDropped)
    ]
    assert dropped
    assert [e.n_turns for e in dropped] == sorted({e.n_turns for e in dropped})
    assert len(conversation.thread.turns) == 16
    assert conversation.prompt[0].role == "system"
    assert conversation.prompt[1].role == "user"
    assert len(conversation.prompt) < len(conversation.messages)
    # the turns left out stay out, so that the beginning of the prompt does not change
    said(conversation.ask("z"))
    assert engine.asked[-1][:2] == engine.asked[-2][:2]


def test_answer_that_fills_the_context_goes_on_after_making_room() -> None:
    """Half-way through an answer the oldest turns go, and the answer is one turn."""
    engine = ScriptedEngine("a" * 100, "b b b b " + "c" * 120, " end", n_ctx=80)
    conversation = Conversation(engine, overflow=Overflow.DROP_OLDEST)
    said(conversation.ask("x" * 60))
    events = list(conversation.ask("y" * 60))
    assert any(isinstance(e, TurnsDropped) for e in events)
    assert engine.asked[-1][-1].content == "b b b b"
    assert conversation.thread.turns[-1].role == "assistant"
    assert len(conversation.thread.turns) == 4


def test_turns_are_summarised_when_the_user_chose_so() -> None:
    """The model is asked for a summary, which stands in for the turns from then on."""
    engine = ScriptedEngine("a" * 40, "they talked", "fine", n_ctx=200)
    conversation = Conversation(engine, system="kind", overflow=Overflow.SUMMARISE)
    said(conversation.ask("x" * 240))
    events = list(conversation.ask("y" * 560))
    (dropped,) = [e for e in events if isinstance(e, TurnsDropped)]
    assert dropped.summary == "they talked"
    assert "a" * 40 in engine.asked[-2][0].content
    assert "they talked" in conversation.prompt[0].content
    assert conversation.prompt[0].content.startswith("kind")
    assert texts(conversation)[-1] == "fine"


def test_conversation_beyond_the_protocol_is_cut_down_when_the_user_chose_so() -> None:
    """A stored conversation of megabytes can be gone on with; without the choice it is said."""
    engine = ScriptedEngine("yes", n_ctx=1 << 20)
    engine.max_chars = 3000
    history = tuple(ChatMessage(role=r, content="x" * 900) for r in ("user", "assistant") * 5)
    stopped = Conversation(engine, None, history)
    _, end = said(stopped.ask("more"))
    assert end.error
    assert end.error.code == "conversation_too_long"
    conversation = Conversation(engine, None, history, overflow=Overflow.DROP_OLDEST)
    text, end = said(conversation.ask("more"))
    assert text == "yes"
    assert end.error is None
    assert conversation.prompt[0].role == "user"


def test_one_message_too_long_is_not_helped_by_leaving_turns_out() -> None:
    """It ends instead of going round in circles."""
    conversation = Conversation(ScriptedEngine("yes", n_ctx=20), overflow=Overflow.DROP_OLDEST)
    said(conversation.ask("hi"))
    _, end = said(conversation.ask("x" * 400))
    assert end.error
    assert end.error.code == "context_full"


def test_deleted_turn_is_gone_from_the_disk(store: Store) -> None:
    """A turn goes with all that followed it, in every branch, and its text is in no file."""
    conversation = Conversation(ScriptedEngine("zebrafish", "walrus"), thread=Thread(store))
    said(conversation.ask("keep"))
    said(conversation.ask("secretword"))
    second = conversation.thread.turns[2]
    conversation.delete(second.id)
    assert texts(conversation) == ["keep", "zebrafish"]
    for path in store.path.parent.glob(store.path.name + "*"):
        assert b"secretword" not in path.read_bytes()
        assert b"walrus" not in path.read_bytes()
    said(conversation.ask("more"))
    assert [m.content for m in store.messages(conversation.thread.id or 0)] == texts(conversation)


def test_conversation_deleted_elsewhere_is_said(store: Store) -> None:
    """Another window deleted it: the chat goes on and says that it is not kept."""
    conversation = Conversation(ScriptedEngine(), thread=Thread(store))
    said(conversation.ask("x"))
    store.delete_conversation(conversation.thread.id or 0)
    events = list(conversation.ask("y"))
    failed = [e for e in events if isinstance(e, SaveFailed)]
    assert [e.error.code for e in failed] == ["conversation_gone"]
    assert store.conversations() == ()


def test_text_no_file_can_hold_is_replaced(store: Store) -> None:
    """Half a surrogate pair, as terminals and file names bring it, breaks nothing."""
    conversation = Conversation(ScriptedEngine(), thread=Thread(store))
    said(conversation.ask("a\udcffb\0c"))
    assert store.messages(conversation.thread.id or 0)[0].content == "a?b\0c"
