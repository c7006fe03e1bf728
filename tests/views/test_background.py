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
    assert "has ended: complete" in measuring.windowTitle()
    measuring.showNormal()
    assert measuring.windowTitle() == "RigTune"


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


@pytest.mark.parametrize("has_tray", [True, False])
def test_a_search_that_waits_says_so(
    measuring: MainWindow, late: LatePages, session: FakeSession, has_tray: bool,
    monkeypatch: pytest.MonkeyPatch, qtbot: QtBot,
) -> None:  # fmt: skip
    """A search that nobody sees must not wait for hours unheard: on battery, say."""
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: has_tray)
    session.pause_at = session.hold_at + 1
    button = "Go On in the Background" if has_tray else "Minimise and Go On"
    press(measuring, button)
    session.gate.set()
    qtbot.waitUntil(late.wizard.run_step.go_on.isEnabled)
    qtbot.waitUntil(lambda: not late.wizard.run_step._paused.isHidden())
    tray = measuring.findChild(QSystemTrayIcon)
    assert (tray is not None) is has_tray
    told = tray.toolTip() if tray is not None else measuring.windowTitle()
    assert "waits for you" in told
    measuring.background.come_back()
    late.wizard.run_step.go_on.click()
    qtbot.waitUntil(lambda: not measuring.jobs.running("search"))


def test_a_search_that_fails_in_the_background_says_so(
    measuring: MainWindow, session: FakeSession, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    """A failure is an end, too; the tray must not say that the search goes on."""
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)
    press(measuring, "Go On in the Background")
    session.crash = RuntimeError("made up")
    session.gate.set()
    qtbot.waitUntil(lambda: not measuring.jobs.running("search"))
    tray = measuring.findChild(QSystemTrayIcon)
    assert tray is not None
    assert "made up" in tray.toolTip()
    measuring.background.come_back()


def test_a_tray_that_goes_away_brings_the_window_back(
    measuring: MainWindow, session: FakeSession, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    """When the desktop's panel has crashed, a hidden window could not be found any more."""
    has_tray = [True]
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: has_tray[0])
    press(measuring, "Go On in the Background")
    has_tray[0] = False
    session.gate.set()
    qtbot.waitUntil(lambda: not measuring.jobs.running("search"))
    assert measuring.isVisible()


def test_stop_from_the_tray_ends_in_order(
    measuring: MainWindow, session: FakeSession, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    """Ending from the tray must stop the search, keep it and close the session."""
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)
    press(measuring, "Go On in the Background")
    measuring.background._on_stop()
    qtbot.waitUntil(lambda: session.is_closed and not measuring.isVisible())
