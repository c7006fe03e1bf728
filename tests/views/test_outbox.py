"""The mailbox between threads."""

from app.domain.events import TokenGenerated, TrialProgress
from views.outbox import Outbox


def test_tokens_become_one_event_without_losing_text() -> None:
    """Tokens that wait together must arrive as one event with the whole text."""
    box = Outbox(lambda: None)
    for index, text in enumerate(("a", "b", "c")):
        box.put(TokenGenerated(text=text, n_tok=index + 1))
    assert box.take() == [TokenGenerated(text="abc", n_tok=3)]


def test_only_the_newest_progress_is_kept() -> None:
    """Progress that was overtaken must not be shown."""
    box = Outbox(lambda: None)
    box.put(TrialProgress(phase="load", frac=0.1))
    box.put(TrialProgress(phase="load", frac=0.9))
    assert box.take() == [TrialProgress(phase="load", frac=0.9)]


def test_order_is_kept_around_merged_events() -> None:
    """Events of different kinds must come out in the order they went in."""
    box = Outbox(lambda: None)
    for item in ("x", TokenGenerated(text="a", n_tok=1), "y", TokenGenerated(text="b", n_tok=2)):
        box.put(item)
    kinds = [item if isinstance(item, str) else item.text for item in box.take()]  # type: ignore[attr-defined]
    assert kinds == ["x", "a", "y", "b"]


def test_reader_is_told_once_per_batch() -> None:
    """However much is put, the reader must be woken once until it has looked."""
    told: list[int] = []
    box = Outbox(lambda: told.append(1))
    box.put("a")
    box.put("b")
    assert len(told) == 1
    box.take()
    box.put("c")
    assert len(told) == 2


def test_kinds_of_text_are_not_mixed() -> None:
    """Reasoning and answer must stay apart; a sign of life without text belongs to either."""
    box = Outbox(lambda: None)
    for text, n_tok, kind in (
        ("why", 1, "reasoning"), ("", 2, "answer"), ("so", 3, "reasoning"), ("yes", 4, "answer"),
        ("", 5, "answer"),
    ):  # fmt: skip
        box.put(TokenGenerated(text=text, n_tok=n_tok, kind=kind))
    assert box.take() == [
        TokenGenerated(text="whyso", n_tok=3, kind="reasoning"),
        TokenGenerated(text="yes", n_tok=5, kind="answer"),
    ]
