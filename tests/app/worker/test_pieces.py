"""Reasoning, answer and tool calls told apart, wherever the tokens cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.worker.pieces import MARKERS, Marker, Pieces, markers_of, open_marker

THINK = next(m for m in MARKERS if m.open == "<think>")
HARMONY = "<|channel|>analysis<|message|> <|channel|>commentary to= <|channel|>final<|message|>"


def cut(
    text: str,
    markers: tuple[Marker, ...],
    inside: Marker | None = None,
    edges: list[int] | None = None,
) -> list[tuple[str, str]]:
    """Feed ``text`` in parts and join neighbours of one kind."""
    parser = Pieces(markers, inside)
    places = [0, *sorted(edges or []), len(text)]
    out: list[tuple[str, str]] = []
    found = [p for a, b in pairwise(places) for p in parser.feed(text[a:b])]
    for kind, piece in [*found, *parser.finish()]:
        if out and out[-1][0] == kind:
            out[-1] = (kind, out[-1][1] + piece)
        elif piece:
            out.append((kind, piece))
    return out


@pytest.mark.parametrize(
    ("template", "text", "expected"),
    [
        ("<think>", "<think>\nhm\n</think>\n\nyes", [("reasoning", "hm\n"), ("answer", "yes")]),
        ("</think>", "<think></think>yes", [("answer", "yes")]),
        ("[THINK]", "[THINK]a[/THINK]b", [("reasoning", "a"), ("answer", "b")]),
        ("<think>", "say <think> here", [("answer", "say <think> here")]),
        ("", "<think>a</think>b", [("answer", "<think>a</think>b")]),
        (
            "<tool_call>",
            'ok <tool_call>{"a": 1}</tool_call>',
            [("answer", "ok "), ("tool_call", '<tool_call>{"a": 1}</tool_call>')],
        ),
        ("[TOOL_CALLS]", '[TOOL_CALLS][{"a"', [("tool_call", '[TOOL_CALLS][{"a"')]),
        (
            "<|channel>thought\n",
            "<|channel>thought\nhm<channel|>yes",
            [("reasoning", "hm"), ("answer", "yes")],
        ),
        (
            HARMONY,
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
            "<|channel|>final<|message|>yes",
            [("reasoning", "hm"), ("answer", "yes")],
        ),
        (
            HARMONY,
            '<|channel|>commentary to=f <|constrain|>json<|message|>{"a":1}',
            [("tool_call", '<|channel|>commentary to=f <|constrain|>json<|message|>{"a":1}')],
        ),
    ],
)
def test_parts_of_an_answer(template: str, text: str, expected: list[tuple[str, str]]) -> None:
    """Markers the template knows separate the parts; others are plain text."""
    assert cut(text, markers_of(template)) == expected


@given(st.data())
def test_any_cut_gives_the_same_parts(data: st.DataObject) -> None:
    """Markers across token borders are found all the same."""
    text = "<think>a < b</think> x <tool_call>{}</tool_call> y"
    edges = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    markers = markers_of("<think><tool_call>")
    assert cut(text, markers, edges=edges) == cut(text, markers)


@given(st.text(alphabet="<>/think tool_call|[]\n", max_size=80))
def test_any_text_comes_out(text: str) -> None:
    """Without markers nothing is changed; with them nothing but markers and blanks is lost."""
    assert "".join(p for _, p in cut(text, ())) == text
    kept = "".join(p for _, p in cut(text, (THINK,)))
    assert "".join(kept.split()) in "".join(text.split()) or THINK.open in text


def test_a_prompt_can_begin_the_reasoning() -> None:
    """Templates that end in an open marker put the model inside its reasoning."""
    markers = markers_of("<think>")
    assert open_marker(markers, "<|Assistant|><think>\n") == THINK
    assert open_marker(markers, "<think>\n\n</think>\n\n") is None
    assert open_marker(markers, "<|Assistant|>") is None
    assert cut("hm</think>yes", markers, THINK) == [("reasoning", "hm"), ("answer", "yes")]
