"""Conversations: kept as they grow, searchable, and gone when deleted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.errors import UsageProblem
from app.domain.events import GenerationFinished
from app.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "rigtune.db") as opened:
        yield opened


def test_turns_form_a_tree(store: Store) -> None:
    """Regenerating adds a sibling; every branch is kept, with its timings."""
    chat = store.start_conversation(title="The sea", system="Be brief.", model_name="Tiny")
    ask = store.add_message(chat.id, role="user", content="Why tides?")
    timing = GenerationFinished(reason="stop", n_prompt=4, n_gen=2, decode_tok_s=9.5)
    first = store.add_message(
        chat.id, role="assistant", content="The moon.", parent_id=ask.id, timing=timing
    )
    second = store.add_message(chat.id, role="assistant", content="Gravity.", parent_id=ask.id)
    assert store.messages(chat.id) == (ask, first, second)
    assert store.messages(chat.id)[1].timing == timing


def test_an_answer_is_kept_while_it_grows(store: Store) -> None:
    """Each update replaces the text, and search finds the new text only."""
    chat = store.start_conversation(title="x")
    answer = store.add_message(chat.id, role="assistant", content="")
    store.update_message(answer.id, content="half of")
    store.update_message(answer.id, content="the whole answer")
    assert [m.content for m in store.messages(chat.id)] == ["the whole answer"]
    assert store.search_messages("half") == ()
    assert len(store.search_messages("whole")) == 1


def test_the_last_used_conversation_comes_first(store: Store) -> None:
    """A new message moves its conversation to the top."""
    first = store.start_conversation(title="first")
    second = store.start_conversation(title="second")
    assert [c.id for c in store.conversations()] == [second.id, first.id]
    store._connection().execute("UPDATE conversations SET updated_utc = '2000'")
    store.add_message(first.id, role="user", content="hello")
    assert [c.id for c in store.conversations()] == [first.id, second.id]


def test_update_changes_what_is_given(store: Store) -> None:
    """Renaming keeps the rest."""
    chat = store.start_conversation(title="a", system="s", model_name="m", profile_id="p")
    changed = store.update_conversation(chat.id, title="b")
    assert (changed.title, changed.system, changed.model_name) == ("b", "s", "m")
    assert changed.profile_id == "p"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("grav", True),
        ("GRAVITY moon", True),
        ("moon missing", False),
        ("引力", True),
        ("月球的引力", True),
        ("太阳", False),
        ('"moon" OR', False),
        ("-", False),
        ("É", True),
        ("", False),
    ],
)
def test_search(store: Store, text: str, found: bool) -> None:
    """Parts of words, several words, short words, Chinese; no query syntax leaks through."""
    chat = store.start_conversation(title="The sea")
    store.add_message(chat.id, role="user", content="Gravity of the moon: 潮汐来自月球的引力, É.")
    assert bool(store.search_messages(text)) is found


def test_deleted_text_is_in_no_file(store: Store) -> None:
    """After deleting, neither text nor index of the conversation is on the disk; others stay."""
    chat = store.start_conversation(title="secret title", system="secret prompt")
    for n in range(50):
        store.add_message(chat.id, role="user", content=f"xylophone number {n} " * 40)
    kept = store.start_conversation(title="kept")
    store.add_message(kept.id, role="user", content="harmless words")
    store.delete_conversation(chat.id)
    content = b"".join(p.read_bytes() for p in store.path.parent.iterdir())
    assert b"xylophone" not in content
    assert b"secret" not in content
    assert b"xyl" not in content, "the index forgets too"
    assert len(store.search_messages("harmless")) == 1
    with pytest.raises(UsageProblem):
        store.conversation(chat.id)
    assert store.messages(chat.id) == ()


def test_model_of_a_conversation_can_change(store: Store) -> None:
    """Model, file and profile it is had with are replaced together."""
    chat = store.start_conversation(title="a", model_name="m", model_path="/m", profile_id="p")
    assert chat.model_path == "/m"
    store.choose_model(chat.id, model_name="n", model_path="/n", profile_id=None)
    changed = store.conversation(chat.id)
    assert (changed.model_name, changed.model_path, changed.profile_id) == ("n", "/n", None)


def test_drafts(store: Store) -> None:
    """One per conversation and one for the next new one; it goes with its conversation."""
    chat = store.start_conversation(title="a")
    store.keep_draft(chat.id, "of a")
    store.keep_draft(None, "new one")
    store.keep_draft(None, "newer secretdraft")
    assert (store.draft(chat.id), store.draft(None)) == ("of a", "newer secretdraft")
    store.keep_draft(None, "")
    store.delete_conversation(chat.id)
    assert (store.draft(chat.id), store.draft(None)) == ("", "")
    store.keep_draft(chat.id, "of one that is gone")
    assert store.draft(chat.id) == ""
    files = store.path.parent.glob(store.path.name + "*")
    assert b"secretdraft" not in b"".join(p.read_bytes() for p in files)
