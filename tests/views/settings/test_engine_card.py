"""The engine in use, and the way back to the one from before an upgrade."""

import pytest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem
from tests.fakes.session import FakeSession
from views.main_window import MainWindow
from views.settings.engine_card import EngineCard
from views.settings.page import SettingsPage


@pytest.fixture
def card(window: MainWindow, qtbot: QtBot) -> EngineCard:
    """Return the card of the settings page, filled."""
    return opened(window, qtbot)


def opened(window: MainWindow, qtbot: QtBot) -> EngineCard:
    window.open_page("settings")
    page = window.on_demand.pages["settings"]
    assert isinstance(page, SettingsPage)
    qtbot.waitUntil(lambda: "llama.cpp" in page.engine.text.text())
    return page.engine


def used(session: FakeSession) -> str:
    return session.fake_engines.in_use.value


def answered(card: EngineCard, role: QMessageBox.ButtonRole, qtbot: QtBot) -> None:
    """Press the button of the question that has this role."""
    box = card.ask()
    button = next(b for b in box.buttons() if box.buttonRole(b) is role)
    button.click()
    qtbot.waitUntil(lambda: not card.findChildren(QMessageBox))


def test_one_engine_offers_no_way_back(card: EngineCard) -> None:
    """Where nothing was kept, that is said and no button leads nowhere."""
    assert "No earlier engine" in card.text.text()
    assert card.switch.isHidden()
    assert card.check.isHidden()
    assert card.outdated.isHidden()


def test_going_back_asks_first(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:  # fmt: skip
    """Only a yes switches; profiles of the other engine are named before and after."""
    session.fake_engines.has_previous = True
    card = opened(window, qtbot)
    assert card.outdated.text().startswith("1 stored profile")
    assert "Qwen chat" in card.outdated.text()
    answered(card, QMessageBox.ButtonRole.RejectRole, qtbot)
    assert used(session) == "current"
    answered(card, QMessageBox.ButtonRole.AcceptRole, qtbot)
    qtbot.waitUntil(lambda: "before the last upgrade: llama.cpp previous" in card.text.text())
    assert used(session) == "previous"
    assert "This RigTune" in card.switch.text()
    assert card.check.isHidden()  # an upgrade is judged from this RigTune's engine
    answered(card, QMessageBox.ButtonRole.AcceptRole, qtbot)
    qtbot.waitUntil(lambda: used(session) == "current")


def test_switching_looks_at_the_machine_and_unloads_the_chat(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """Nothing may go on on the other engine unseen."""
    session.fake_engines.has_previous = True
    card = opened(window, qtbot)
    late = window.late
    assert late is not None
    late.chat.send("Hello")
    qtbot.waitUntil(lambda: bool(session.asked) and not late.chat.scene.is_answering)
    card.go_on()
    qtbot.waitUntil(lambda: session.n_unloads == 1)
    qtbot.waitUntil(lambda: not window.jobs.running("start"))


def test_a_running_search_keeps_its_engine(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """What is measured must not change under the search; the user is told to stop it."""
    session.fake_engines.has_previous = True
    card = opened(window, qtbot)
    session.gate.clear()
    assert window.late is not None
    window.late.wizard.start_quick("demo")
    qtbot.waitUntil(lambda: bool(window.jobs.running("search")))
    card.go_on()
    assert "stop it first" in card.banner.text
    assert used(session) == "current"
    session.gate.set()
    qtbot.waitUntil(lambda: not window.jobs.running("search"))


def test_a_switch_that_fails_is_a_sentence(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """A full disk must not look like a switch."""
    session.fake_engines.has_previous = True
    session.fake_engines.problem = EnvironmentProblem("disk_full", "The disk is full.", "Free it.")
    card = opened(window, qtbot)
    card.go_on()
    qtbot.waitUntil(lambda: "The disk is full. Free it." in card.banner.text)
    assert "current" in card.text.text()


def test_profiles_of_another_engine_are_measured_again(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """What the upgrade did to each profile must stay readable when it is over."""
    session.fake_engines.has_previous = True
    card = opened(window, qtbot)
    card.check.click()
    qtbot.waitUntil(lambda: not window.jobs.running("search"))
    assert "Qwen chat: slower than before" in card.banner.text
    assert "was 41.2, now 38.9 tok/s: −6\u00a0%" in card.banner.text


def test_measuring_again_can_be_stopped(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """Stop must end it within a moment and leave no message of work that goes on."""
    session.fake_engines.has_previous = True
    session.gate.clear()
    card = opened(window, qtbot)
    card.check.click()
    qtbot.waitUntil(lambda: "decode" in card.banner.text)
    assert card.check.accessibleName() == "Stop"
    assert not card.switch.isEnabled()
    card.check.click()
    qtbot.waitUntil(lambda: not window.jobs.running("search"))
    qtbot.waitUntil(lambda: card.banner.text == "" and card.switch.isEnabled())
