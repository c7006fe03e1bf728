"""Every code of the core has a word in the window."""

import re
import sys
import time
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QApplication

from app.domain.memory import Verdict
from app.domain.outcome import Outcome
from app.domain.settings import SETTINGS, SplitMode
from app.domain.sweep import BUDGETS, BudgetName, Goal, SweepStatus
from app.sweep.plan import _stages
from tests.fakes import window_data as data
from views import words
from views.language import Language, Translations

ROOT = Path(words.__file__).resolve().parents[1]
CHAT_ONLY = {"template", "wait"}
NEVER_IN_A_SEARCH = {"doctor", "bench", "draft"}
"""Stages of commands in a terminal."""


def test_every_code_has_a_word() -> None:
    """No enumeration of the core may reach the screen as a bare code."""
    for code in Goal:
        assert words.goal_label(code)
        assert words.goal_text(code)
        assert words.goal_icon(code)
    assert all(words.outcome_label(code) for code in Outcome)
    assert all(words.status_label(code) and words.status_tone(code) for code in SweepStatus)
    assert all(words.budget_label(code) for code in BudgetName)
    assert all(words.verdict_label(code) and words.VERDICT_TONES[code] for code in Verdict)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows reads no TZ")
def test_times_are_of_this_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept in UTC, a time must be shown as the clock on the wall has it."""
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert words.local_time("2026-01-12T18:20:09Z") == "2026-01-13 02:20"
        shown = words.local_time("2026-01-12T18:20:09.5+00:00", to_the_second=True)
        assert shown == "2026-01-13 02:20:09"
        assert words.local_time("long ago") == "long ago"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_every_stage_of_a_plan_has_a_word() -> None:
    """The plan must not show the search's own names."""
    names = {stage.stage for budget in BUDGETS for stage in _stages(budget)}
    assert names <= set(words._STAGES)


def emitted(pattern: str, *folders: str) -> set[str]:
    """Return the names that the core's own source gives to what it reports."""
    files = [path for folder in folders for path in (ROOT / "app" / folder).rglob("*.py")]
    return {name for path in files for name in re.findall(pattern, path.read_text("utf-8"))}


def test_every_setting_has_a_word() -> None:
    """A result must not show llama.cpp's name alone."""
    assert {info.name for info in SETTINGS} <= set(words._KNOBS)


def test_every_phase_of_a_trial_has_a_word() -> None:
    """What a trial reports must not show as a bare code."""
    phases = emitted(
        r'(?:phase(?:: str)?\s*=\s*|enter\(|_alive\()"(\w+)"', "rig", "session", "worker"
    )
    assert {"start", "cool_down", "load", "context", "warm_up", "prefill", "decode"} <= phases
    assert phases - CHAT_ONLY - {"measure", "password"} <= set(words._PHASES)


def test_every_stage_of_a_trial_has_a_word() -> None:
    """Neither must what the search, or who else measures, calls a trial's stage."""
    pattern = r'(?:\.ask\(\s*|\.measure\(\s*|stage\s*=\s*|_STAGE\s*=\s*)"(\w+)"'
    stages = emitted(pattern, "sweep", "session")
    assert {"probe", "memory", "soak", "layers", "finals"} <= stages
    assert stages - NEVER_IN_A_SEARCH <= set(words._STAGES)


@pytest.mark.parametrize("code", [*words._PHASES, *words._STAGES])
def test_phases_and_stages_are_said_in_both_languages(code: str, qapp: QApplication) -> None:
    """A label must be there in Chinese, too."""
    label = words.phase_label if code in words._PHASES else words.stage_label
    translations = Translations(qapp, Language.ENGLISH)
    english = label(code)
    translations.choose(Language.CHINESE)
    chinese = label(code)
    translations.choose(Language.ENGLISH)
    assert english
    assert chinese != english or code == "flash_attn"  # a name, the same everywhere


def test_trials_are_told_apart_by_what_differs() -> None:
    """A list of trials must not repeat what they have in common."""
    texts = words.differing_texts([data.settings(28), data.settings(14), data.settings(14, 1024)])
    assert texts == [
        "GPU layers 28, batch 512", "GPU layers 14, batch 512", "GPU layers 14, batch 1024",
    ]  # fmt: skip


def test_another_split_mode_is_among_the_settings_that_matter() -> None:
    """A result on request must not look like the usual one, nor like its rival."""
    by_tensor = msgspec.structs.replace(data.settings(28), split_mode=SplitMode.TENSOR)
    assert (
        words.settings_text(by_tensor)
        == f"{words.settings_text(data.settings(28))}, split mode tensor"
    )
    assert words.differing_texts([data.settings(28), by_tensor])[1].endswith("split mode tensor")


def test_sentences_follow_each_other_as_the_language_has_it(qapp: QApplication) -> None:
    """English puts a space between two sentences, Chinese none; empty ones leave no gap."""
    translations = Translations(qapp, Language.ENGLISH)
    assert words.paragraph(["One.", "", "Two."]) == "One. Two."
    translations.choose(Language.CHINESE)
    assert words.paragraph(["一。", "", "二。"]) == "一。二。"
    translations.choose(Language.ENGLISH)
