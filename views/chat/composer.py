"""Where the user writes: Enter sends, Shift+Enter begins a line."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget
from typing_extensions import override

from views.widgets import Kit

LINES = 3


class Composer(QWidget):
    """Field and buttons.

    Signals:
        sent: The text.
        stop_requested: Stop the answer.
    """

    sent = Signal(str)
    stop_requested = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build it ready to write."""
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2 * kit.unit)
        self.field = _Field(self.tr("Message"))
        self.field.setPlaceholderText(self.tr("Write a message. Enter sends it."))
        height = self.field.fontMetrics().lineSpacing() * LINES + 4 * kit.unit
        self.field.setFixedHeight(height)
        self.field.entered.connect(self._on_entered)
        row.addWidget(self.field, 1)
        column = QVBoxLayout()
        self.send = kit.button(self.tr("Send"), "send", "primary")
        self.send.clicked.connect(self._on_entered)
        self.stop = kit.button(self.tr("Stop"), "stop")
        self.stop.setShortcut(Qt.Key.Key_Escape)
        self.stop.clicked.connect(self.stop_requested)
        self.stop.hide()
        column.addWidget(self.send)
        column.addWidget(self.stop)
        self.regenerate = kit.button(self.tr("Regenerate"), "refresh", "quiet")
        column.addWidget(self.regenerate)
        column.addStretch(1)
        row.addLayout(column)

    def set_busy(self, is_busy: bool) -> None:  # noqa: FBT001
        """Offer Stop instead of Send while an answer is being written."""
        self.send.setVisible(not is_busy)
        self.stop.setVisible(is_busy)

    @Slot()
    def _on_entered(self) -> None:
        text = self.field.toPlainText().strip()
        if text and not self.send.isHidden():
            self.field.clear()
            self.sent.emit(text)


class _Field(QPlainTextEdit):
    """A text field that knows Enter."""

    entered = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.entered.emit()
        else:
            super().keyPressEvent(event)
