"""Text from tokens, as they come."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.worker.detokenize import TextStream


def feed(stream: TextStream, pieces: list[bytes]) -> str:
    return "".join(stream.feed(p) for p in pieces) + stream.finish()


@given(st.text(), st.data())
def test_any_cut_of_the_bytes_gives_the_same_text(text: str, data: st.DataObject) -> None:
    """Characters that span tokens come out whole, once."""
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    edges = [0, *cuts, len(raw)]
    pieces = [raw[a:b] for a, b in pairwise(edges)]
    assert feed(TextStream(), pieces) == text


def test_half_a_character_waits_for_the_rest() -> None:
    """Nothing is shown until the character is complete."""
    stream = TextStream()
    assert stream.feed("é".encode()[:1]) == ""
    assert stream.feed("é".encode()[1:]) == "é"


def test_bytes_that_are_no_text_are_replaced() -> None:
    """A broken sequence shows as the replacement character and stops nothing."""
    assert feed(TextStream(), [b"a\xff", b"b"]) == "a\ufffdb"


@pytest.mark.parametrize("pieces", [["one STOP two"], ["one S", "TO", "P two"], ["one ", "STOP"]])
def test_stop_string_ends_the_text_before_it(pieces: list[str]) -> None:
    """Wherever the tokens cut it, the stop string is not shown."""
    stream = TextStream(("STOP",))
    assert feed(stream, [p.encode() for p in pieces]) == "one "
    assert stream.stopped


def test_text_that_only_looks_like_a_stop_string_is_shown() -> None:
    """What was held back comes when it turns out harmless, or at the end."""
    stream = TextStream(("STOP",))
    assert stream.feed(b"a STO") == "a "
    assert stream.feed(b"RM ST") == "STORM "
    assert stream.finish() == "ST"
    assert not stream.stopped
