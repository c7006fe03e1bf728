"""Rows of a turn: they do not depend on the pieces in which an answer came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from views.chat.rows import Turn
from views.chat.turns import TurnView

MARKS = ("```", "`", "~~~", "$$", "\\[", "\\]", "\n", "\n\n", "py", "a b", " ", "x" * 900)
pieces = st.lists(st.sampled_from(MARKS), max_size=30)


def drawn(turn: Turn, *, is_thought: bool) -> list[tuple[object, ...]]:
    """Return what decides how each row of a turn is drawn."""
    turn.is_unfolded = is_thought
    return [(r.kind, r.segment and r.segment[:3], r.is_first, r.is_open) for r in turn.rows()]


def streamed(parts: list[str], *, is_thought: bool) -> Turn:
    """Return the turn of an answer that came in ``parts``."""
    turn = Turn(TurnView(role="assistant", content=""), is_growing=True)
    for part in parts:
        turn.append(part, is_thought=is_thought)
    turn.adopt(turn.view)
    return turn


def whole(text: str, *, is_thought: bool) -> Turn:
    """Return the turn as it is opened later."""
    content, reasoning = ("", text) if is_thought else (text, "")
    return Turn(TurnView(role="assistant", content=content, reasoning=reasoning))


@pytest.mark.parametrize(
    "text",
    [
        "```python\nif x:\n    y()\n```\nthat is it",
        "$$\na_b\n$$\n",
        "```\none\n```\n```\ntwo\n```\n",
        "\n\n~~~\ncode that has no end",
        "```\n```\n",
    ],
)
def test_a_block_at_the_beginning_is_a_block(text: str) -> None:
    """Its mark looks like text until its line has ended; what follows must not be drawn as text."""
    turn = streamed(list(text), is_thought=False)
    assert drawn(turn, is_thought=False) == drawn(whole(text, is_thought=False), is_thought=False)


@given(parts=pieces, is_thought=st.booleans())
def test_rows_are_those_of_the_whole(parts: list[str], is_thought: bool) -> None:
    """Streamed or opened later, an answer is drawn the same."""
    text = "".join(parts)
    later = drawn(whole(text, is_thought=is_thought), is_thought=is_thought)
    assert drawn(streamed(parts, is_thought=is_thought), is_thought=is_thought) == later


@given(parts=pieces)
def test_a_mark_that_became_a_block_is_gone(parts: list[str]) -> None:
    """While the answer comes, too, no row shows what is part of a fence by then."""
    turn = Turn(TurnView(role="assistant", content=""), is_growing=True)
    for part in parts:
        before = turn.rows()
        row, has_changed = turn.append(part, is_thought=False)
        assert has_changed or turn.rows() == before
        assert row is None or row is turn.rows()[-1]
        for shown in turn.rows()[1:]:
            assert shown.segment is not None
            assert shown.kind == shown.segment.kind
