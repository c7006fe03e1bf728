"""The guard itself: it must be able to fail."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from tests.fakes.gui_guard import MAX_CPU_MS, GuardedApplication, GuiGuard

QUIET, BUSY = 1.0, 3.0
Handle = Callable[[float], GuiGuard]


def busy() -> None:
    """Use twice the processor time that the guard allows on a quiet core."""
    end = time.thread_time() + 2 * MAX_CPU_MS / 1000
    while time.thread_time() < end:
        pass


@pytest.fixture
def handle(qapp: GuardedApplication, qtbot: QtBot) -> Handle:
    """Return what handles a long event under a guard whose core is so many times slower."""

    def handled(slowdown: float) -> GuiGuard:
        qapp.guard = own = GuiGuard(lambda: slowdown)
        own.is_armed = True
        QTimer.singleShot(0, busy)
        qtbot.waitUntil(lambda: bool(own.longest) and own.longest[0][0] > MAX_CPU_MS)
        own.is_armed, qapp.guard = False, None
        return own

    return handled


def test_long_event_is_a_fault(handle: Handle) -> None:
    """An event that computes too long must be reported."""
    (fault,) = handle(QUIET).faults
    assert "MetaCall" in fault or "Timer" in fault


def test_slow_core_is_no_fault(handle: Handle) -> None:
    """What takes long because the core is slow at that moment must not be reported."""
    assert handle(BUSY).faults == []


def test_file_is_a_fault_on_the_gui_thread_only(guard: GuiGuard, tmp_path: Path) -> None:
    """Opening a file must be reported on the GUI thread and allowed on another."""
    guard.is_armed = True
    thread = threading.Thread(target=lambda: (tmp_path / "a").write_text("x"))
    thread.start()
    thread.join()
    assert guard.faults == []
    (tmp_path / "a").read_text()
    assert len(guard.faults) == 1
    guard.faults.clear()
