"""The turns of a conversation and what the disk keeps of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chat.thread import Thread
from app.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Yield an empty store."""
    with Store.open(tmp_path / "rigtune.db") as opened:
        yield opened


def written(thread: Thread, *texts: str) -> list[int]:
    """Add turns to ``thread`` and write them; return their numbers."""
    turns = [thread.add("user", text) for text in texts]
    assert thread.save() is None
    return [turn.id for turn in turns]


def on_disk(store: Store) -> bytes:
    """Return everything in the database's files."""
    return b"".join(p.read_bytes() for p in store.path.parent.glob(store.path.name + "*"))


def test_title_goes_with_the_turn_that_it_was_taken_from(store: Store) -> None:
    """Deleting the first message leaves none of its words; the next one gives the title."""
    thread = Thread(store)
    first, _ = written(thread, "secretword", "more")
    thread.delete(first)
    assert b"secretword" not in on_disk(store)
    assert [c.title for c in store.conversations()] == [""]
    written(thread, "another word")
    assert [c.title for c in store.conversations()] == [thread.title] == ["another word"]


def test_title_is_another_versions_where_one_is_left(store: Store) -> None:
    """A first message that was edited is two: the other one gives the title then."""
    thread = Thread(store)
    (first,) = written(thread, "secretword")
    thread.step_to(None)
    written(thread, "kept word")
    thread.delete(first)
    assert [c.title for c in store.conversations()] == ["kept word"]


def test_title_that_the_user_gave_stays(store: Store) -> None:
    """A conversation that was renamed keeps its name without its first message."""
    thread = Thread(store)
    (first,) = written(thread, "word")
    store.update_conversation(thread.id or 0, title="My title")
    thread.delete(first)
    assert [c.title for c in store.conversations()] == ["My title"]
