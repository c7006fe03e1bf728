"""What a page shows while it has nothing: icon, one sentence, one button."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from views.widgets.basics import Heading, Kit, text_label


class EmptyState(QWidget):
    """Says why there is nothing here and what to do.

    Signals:
        action_requested: The button was pressed.
    """

    action_requested = Signal()

    def __init__(self, kit: Kit, icon: str, title: str, text: str = "", action: str = "") -> None:
        """Build it; without ``action`` there is no button."""
        super().__init__()
        column = QVBoxLayout(self)
        column.setSpacing(3 * kit.unit)
        column.addStretch(2)
        picture = kit.icon_label(icon, "muted", 14 * kit.unit)
        column.addWidget(picture, 0, Qt.AlignmentFlag.AlignHCenter)
        self._title = Heading(title, 1.2)
        self._title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._title.setWordWrap(True)
        column.addWidget(self._title)
        self._text = text_label(text, muted=True)
        self._text.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(self._text)
        self.button = kit.button(action, role="primary")
        self.button.setVisible(bool(action))
        self.button.clicked.connect(self.action_requested)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(3)

    def say(self, title: str, text: str = "") -> None:
        """Change the sentences."""
        self._title.setText(title)
        self._text.setText(text)

    @property
    def title(self) -> QLabel:
        """The sentence in large letters."""
        return self._title
