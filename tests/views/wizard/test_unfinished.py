"""The last search has not reached its end: the window says so and goes on with it."""

from pytestqt.qtbot import QtBot

from tests.fakes import window_data as data
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.late_pages import LatePages
from views.main_window import MainWindow
from views.wizard.page import WizardPage

COMPLETE = 2


def opened(window: MainWindow, qtbot: QtBot) -> WizardPage:
    """Return the wizard of ``window``, shown, once it has looked."""
    assert window.late is not None
    window.open_page("tune")
    qtbot.waitUntil(lambda: not window.jobs.running())
    return window.late.wizard


def test_a_complete_search_is_not_mentioned(
    window: MainWindow, late: LatePages, qtbot: QtBot
) -> None:
    """There is nothing to go on with."""
    assert opened(window, qtbot).model_step.banner.text == ""


def test_one_press_goes_on(open_window: OpenWindow, session: FakeSession, qtbot: QtBot) -> None:
    """What was asked is asked again, and what was measured before is in the curve at once."""
    session.deleted.add(COMPLETE)
    session.gate.clear()
    wizard = opened(open_window(session), qtbot)
    banner = wizard.model_step.banner
    assert data.SPEC.name in banner.text
    banner._action.click()
    qtbot.waitUntil(lambda: wizard.step == "run")
    earlier = len(session.sweep(1).trials)
    qtbot.waitUntil(lambda: len(wizard.run_step._trials) >= earlier)
    assert session.requests == [(data.SPEC.path, session.sweeps()[0].request)]
    assert banner.text == ""
    session.gate.set()
    qtbot.waitUntil(lambda: wizard.step == "result")


def test_what_has_changed_is_said_first(
    open_window: OpenWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """After a driver's update it would be another search: the user decides, having read why."""
    session.deleted.add(COMPLETE)
    session.resume_note = "changed_driver"
    wizard = opened(open_window(session), qtbot)
    wizard.model_step.banner._action.click()
    qtbot.waitUntil(wizard.plan_step.start.isEnabled)
    assert wizard.step == "plan"
    assert "driver has changed" in wizard.plan_step._notes.text()
    wizard.plan_step.start.click()
    qtbot.waitUntil(lambda: wizard.step == "result")
    assert len(wizard.run_step._trials) == len(data.TRIALS), "earlier ones are of another driver"


def test_another_search_takes_the_offer_back(
    open_window: OpenWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """Once a search begins nothing more is offered."""
    session.deleted.add(COMPLETE)
    wizard = opened(open_window(session), qtbot)
    wizard.model_step.quick.click()
    assert wizard.model_step.banner.text == ""
    qtbot.waitUntil(lambda: wizard.step == "result")
