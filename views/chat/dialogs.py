"""The questions of the chat page. None of them holds the window up."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget


def ask_to_delete(parent: QWidget, question: str, on_yes: Callable[[], object]) -> None:
    """Ask ``question``; the safe answer is the default."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Question)
    box.setText(question)
    box.setInformativeText(
        QCoreApplication.translate(
            "ChatDialogs", "The text is overwritten on the disk; it cannot come back."
        )
    )
    button = QMessageBox.StandardButton
    box.setStandardButtons(button.Cancel | button.Discard)
    yes = box.button(button.Discard)
    yes.setText(QCoreApplication.translate("ChatDialogs", "Delete"))
    yes.clicked.connect(on_yes)
    box.setDefaultButton(button.Cancel)
    box.finished.connect(box.deleteLater)
    box.open()


def ask_where_to_export(parent: QWidget, on_chosen: Callable[[str], object]) -> None:
    """Ask for the file a conversation is written to."""
    dialog = QFileDialog(
        parent, QCoreApplication.translate("ChatDialogs", "Export conversation")
    )  # fmt: skip
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setNameFilters(
        [
            QCoreApplication.translate("ChatDialogs", "Markdown (*.md)"),
            QCoreApplication.translate("ChatDialogs", "JSON, all branches (*.json)"),
        ]
    )
    dialog.setDefaultSuffix("md")
    dialog.fileSelected.connect(on_chosen)
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


def ask_for_files(parent: QWidget, on_chosen: Callable[[Sequence[str]], object]) -> None:
    """Ask for text files to attach."""
    dialog = QFileDialog(parent, QCoreApplication.translate("ChatDialogs", "Attach text files"))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.filesSelected.connect(on_chosen)
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()
