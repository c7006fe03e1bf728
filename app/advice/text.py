"""Renders (code, data, language) from ``assets/text/*.toml`` for every surface alike.

The core speaks in codes with data; sentences live in the text files only.
"""

import tomllib
from collections.abc import Mapping
from functools import cache

from app.domain.errors import Bug
from app.domain.finding import Finding
from app.domain.sweep import Reason
from app.domain.units import significant
from app.runtime import asset

LANGUAGES = ("en", "zh")
FALLBACK = "en"

Value = str | int | float | None


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
    is taken for ``saver_mode`` when ``data["system"]`` says so.

    Raises:
        Bug: No such code, or a placeholder without data.
    """
    template = _template(section, code, data.get("system"), language)
    if template is None and language != FALLBACK:
        # A sentence in the other language is better than none.
        template = _template(section, code, data.get("system"), FALLBACK)
    if template is None:
        msg = f"no text for {section}.{code}"
        raise Bug(msg)
    try:
        return template.format_map({k: _in_words(k, v, language) for k, v in data.items()})
    except KeyError as error:
        msg = f"the text of {section}.{code} needs {error}"
        raise Bug(msg) from error


def _in_words(name: str, value: Value, language: str) -> str:
    # a rule by which ties are decided is a code of its own
    return catalogue(language)["tie"].get(str(value), str(value)) if name == "rule" else show(value)


def _template(section: str, code: str, system: Value, language: str) -> str | None:
    texts = catalogue(language).get(section, {})
    return texts.get(f"{code}_{system}") or texts.get(code)


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


def show(value: Value) -> str:
    """Return one value as text: 3 significant digits for fractions, "—" for missing."""
    if value is None:
        return "—"
    if isinstance(value, float):
        return significant(value) if round(value, 2) else "0"
    return str(value)
