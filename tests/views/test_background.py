"""A search goes on without its window: in the tray, or minimised where there is none."""

import pytest
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton, QSystemTrayIcon
from pytestqt.qtbot import QtBot

from tests.fakes.session import FakeSession
from views.late_pages import LatePages
from views.main_window import MainWindow


@pytest.fixture
def measuring(
    window: MainWindow, late: LatePages, session: FakeSession, qtbot: QtBot
) -> MainWindow:
    """Return a window in the middle of a search."""
    session.gate.clear()
    late.wizard.start_quick("demo")
    qtbot.waitUntil(lambda: len(late.wizard.run_step._trials) == session.hold_at)
    return window


def press(window: MainWindow, text: str) -> None:
    """Close the window and answer the question."""
    window.close()
    boxes = [b for b in window.findChildren(QMessageBox) if b.isVisible()]
    found = [b for box in boxes for b in box.findChildren(QPushButton) if b.text() == text]
    assert found, [b.text() for box in boxes for b in box.findChildren(QPushButton)]
    found[0].click()


def test_without_tray_the_window_is_minimised(
    measuring: MainWindow, session: FakeSession, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    """Nobody would find a hidden window again: it must stay where windows are found."""
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: False)
    press(measuring, "Minimise and Go On")
    assert measuring.isMinimized()
    assert measuring.jobs.running("search")
    session.gate.set()
    qtbot.waitUntil(lambda: not measuring.jobs.running("search"))
    measuring.showNormal()


def test_with_tray_the_window_goes_and_comes_back(
    measuring: MainWindow, session: FakeSession, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    """The search must end in the background, and the result must be there on return."""
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)
    press(measuring, "Go On in the Background")
    assert not measuring.isVisible()
    assert measuring.background.is_on
    assert not QApplication.quitOnLastWindowClosed()
    session.gate.set()
    qtbot.waitUntil(lambda: not measuring.jobs.running("search"))
    measuring.background.come_back()
    assert measuring.isVisible()
    assert QApplication.quitOnLastWindowClosed()
    assert measuring.late is not None
    assert measuring.late.wizard.step == "result"


def test_stop_from_the_tray_ends_in_order(
    measuring: MainWindow, session: FakeSession, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    """Ending from the tray must stop the search, keep it and close the session."""
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)
    press(measuring, "Go On in the Background")
    measuring.background._on_stop()
    qtbot.waitUntil(lambda: session.is_closed and not measuring.isVisible())
