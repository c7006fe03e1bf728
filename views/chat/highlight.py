"""Colours code: comments, strings, numbers and keywords, by rules that hold for most languages."""

import re

from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument
from typing_extensions import override

from views.colors import Colors

_C = (
    "auto bool break case catch char class const constexpr continue default delete do double else "
    "enum explicit extern false final float for friend goto if inline int long namespace new "
    "nullptr operator private protected public return short signed sizeof static struct switch "
    "template this throw true try typedef typename union unsigned using virtual void volatile while"
)
_WORDS = {
    "python": (
        "and as assert async await break case class continue def del elif else except False "
        "finally for from global if import in is lambda match None nonlocal not or pass raise "
        "return self True try while with yield"
    ),
    "c": _C,
    "java": _C + " abstract boolean byte extends implements import instanceof interface null "
    "package super synchronized throws var record string override async await get set foreach",
    "javascript": (
        "as async await break case catch class const continue default delete do else enum export "
        "extends false finally for from function get if implements import in instanceof interface "
        "let new null of return set static super switch this throw true try type typeof undefined "
        "var void while yield"
    ),
    "rust": (
        "as async await break const continue crate dyn else enum extern false fn for if impl in "
        "let loop match mod move mut pub ref return self Self static struct super trait true type "
        "unsafe use where while"
    ),
    "go": (
        "break case chan const continue default defer else fallthrough false for func go goto if "
        "import interface map nil package range return select struct switch true type var"
    ),
    "shell": (
        "case cd do done echo elif else esac exit export fi for function if in local return set "
        "sudo then while"
    ),
    "sql": (
        "add all alter and as asc between by case create delete desc distinct drop else end exists "
        "from group having in index inner insert into is join key left like limit not null on or "
        "order outer primary right select set table then union unique update values view when where"
    ),
    "lua": (
        "and break do else elseif end false for function if in local nil not or repeat return then "
        "true until while def class module require begin rescue ensure unless"
    ),
    "data": "true false null yes no on off",
    "markup": "true false null",
}
_ALIASES = {
    "py": "python", "python3": "python", "cpp": "c", "c++": "c", "h": "c", "hpp": "c", "cuda": "c",
    "cu": "c", "glsl": "c", "cs": "java", "csharp": "java", "kotlin": "java", "swift": "java",
    "scala": "java", "js": "javascript", "ts": "javascript", "typescript": "javascript",
    "jsx": "javascript", "tsx": "javascript", "rs": "rust", "golang": "go", "bash": "shell",
    "sh": "shell", "zsh": "shell", "console": "shell", "powershell": "shell", "dockerfile": "shell",
    "make": "shell", "makefile": "shell", "ruby": "lua", "rb": "lua", "json": "markup",
    "yaml": "data", "yml": "data", "toml": "data", "ini": "data", "xml": "markup",
    "html": "markup", "css": "markup",
}  # fmt: skip
_HASH = {"python", "shell", "lua", "data"}
_NO_SLASHES = {"sql", "markup"}
_STRING = r"\"(?:\\.|[^\"\\])*\"?|'(?:\\.|[^'\\])*'"
_NUMBER = r"\b(?:0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b"
_PLAIN, _LONG_STRING, _LONG_COMMENT = -1, 1, 2


def language_of(name: str) -> str:
    """Return the family of rules for what a fence names; empty = none is known."""
    name = _ALIASES.get(name.lower(), name.lower())
    return name if name in _WORDS else ""


class Highlighter(QSyntaxHighlighter):
    """Colours one document."""

    def __init__(self, document: QTextDocument, name: str, colors: Colors) -> None:
        """Use the rules of the language that a fence calls ``name``."""
        super().__init__(document)
        family = language_of(name)
        self._rule = _rule(family)
        self._long = _long_parts(family)
        self._formats = {
            "comment": _format(colors.muted, italic=True), "string": _format(colors.good),
            "number": _format(colors.warn), "word": _format(colors.accent, bold=True),
        }  # fmt: skip

    @override
    def highlightBlock(self, text: str) -> None:
        at = self._end_of_long(text)
        while at < len(text):
            found = self._rule.search(text, at)
            if found is None:
                return
            kind = found.lastgroup or ""
            if kind in self._long:
                at = self._begin_long(text, kind, found.start())
            else:
                self.setFormat(found.start(), found.end() - found.start(), self._formats[kind])
                at = max(found.end(), at + 1)

    def _end_of_long(self, text: str) -> int:
        """Go on with a comment or string of the line before; return where it ends."""
        self.setCurrentBlockState(_PLAIN)
        state = self.previousBlockState()
        kind = {_LONG_STRING: "quotes", _LONG_COMMENT: "block"}.get(state)
        if kind not in self._long:
            return 0
        return self._draw_long(text, kind, 0, 0)

    def _begin_long(self, text: str, kind: str, start: int) -> int:
        return self._draw_long(text, kind, start, start + len(self._long[kind][0]))

    def _draw_long(self, text: str, kind: str, start: int, search_from: int) -> int:
        _, end_text = self._long[kind]
        end = text.find(end_text, search_from)
        stop = len(text) if end < 0 else end + len(end_text)
        look = "string" if kind == "quotes" else "comment"
        self.setFormat(start, stop - start, self._formats[look])
        if end < 0:
            self.setCurrentBlockState(_LONG_STRING if kind == "quotes" else _LONG_COMMENT)
        return max(stop, start + 1)


def _rule(family: str) -> re.Pattern[str]:
    comments = ["#.*"] if family in _HASH or not family else []
    comments += ["--.*"] if family in {"sql", "lua"} else []
    comments += [] if family in {*_HASH, *_NO_SLASHES} else [r"//.*"]
    long_parts = "".join(
        f"(?P<{kind}>{re.escape(begin)})|" for kind, (begin, _) in _long_parts(family).items()
    )
    words = rf"|(?P<word>\b(?:{'|'.join(_WORDS[family].split())})\b)" if family else ""
    flags = re.IGNORECASE if family == "sql" else 0
    comment = f"(?P<comment>{'|'.join(comments)})|" if comments else ""
    pattern = f"{long_parts}{comment}(?P<string>{_STRING})|(?P<number>{_NUMBER}){words}"
    return re.compile(pattern, flags)


def _long_parts(family: str) -> dict[str, tuple[str, str]]:
    if family == "python":
        return {"quotes": ('"""', '"""')}
    return {} if family in _HASH else {"block": ("/*", "*/")}


def _format(color: str, *, bold: bool = False, italic: bool = False) -> QTextCharFormat:
    look = QTextCharFormat()
    look.setForeground(QColor(color))
    look.setFontItalic(italic)
    if bold:
        look.setFontWeight(QFont.Weight.DemiBold)
    return look
