"""Renders (code, data, language) from ``assets/text/*.toml`` for every surface alike.

The core speaks in codes with data; sentences live in the text files only.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from string import Formatter

from typing_extensions import override

from app.domain.errors import Bug
from app.domain.finding import Finding
from app.domain.sweep import Reason
from app.domain.units import significant
from app.runtime import asset

LANGUAGES = ("en", "zh")
FALLBACK = "en"

Value = str | int | float | None

_CODED = ("rule", "reason", "one", "other")
"""Data that holds codes of the core, several with commas between them."""


@cache
def catalogue(language: str) -> dict[str, dict[str, str]]:
    """Return every section of a language's texts: section → code → template.

    Raises:
        Bug: The file is missing from the program.
    """
    try:
        data = asset(f"text/{language}.toml").read_text(encoding="utf-8")
    except OSError as error:
        msg = f"the texts for {language!r} are missing"
        raise Bug(msg) from error
    return tomllib.loads(data)


def render(section: str, code: str, data: Mapping[str, Value], language: str = "en") -> str:
    """Return the sentence of ``code`` with ``data`` filled in.

    Where a setting has another place on each system, the text has variants: ``saver_mode_windows``
    is taken for ``saver_mode`` when ``data["system"]`` says so; ``too_hot_bare`` is taken for
    ``too_hot`` where a figure of the sentence is not known. ``{n:layer|layers}`` gives the word
    for one or for several.

    Raises:
        Bug: No such code, or a placeholder without data.
    """
    template = _template(section, code, data, language)
    if template is None and language != FALLBACK:
        # A sentence in the other language is better than none.
        template = _template(section, code, data, FALLBACK)
    if template is None:
        msg = f"no text for {section}.{code}"
        raise Bug(msg)
    try:
        shown = {key: Shown(_in_words(key, value, language)) for key, value in data.items()}
        return template.format_map(shown)
    except KeyError as error:
        msg = f"the text of {section}.{code} needs {error}"
        raise Bug(msg) from error


def _in_words(name: str, value: Value, language: str) -> Value:
    if name not in _CODED or not isinstance(value, str):
        return value
    words = catalogue(language)["word"]
    return ", ".join(words.get(code, code) for code in value.split(", "))


def _template(section: str, code: str, data: Mapping[str, Value], language: str) -> str | None:
    texts = catalogue(language).get(section, {})
    text = texts.get(f"{code}_{data.get('system')}") or texts.get(code)
    bare = texts.get(f"{code}_bare")
    if text is None or bare is None:
        return text
    names = {name for _, name, _, _ in Formatter().parse(text) if name}
    unknown = any(data.get(name) is None for name in names)
    return bare if unknown else text


def verification(finding: Finding, language: str = FALLBACK) -> str:
    """Return how to see that a finding's remedy worked; empty where nothing can be seen."""
    known = catalogue(FALLBACK).get("verify", {})
    return render("verify", finding.id, finding.evidence, language) if finding.id in known else ""


def render_reason(reason: Reason, language: str = "en") -> str:
    """Return the sentence of a reason of the search."""
    return render("reason", reason.code, reason.data, language)


def render_power(reason: Reason, language: str = "en") -> str:
    """Return the sentence of what the governor did, or of what it has to say."""
    return render("power", reason.code, reason.data, language)


class Shown:
    """A value as text, which also chooses between the word for one and that for several."""

    def __init__(self, value: Value) -> None:
        """Show ``value``."""
        self._text, self._is_one = show(value), value == 1

    @override
    def __format__(self, words: str) -> str:
        one, _, many = words.partition("|")
        return (one if self._is_one else many) if words else self._text


def show(value: Value) -> str:
    """Return one value as text: 3 significant digits for fractions, "—" for missing."""
    if value is None:
        return "—"
    if isinstance(value, float):
        return significant(value) if round(value, 2) else "0"
    return str(value)
