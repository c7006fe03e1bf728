"""Code colours: comments, strings, numbers and words of many languages; never an exception."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from views.chat.highlight import Highlighter, language_of
from views.colors import DARK, LIGHT

NAMES = ("python", "cpp", "js", "rust", "go", "bash", "sql", "lua", "json", "yaml", "", "brainf")


def colours(code: str, language: str) -> dict[str, str]:
    """Return text → colour of every coloured part."""
    document = QTextDocument()
    document.setPlainText(code)
    Highlighter(document, language, LIGHT).rehighlight()
    found, block = {}, document.begin()
    while block.isValid():
        for part in block.layout().formats():
            text = block.text()[part.start : part.start + part.length]
            found[text] = part.format.foreground().color().name()
        block = block.next()
    return found


@pytest.mark.parametrize(
    ("language", "code", "word", "comment"),
    [
        ("python", 'def f():  # note\n    return "a # b"', "def", "# note"),
        ("c++", 'int f() { /* note */ return "x // y"; }', "int", "/* note */"),
        ("sql", "SELECT 'a' -- note", "SELECT", "-- note"),
        ("sh", "if true; then echo 'x' # note", "if", "# note"),
        ("rust", 'fn f() { "s" } // note', "fn", "// note"),
    ],
)
def test_parts_have_their_colour(
    language: str, code: str, word: str, comment: str, qtbot: QtBot
) -> None:
    """Words, comments and strings differ; a comment's mark inside a string is none."""
    found = colours(code, language)
    assert found[word] == LIGHT.accent
    assert found[comment] == LIGHT.muted
    assert LIGHT.good in found.values()


def test_comments_and_strings_go_on_over_lines(qtbot: QtBot) -> None:
    """The second line of a long comment or string is one, too."""
    assert colours("/* a\nb */ int", "c")["b */"] == LIGHT.muted
    assert colours('x = """a\ndef b"""\ndef', "py")['def b"""'] == LIGHT.good


def test_json_has_no_comments(qtbot: QtBot) -> None:
    """A colour or an address in data must not be taken for one."""
    assert LIGHT.muted not in colours('{"a": "#fff", "b": "http://x"}', "json").values()


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab1 \"'`#/*-\n\\", max_size=80), st.sampled_from(NAMES))
def test_any_code_is_coloured(code: str, language: str) -> None:
    """No text makes it fail or run forever."""
    document = QTextDocument()
    document.setPlainText(code)
    Highlighter(document, language, DARK).rehighlight()


def test_names_of_languages() -> None:
    """What fences name leads to a family; what is unknown leads to none."""
    assert [language_of(n) for n in ("PY", "ts", "yml", "cobol", "")] == [
        "python", "javascript", "data", "", "",
    ]  # fmt: skip
