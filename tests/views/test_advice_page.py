"""Advice: findings with their sentences, and nothing where there is nothing."""

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.domain.errors import EnvironmentProblem
from app.domain.finding import Finding, Severity
from tests.fakes import situations
from tests.fakes.session import FakeSession
from views.advice_page import AdvicePage, sentence
from views.main_window import MainWindow
from views.widgets import Card, Kit


def test_findings_are_shown_with_their_remedy(kit: Kit, qtbot: QtBot) -> None:
    """Each finding must have a card; the empty state must go."""
    page = AdvicePage(kit)
    qtbot.addWidget(page)
    page.show_findings(
        [Finding(id="on_battery", severity=Severity.WARNING, evidence={"battery_pct": 40.0})]
    )
    assert len(page._list.findChildren(Card)) == 1
    assert page._empty.isHidden()
    said = " ".join(label.text() for label in page._list.findChildren(QLabel))
    assert "Plug in before measuring" in said
    assert "To see that it worked: rigtune probe shows mains power" in said
    page.show_findings([])
    assert not page._empty.isHidden()


def test_unknown_finding_is_still_readable() -> None:
    """A finding without a text must not break the page."""
    assert sentence("finding", Finding(id="odd_thing", severity=Severity.HINT)) == "odd thing"


def test_devices_and_time_limits_are_shown_without_any_finding(kit: Kit, qtbot: QtBot) -> None:
    """What each backend would take and after how long Windows resets a driver, with the advice."""
    page = AdvicePage(kit)
    qtbot.addWidget(page)
    page.show_findings([])
    page.show_facts(situations.on_windows().machine)
    said = " ".join(label.text() for label in page._list.findChildren(QLabel))
    assert "CUDA on its own would take CUDA0" in said
    assert "2\u00a0s (TdrDelay)" in said
    assert "only reads them" in said
    assert page._empty.isHidden()


def advice_of(window: MainWindow) -> AdvicePage:
    window.open_page("advice")
    page = window.on_demand.pages["advice"]
    assert isinstance(page, AdvicePage)
    return page


def said_by(page: AdvicePage) -> str:
    shown = (label for label in page._list.findChildren(QLabel) if label.isVisible())
    return " ".join(label.text() for label in shown)


def test_each_device_is_tested_on_request(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """Every step shows as it ends, and stays when the machine is looked at again."""
    page = advice_of(window)
    session.gate.clear()
    page.test.click()
    qtbot.waitUntil(lambda: "The engine starts." in said_by(page))
    assert "CUDA0 failed" not in said_by(page)
    assert "Stop" in page.test.text()
    session.gate.set()
    qtbot.waitUntil(lambda: "Update the driver." in said_by(page))
    qtbot.waitUntil(lambda: "Test" in page.test.text() and "Stop" not in page.test.text())
    page.show_findings([])
    assert "A trial on CUDA0 failed." in said_by(page)
    page.test.click()
    qtbot.waitUntil(lambda: not window.jobs.running("doctor"))
    assert said_by(page).count("The engine starts.") == 1


def test_stopped_test_ends_after_its_present_step(
    window: MainWindow, session: FakeSession, qtbot: QtBot
) -> None:
    """A second press stops it; what ended before stays."""
    page = advice_of(window)
    session.gate.clear()
    page.test.click()
    qtbot.waitUntil(lambda: "The engine starts." in said_by(page))
    page.test.click()
    session.gate.set()
    qtbot.waitUntil(lambda: not window.jobs.running("doctor"))
    assert "The engine starts." in said_by(page)
    assert "Stop" not in page.test.text()


def test_devices_in_use_are_said(window: MainWindow, session: FakeSession, qtbot: QtBot) -> None:
    """While a search or chat holds the devices the test does not begin, and says why."""
    session.problem = EnvironmentProblem("busy", "The devices are in use.", "Wait for it.")
    page = advice_of(window)
    page.test.click()
    qtbot.waitUntil(lambda: "The devices are in use." in said_by(page))
    qtbot.waitUntil(lambda: not window.jobs.running("doctor"))
