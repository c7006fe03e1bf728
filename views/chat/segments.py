"""Cuts an answer, while it arrives, into parts that are drawn one by one. No Qt here.

A part is running text, a code block or a formula on lines of its own. Long parts are cut, so that
drawing one never takes long, however much a model writes or a user pastes.
"""

import re
from typing import NamedTuple

TEXT, CODE, MATH = "text", "code", "math"

TARGET_CHARS = 1500
"""Text is cut at the next empty line after so many characters."""
MAX_CHARS = 4000
"""And anywhere after so many."""

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$")
_MATH = {"$$": "$$", "\\[": "\\]"}
_INLINE = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<math>\\\(.+?\\\)|\\\[.+?\\\]|\$\$.+?\$\$|\$(?![\s$])[^$\n]*?(?<![\s\\])\$(?!\d))",
    re.DOTALL,
)
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# what has no picture, moves the cursor, or turns the text around
_SHOWN = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_SHOWN |= {0x7F: "\u2421"} | {code: f"<{code:02X}>" for code in range(0x80, 0xA0)}
_SHOWN |= {c: f"<U+{c:04X}>" for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_SHOWN |= {0x2028: "\n", 0x2029: "\n"}


class Segment(NamedTuple):
    """One part.

    Attributes:
        kind: ``text``, ``code`` or ``math``.
        text: Its text; without the fences for code, with the delimiters for a formula.
        language: What the fence names.
        block: Number of the code block within the text: a long one is several parts.
    """

    kind: str
    text: str
    language: str = ""
    block: int = 0


class Splitter:
    """Takes text as it comes and gives parts that will not change any more."""

    def __init__(self) -> None:
        """Start empty."""
        self._kind, self._language, self._end = TEXT, "", ""
        self._lines: list[str] = []
        self._size = 0
        self._has_part = False
        self._rest = ""
        self._block = 0
        self._done: list[Segment] = []

    @property
    def open(self) -> Segment:
        """The part that still grows."""
        lines = [*self._lines, self._rest] if self._rest else self._lines
        return self._segment(lines)

    def feed(self, text: str) -> list[Segment]:
        """Add ``text``; return the parts that are finished now."""
        *lines, rest = text.split("\n")
        if lines:
            lines[0] = self._rest + lines[0]
        else:
            rest = self._rest + rest
        self._rest = ""
        for line in lines:
            self._line(line)
        self._rest = self._cut(rest)
        return self._take()

    def finish(self) -> list[Segment]:
        """Return what is left; the text has ended."""
        if self._rest:
            self._line(self._rest)
            self._rest = ""
        self._flush()
        return self._take()

    def _line(self, line: str) -> None:
        line = self._cut(line)
        if self._kind == TEXT:
            self._text_line(line)
        elif self._kind == CODE and self._closes(line):
            self._flush()
            self._begin(TEXT)
        else:
            self._add(line)
            if self._kind == MATH and line.rstrip().endswith(self._end):
                self._flush()
                self._begin(TEXT)

    def _text_line(self, line: str) -> None:
        stripped = line.strip()
        if fence := _FENCE.match(line):
            self._flush()
            self._block += 1
            self._begin(CODE, fence.group(1), fence.group(2))
        elif end := _MATH.get(stripped[:2]):
            self._flush()
            self._begin(MATH, end)
            self._add(line)
            if len(stripped) > len(end) and stripped.endswith(end):
                self._flush()
                self._begin(TEXT)
        elif not stripped and self._size > TARGET_CHARS:
            self._flush()
        else:
            self._add(line)

    def _closes(self, line: str) -> bool:
        stripped = line.strip()
        return len(stripped) >= len(self._end) and not stripped.strip(self._end[0])

    def _begin(self, kind: str, end: str = "", language: str = "") -> None:
        self._kind, self._end, self._language = kind, end, language
        self._has_part = False

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._size > MAX_CHARS:
            self._flush()

    def _cut(self, line: str) -> str:
        """Put the pieces of an over-long line away; return its last one."""
        at = 0
        while len(line) - at > MAX_CHARS:
            end = line.rfind(" ", at + MAX_CHARS // 2, at + MAX_CHARS) + 1 or at + MAX_CHARS
            self._lines.append(line[at:end])
            self._flush()
            at = end
        return line[at:] if at else line

    def _flush(self) -> None:
        segment = self._segment(self._lines)
        # an empty block is shown, the empty end of a long one is not
        if segment.text.strip() or (segment.kind == CODE and not self._has_part):
            self._done.append(segment)
            self._has_part = True
        self._lines, self._size = [], 0

    def _segment(self, lines: list[str]) -> Segment:
        text = "\n".join(lines)
        if self._kind == TEXT:
            text = text.strip("\n")
        return Segment(self._kind, text, self._language, self._block)

    def _take(self) -> list[Segment]:
        done, self._done = self._done, []
        return done


def split(text: str) -> list[Segment]:
    """Return the parts of a whole text."""
    splitter = Splitter()
    return [*splitter.feed(text), *splitter.finish()]


def readable_math(text: str) -> str:
    """Return Markdown in which formulas stay as they were written.

    Markdown would take their backslashes, underscores and asterisks for its own.
    """
    return _INLINE.sub(_kept, text)


def visible(text: str) -> str:
    """Return ``text`` with control and direction characters spelt out."""
    return text.translate(_SHOWN)


def _kept(found: re.Match[str]) -> str:
    math = found.group("math")
    return found.group() if math is None else _PUNCTUATION.sub(r"\\\1", math)
