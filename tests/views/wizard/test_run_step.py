"""The step that follows a search: what it says of the time."""

from pytestqt.qtbot import QtBot

from tests.fakes import window_data as data
from views.widgets import Kit
from views.wizard.plan_step import PlanStep
from views.wizard.run_step import RunStep


def test_time_names_only_what_is_still_ahead(kit: Kit, qtbot: QtBot) -> None:
    """A search that has taken 29 s must not be said to take 13 s to 12 min."""
    step = RunStep(kit)
    qtbot.addWidget(step)
    texts = [step._time_text(s, 13.0, 720.0).replace("\u00a0", " ") for s in (5.0, 29.0, 800.0)]
    assert texts == [
        "5.0 s of about 13 s to 12 min",
        "29 s of at most about 12 min",
        "13 min, longer than planned",
    ]


def test_no_axes_before_the_first_trial(kit: Kit, qtbot: QtBot) -> None:
    """Empty axes would show numbers that mean nothing."""
    step = RunStep(kit)
    qtbot.addWidget(step)
    step.begin(data.PLAN)
    step.show()
    qtbot.waitUntil(lambda: not step.plot._is_stale)
    assert step.plot._axes.widget.isHidden()
    step.show_trial_finished(data.TRIALS[0])
    qtbot.waitUntil(step.plot._axes.widget.isVisible)
    step.end()


def test_plan_shows_nothing_before_it_is_made(kit: Kit, qtbot: QtBot) -> None:
    """Names without values would look broken."""
    step = PlanStep(kit)
    qtbot.addWidget(step)
    step.show()
    step.show_waiting()
    assert not step.table.isVisible()
    step.show_plan(data.PLAN)
    assert step.table.isVisible()
