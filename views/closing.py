"""Asks before a running search is ended by closing the window."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget


def ask_before_closing(window: QWidget, finish: Callable[[], None]) -> QMessageBox:
    """Open the question; ``finish`` is called when the user wants to close.

    The dialog does not block: measuring and drawing go on behind it.
    """
    box = QMessageBox(window)
    box.setIcon(QMessageBox.Icon.Question)
    box.setWindowTitle(box.tr("A search is running"))
    box.setText(box.tr("A search is running. Stop it and close RigTune?"))
    box.setInformativeText(
        box.tr("What was measured is kept, and the next search can go on from there.")
    )
    close = box.addButton(box.tr("Stop and Close"), QMessageBox.ButtonRole.AcceptRole)
    stay = box.addButton(box.tr("Keep Searching"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(stay)
    box.setEscapeButton(stay)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    close.clicked.connect(finish)
    box.open()
    return box
