"""Work in slices."""

from functools import partial

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from views.slices import Slices


def test_calls_keep_their_order(qtbot: QtBot) -> None:
    """Everything must be called once, in order, in later turns."""
    seen: list[int] = []
    parent = QObject()
    slices = Slices(parent)
    slices.add(partial(seen.append, n) for n in range(5))
    slices.add([partial(seen.append, 5)])
    assert seen == []
    qtbot.waitUntil(lambda: not slices._turn.isActive())
    assert seen == [0, 1, 2, 3, 4, 5]
    assert not slices.is_busy


def test_cleared_work_is_not_done(qtbot: QtBot) -> None:
    """What a newer change overtakes must not run any more."""
    seen: list[int] = []
    parent = QObject()
    slices = Slices(parent)
    slices.add([partial(seen.append, 1)])
    slices.clear()
    slices.add([partial(seen.append, 2)])
    slices.finish()
    assert seen == [2]
