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

FORBIDDEN = {
    "a made-up timeout value as a remedy": r"(create|set|add|write).{0,30}tcctimeout",
    "Resizable BAR switched off": r"(disable|switch off|turn off).{0,20}resizable bar",
    "detection switched off as a remedy": r"(set|use) tdrlevel (to )?0",
    "driver model called persistence": r"-dm 1|persistence mode",
    "TCC on Linux": r"linux.{0,20}\btcc\b",
    "one temperature for all cards": r"83 ?°",
    "GGUF called a CPU format": r"gguf.{0,20}(for|is a) cpu",
    "quantised called slower on GPUs": r"q4_k_m.{0,20}slower|quanti[sz]ed.{0,20}slower than",
    "fragmentation blamed": r"fragment",
    "bank conflicts, idle lanes": r"bank conflict|idle lanes|of 32 lanes",
    "low busy time as proof of a bandwidth limit": r"bandwidth[- ]bound|bandwidth limit",
    "debug variable outside a diagnosis": r"cuda_launch_blocking",
    "PCIe numbers of the wrong width": r"32 gb/s|force gen ?4",
    "commands that do not exist": r"vllm-bench|--device-id|cudaprofilerrange",
    "invented figures": r"18 ms|roi 320",
    "writing the registry": r"regedit|reg add|new-itemproperty",
}
"""What is wrong with it → how it would read. From the list of refuted claims."""


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
    texts = catalogue(FALLBACK)
    assert set(texts["finding"]) == set(texts["remedy"]) == rules
    assert set(texts["verify"]) <= rules


def test_every_absence_has_a_sentence() -> None:
    """Each reason why a reading is missing can be said."""
    assert set(catalogue(FALLBACK)["absence"]) == {absence.value for absence in Absence}


@pytest.mark.parametrize("claim", FORBIDDEN)
def test_refuted_claims_are_never_said(claim: str) -> None:
    """None of the refuted claims occurs in any sentence."""
    said = [
        (section, code, text)
        for section, texts in catalogue(FALLBACK).items()
        for code, text in texts.items()
        if re.search(FORBIDDEN[claim], text, re.IGNORECASE)
    ]
    assert not said, said


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


def test_rules_name_public_sources() -> None:
    """Each rule says what it rests on, and every rule stands in the advice page."""
    page = (ROOT / "docs" / "advice.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert rule.source, rule.id
        assert f"`{rule.id}`" in page, rule.id
