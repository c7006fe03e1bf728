"""Advice: findings with their sentences, and nothing where there is nothing."""

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.domain.finding import Finding, Severity
from tests.fakes import situations
from views.advice_page import AdvicePage, sentence
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
    assert "2 s (TdrDelay)" in said
    assert "only reads them" in said
    assert page._empty.isHidden()
