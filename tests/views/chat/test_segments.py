"""Cutting answers into parts: nothing is lost, fences and formulas are found wherever they end."""

from hypothesis import given
from hypothesis import strategies as st

from views.chat.segments import (
    CODE,
    MATH,
    MAX_CHARS,
    TEXT,
    Segment,
    Splitter,
    readable_math,
    split,
    visible,
)

ANSWER = """Some *text* first.

```python
def f():
    return "```"
```
then

$$
x = \\frac{1}{2}
$$

1. one
   ~~~sh
   ls
   ~~~
2. two \\[ y_1 \\]
"""


def test_kinds_of_parts() -> None:
    """Text, fenced code (also in a list) and formulas on their own lines are told apart."""
    parts = split(ANSWER)
    assert [(p.kind, p.language) for p in parts] == [
        (TEXT, ""), (CODE, "python"), (TEXT, ""), (MATH, ""), (TEXT, ""), (CODE, "sh"), (TEXT, ""),
    ]  # fmt: skip
    assert parts[1].text == 'def f():\n    return "```"'
    assert parts[3].text == "$$\nx = \\frac{1}{2}\n$$"


@given(st.lists(st.sampled_from(["```", "```py\n", "a b", "\n", "$$", "x", "\n\n", "~~~\n", "é"])))
def test_any_pieces_give_the_parts_of_the_whole(pieces: list[str]) -> None:
    """Where the tokens cut the text must not change what is drawn in the end."""
    splitter = Splitter()
    parts = [part for piece in pieces for part in splitter.feed(piece)]
    assert [*parts, *splitter.finish()] == split("".join(pieces))


@given(st.text(alphabet="ab `~\n$", max_size=200))
def test_letters_are_never_lost(text: str) -> None:
    """Every letter comes out once and in order (fences and blank lines are drawn otherwise)."""
    letters = [c for line in text.split("\n") for c in line if c in "ab"]
    parts = split(text)
    shown = [c for p in parts for c in p.text + p.language if c in "ab"]
    fences = "```" in text or "~~~" in text
    assert fences or shown == letters


def test_long_texts_are_cut() -> None:
    """A line of a megabyte and a block of a megabyte become many small parts, all of it kept."""
    line = "word " * 200_000
    parts = split(line)
    assert max(len(p.text) for p in parts) <= MAX_CHARS
    assert "".join(p.text for p in parts) == line
    code = "\n".join(f"line {n}" for n in range(50_000))
    blocks = split(f"```c\n{code}\n```")
    assert max(len(p.text) for p in blocks) <= MAX_CHARS + 100
    assert {p.block for p in blocks} == {1}
    assert "\n".join(p.text for p in blocks) == code
    assert split("```\n```") == [Segment(CODE, "", "", 1)]


def test_open_part_grows() -> None:
    """What is shown while the answer comes is the part that is not finished."""
    splitter = Splitter()
    assert splitter.feed("para\n\n```py\nx = 1\ny") == [Segment(TEXT, "para")]
    assert splitter.open == Segment(CODE, "x = 1\ny", "py", 1)


def test_formulas_stay_readable() -> None:
    """Markdown must not eat a formula's characters; money and code are left alone."""
    assert readable_math(r"so \(a_1 * b_2\) holds") == r"so \\\(a\_1 \* b\_2\\\) holds"
    assert readable_math("$x_1$") == r"\$x\_1\$"
    for plain in ("it costs $5 and $6", "`$x_1$`", "no maths _here_"):
        assert readable_math(plain) == plain


def test_invisible_characters_are_spelt_out() -> None:
    """NUL, escape and direction overrides cannot disturb the window."""
    assert visible("a\0b\x1b[2J\u202ec\n\t") == "a\u2400b\u241b[2J<U+202E>c\n\t"
