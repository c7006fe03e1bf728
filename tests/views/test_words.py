"""Every code of the core has a word in the window."""

from app.domain.memory import Verdict
from app.domain.outcome import Outcome
from app.domain.sweep import BUDGETS, BudgetName, Goal, SweepStatus
from app.sweep.plan import _stages
from tests.fakes import window_data as data
from views import words


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


def test_every_stage_of_a_plan_has_a_word() -> None:
    """The plan must not show the search's own names."""
    names = {stage.stage for budget in BUDGETS for stage in _stages(budget)}
    assert names <= set(words._STAGES)


def test_trials_are_told_apart_by_what_differs() -> None:
    """A list of trials must not repeat what they have in common."""
    texts = words.differing_texts([data.settings(28), data.settings(14), data.settings(14, 1024)])
    assert texts == [
        "GPU layers 28, batch 512", "GPU layers 14, batch 512", "GPU layers 14, batch 1024",
    ]  # fmt: skip
