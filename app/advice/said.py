"""The core's English sentences in another language: errors, hints and notes.

An error is raised where it is found, in words made for the terminal. A window in another language
looks the sentence up by its template (``assets/text/said_zh.toml``) and fills the values in again;
a test reads every sentence from the code and fails where one has no translation.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from string import Formatter

from app.advice.text import FALLBACK, catalogue
from app.runtime import asset

Parts = tuple[str, ...]
"""The fixed words of a template in order: one value lies between each two."""

_GAP = re.compile(r"\{(\w+)\}")
_MAX_DEPTH = 4
_RENDERED = ("finding", "remedy", "power", "device", "absence", "note")
"""Sections whose English sentences the core puts into errors and estimates as they are."""


class Template:
    """One English sentence with gaps, and what it is in another language."""

    def __init__(self, english: str, other: str) -> None:
        """Take both apart."""
        parsed = list(Formatter().parse(english))
        # a gap with a rule holds a noun in its number, which another language says in its own way
        self.names = ["" if spec else name for _, name, spec, _ in parsed if name is not None]
        self.parts = tuple(text for text, *_ in parsed)
        if len(self.parts) == len(self.names):
            self.parts = (*self.parts, "")
        self.other = other

    @property
    def n_fixed(self) -> int:
        """Number of characters that must be there: more are more specific."""
        return sum(map(len, self.parts))

    def values(self, text: str) -> list[str] | None:
        """Return what stands in the gaps of ``text``; ``None`` where it is another sentence."""
        if not self.names:
            return [] if text == self.parts[0] else None
        first, *inner, last = self.parts
        if not text.startswith(first) or not text.endswith(last):
            return None
        at, end, found = len(first), len(text) - len(last), []
        for part in inner:
            # a gap holds a character at least, and the first place that fits is as good as any
            next_at = text.find(part, at + 1, end)
            if next_at < 0:
                return None
            found.append(text[at:next_at])
            at = next_at + len(part)
        return [*found, text[at:end]] if at < end else None

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the other language's sentence with ``values`` by name."""
        return _GAP.sub(lambda gap: values[gap[1]], self.other)


def said(text: str, language: str) -> str | None:
    """Return ``text``, one or more sentences of the core, in ``language``.

    Returns:
        ``None`` where a sentence has no translation: half a text in each language helps nobody.
    """
    if language == FALLBACK or not text:
        return text
    return _said(text, language, 0)


@cache
def templates(language: str) -> tuple[Template, ...]:
    """Return every template of a language, the most specific first; read once."""
    path = asset(f"text/said_{language}.toml")
    sections = tomllib.loads(path.read_text(encoding="utf-8"))
    found = [Template(*pair) for texts in sections.values() for pair in texts.items()]
    found += [Template(*pair) for pair in _rendered(language)]
    return tuple(sorted(found, key=lambda template: -template.n_fixed))


def _rendered(language: str) -> Iterator[tuple[str, str]]:
    english, other = catalogue(FALLBACK), catalogue(language)
    for section in _RENDERED:
        yield from ((text, other[section][code]) for code, text in english[section].items())


def _said(text: str, language: str, depth: int) -> str | None:
    whole = _sentence(text, language, depth)
    if whole is not None:
        return whole
    at = text.rfind(". ")
    while at > 0:
        head = _sentence(text[: at + 1], language, depth)
        if head is not None:
            rest = _said(text[at + 2 :], language, depth)
            if rest is not None:
                return head + rest
        at = text.rfind(". ", 0, at)
    return None


def _sentence(text: str, language: str, depth: int) -> str | None:
    for template in templates(language):
        values = template.values(text)
        if values is not None:
            shown = (_value(value, language, depth + 1) for value in values)
            return template.filled(dict(zip(template.names, shown, strict=True)))
    return None


def _value(value: str, language: str, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return value
    whole = _said(value, language, depth)
    if whole is None and ", " in value:
        return ", ".join(_said(part, language, depth) or part for part in value.split(", "))
    return whole or value
