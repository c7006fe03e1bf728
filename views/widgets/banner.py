"""A message that stays in the page until it is dealt with; never a dialog."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QAccessible, QAccessibleEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from app.domain.errors import ErrorInfo
from views.widgets.basics import Kit, set_tone, text_label
from views.widgets.pill import TONES
from views.words import error_text


class Banner(QFrame):
    """Icon, sentence, at most one action, and a way to close it. Hidden until ``say``.

    Signals:
        action_requested: The action button was pressed.
    """

    action_requested = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build it hidden."""
        super().__init__()
        self._kit = kit
        self.setProperty("role", "banner")
        row = QHBoxLayout(self)
        row.setContentsMargins(3 * kit.unit, 2 * kit.unit, 2 * kit.unit, 2 * kit.unit)
        row.setSpacing(2 * kit.unit)
        self._icon = QLabel()
        self._text = text_label()
        self._action = kit.button("")
        self._close = kit.icon_button(self.tr("Close message"), "close")
        row.addWidget(self._icon)
        row.addWidget(self._text, 1)
        row.addWidget(self._action)
        row.addWidget(self._close)
        self._action.clicked.connect(self.action_requested)
        self._close.clicked.connect(self._on_close_clicked)
        self.hide()

    @property
    def text(self) -> str:
        """What it says, empty when hidden."""
        return "" if self.isHidden() else self._text.text()

    def say(self, text: str, tone: str = "info", action: str = "") -> None:
        """Show ``text``; ``action`` labels the button, if there is something to do."""
        if (self.text, self._action.text(), self.property("tone")) == (text, action, tone):
            return  # progress comes often: the same words are not read out again
        icon, color = TONES[tone]
        self._kit.icons.bind(self._icon, icon, color)
        self._text.setText(text)
        self._action.setText(action)
        self._action.setAccessibleName(action)
        self._action.setVisible(bool(action))
        self.setAccessibleName(text)
        set_tone(self, tone)
        self.show()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def show_error(self, error: ErrorInfo, action: str = "") -> None:
        """Show what went wrong and what to do about it."""
        self.say(error_text(error), "bad", action)

    @Slot()
    def _on_close_clicked(self) -> None:
        self.hide()
