"""The Qt binding itself."""

import sys

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot


def test_void_call_keeps_the_count_of_none(qtbot: QtBot) -> None:
    """A call without result must not eat references to None.

    PySide6 6.12.0 does on Python 3.11, where None is counted: the program dies after minutes.
    """
    label = QLabel()
    qtbot.addWidget(label)
    before = sys.getrefcount(None)
    for _ in range(500):
        label.setText("x")
    assert sys.getrefcount(None) > before - 250
