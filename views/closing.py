"""Asks before a running search is ended by closing the window."""

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QMessageBox, QWidget

translate = QCoreApplication.translate


def ask_before_closing(window: QWidget, finish: Callable[[], None]) -> QMessageBox:
    """Open the question; ``finish`` is called when the user wants to close.

    The dialog does not block: measuring and drawing go on behind it.
    """
    box = QMessageBox(window)
    box.setIcon(QMessageBox.Icon.Question)
    box.setWindowTitle(translate("Closing", "A search is running"))
    box.setText(translate("Closing", "A search is running. Stop it and close RigTune?"))
    box.setInformativeText(
        translate("Closing", "What was measured is kept, and the next search can go on from there.")
    )
    close = box.addButton(translate("Closing", "Stop and Close"), QMessageBox.ButtonRole.AcceptRole)
    stay = box.addButton(translate("Closing", "Keep Searching"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(stay)
    box.setEscapeButton(stay)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    close.clicked.connect(finish)
    box.open()
    return box
