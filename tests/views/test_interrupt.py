"""Ctrl+C closes the window in order."""

import signal
import sys

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from tests.fakes.session import FakeSession
from views.interrupt import Interrupts
from views.main_window import MainWindow


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl+C alone")
def test_interrupt_ends_the_window(window: MainWindow, session: FakeSession, qtbot: QtBot) -> None:
    """An interrupt must close the session and the window, even while nothing happens."""
    owner = QObject()
    interrupts = Interrupts(owner)
    interrupts.interrupted.connect(window.finish)
    signal.raise_signal(signal.SIGINT)
    qtbot.waitUntil(lambda: not window.isVisible())
    assert session.is_closed
    interrupts.close()
