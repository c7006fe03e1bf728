"""The guard itself: it must be able to fail."""

import threading
from pathlib import Path

from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from tests.fakes.gui_guard import MAX_CPU_MS, GuiGuard


def busy() -> None:
    """Use the processor for longer than the guard allows."""
    import time

    end = time.thread_time() + 1.2 * MAX_CPU_MS / 1000
    while time.thread_time() < end:
        pass


def test_long_event_is_a_fault(guard: GuiGuard, qtbot: QtBot) -> None:
    """An event that computes too long must be reported."""
    guard.is_armed = True
    QTimer.singleShot(0, busy)
    qtbot.waitUntil(lambda: bool(guard.faults))
    guard.faults.clear()


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
