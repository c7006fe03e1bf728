"""Texts: every code in every language with the same placeholders; and what is never said."""

import re
from pathlib import Path
from string import Formatter

import pytest

from app.advice.rules import RULES
from app.advice.text import FALLBACK, LANGUAGES, catalogue, render, show
from app.domain.errors import Bug
from probes.reading import Absence

OTHERS = [language for language in LANGUAGES if language != FALLBACK]
ROOT = Path(__file__).parents[3]
SYSTEMS = ("linux", "windows", "wsl2")


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", OTHERS)
def test_languages_have_the_same_codes(language: str) -> None:
    """Every section and code of one language exists in the other."""
    known, other = catalogue(FALLBACK), catalogue(language)
    assert set(known) == set(other)
    for section, texts in known.items():
        assert set(texts) == set(other[section]), section


@pytest.mark.parametrize("language", OTHERS)
def test_languages_have_the_same_placeholders(language: str) -> None:
    """A sentence uses the same data in every language."""
    for section, texts in catalogue(FALLBACK).items():
        for code, text in texts.items():
            other = catalogue(language)[section][code]
            assert placeholders(text) == placeholders(other), (section, code)


def test_every_rule_has_its_sentences() -> None:
    """A rule says what is the matter and what to do; no sentence is left without a rule."""
    rules = {rule.id for rule in RULES}
    variants = {f"{rule}_{variant}" for rule in rules for variant in (*SYSTEMS, "bare")}
    texts = catalogue(FALLBACK)
    for section in ("finding", "remedy"):
        assert set(texts[section]) - variants == rules
    assert set(texts["verify"]) - variants <= rules


def test_every_absence_has_a_sentence() -> None:
    """Each reason why a reading is missing can be said."""
    assert set(catalogue(FALLBACK)["absence"]) == {absence.value for absence in Absence}


def test_made_up_timeout_value_is_called_ineffective() -> None:
    """The only sentence that names TccTimeout says that it does nothing."""
    named = [
        (section, code)
        for section, texts in catalogue(FALLBACK).items()
        for code, text in texts.items()
        if "tcctimeout" in text.lower()
    ]
    assert named == [("finding", "tcc_timeout")]
    assert "no effect" in render("finding", "tcc_timeout", {})


@pytest.mark.parametrize("language", OTHERS)
def test_sentences_in_chinese_are_chinese(language: str) -> None:
    """A translated sentence holds Chinese characters: nothing was left in English."""
    for section, texts in catalogue(language).items():
        for code, text in texts.items():
            assert re.search(r"[一-鿿]", text) or code == "equal_cards", (section, code)


def test_unknown_code_and_missing_data_are_bugs() -> None:
    """A code without text, or a text without its data, is never shown as a sentence."""
    with pytest.raises(Bug):
        render("finding", "nothing_like_it", {})
    with pytest.raises(Bug):
        render("finding", "external_gpu", {})


def test_values_are_shown_in_three_digits() -> None:
    """Missing is a dash, fractions have three significant digits."""
    assert show(None) == "—"
    assert show(0.12345) == "0.123"
    assert show(33) == "33"


@pytest.mark.parametrize("language", LANGUAGES)
def test_unknown_figure_is_left_out_of_a_sentence(language: str) -> None:
    """A reading that is not there leaves a whole sentence, not "(— °C)"."""
    cases: tuple[tuple[str, dict[str, str | float | None]], ...] = (
        ("too_hot", {"gpu": "A", "temp_c": None}),
        ("at_power_limit", {"gpu": "A", "power_w": 5.0, "limit_w": None}),
        ("near_slowdown", {"gpu": "A", "margin_c": 2.0, "temp_c": None}),
    )
    for code, data in cases:
        text = render("finding", code, data, language)
        assert "—" not in text
        assert "A" in text
    assert "90" in render("finding", "too_hot", {"gpu": "A", "temp_c": 90.0}, language)


def test_bare_sentences_only_leave_something_out() -> None:
    """A bare variant has a full one, and uses fewer of its figures, in every language."""
    for language in LANGUAGES:
        for texts in catalogue(language).values():
            for code in (code for code in texts if code.endswith("_bare")):
                full = placeholders(texts[code.removesuffix("_bare")])
                assert placeholders(texts[code]) < full, code


def test_nouns_follow_their_number() -> None:
    """One thread, two threads."""
    data = {"instead": 4, "gain_pct": 3.0}
    one = render("reason", "threads_chosen", data | {"n_threads": 1})
    assert one.startswith("1 CPU thread: ")
    assert render("reason", "threads_chosen", data | {"n_threads": 2}).startswith("2 CPU threads:")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("section", "code", "data"),
    [
        ("reason", "tie_resolved", {"n_tied": 2, "rule": "more_headroom"}),
        ("finding", "throttled", {"gpu": "x", "temp_c": 90, "reason": "sw_thermal, hw_thermal"}),
        ("power", "source_differs", {"one": "ac", "other": "battery"}),
        ("power", "profile_differs", {"one": "power-saver", "other": "balanced"}),
    ],
)
def test_codes_inside_a_sentence_are_said_in_words(
    section: str, code: str, data: dict[str, str | int], language: str
) -> None:
    """A code of the core is no word of any language."""
    text, words = render(section, code, data, language), catalogue(language)["word"]
    for value in data.values():
        for part in str(value).split(", "):
            assert words.get(part, part) in text
            assert part == words.get(part, part) or "_" not in part or part not in text


def test_rules_name_public_sources() -> None:
    """Each rule says what it rests on, and every rule stands in the advice page."""
    page = (ROOT / "docs" / "advice.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert rule.source, rule.id
        assert f"`{rule.id}`" in page, rule.id
