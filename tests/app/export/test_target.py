"""What a command line says survives the shell it is pasted into."""

import shlex

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.export.target import command_line


@given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
@settings(max_examples=50, deadline=None)
def test_posix_quoting_survives_the_shell(words: list[str]) -> None:
    """Any path comes out of a POSIX shell as it went in."""
    assert shlex.split(command_line(words, windows=False)) == words


@given(word=st.text(st.characters(exclude_categories=["C"]), min_size=1))
@settings(max_examples=100, deadline=None)
def test_windows_quoting_survives_the_c_runtime(word: str) -> None:
    """Any word is one argument by the rules of CommandLineToArgvW, specials inside quotes."""
    assume('"' not in word)  # no file name has one
    line = command_line([word], windows=True)
    if any(c in word for c in "&|<>^() "):
        assert line.startswith('"')
    assert _windows_word(line) == word


def _windows_word(line: str) -> str:
    if not line.startswith('"'):
        return line
    inner = line[1:-1]
    tail = len(inner) - len(inner.rstrip("\\"))
    assert tail % 2 == 0, "an odd run of backslashes would escape the closing quote"
    return inner[: len(inner) - tail // 2]
