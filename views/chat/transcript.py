"""The turns of a conversation, the newest in sight unless the user reads further up."""

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from views.chat.message import MessageView
from views.page import scrolling
from views.widgets import Kit


class Transcript(QWidget):
    """A column of messages."""

    def __init__(self, kit: Kit) -> None:
        """Start empty."""
        super().__init__()
        self._kit = kit
        self._follows = True
        content = QWidget()
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(0, 0, kit.unit, 0)
        self._column.setSpacing(2 * kit.unit)
        self._column.addStretch(1)
        self._area: QScrollArea = scrolling(content)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._area)
        self.messages: list[MessageView] = []
        bar = self._area.verticalScrollBar()
        bar.rangeChanged.connect(self._on_range_changed)
        bar.valueChanged.connect(self._on_value_changed)

    def add(self, role: str, text: str = "") -> MessageView:
        """Add a turn at the end and return it."""
        view = MessageView(self._kit, role, text)
        self.messages.append(view)
        self._column.insertWidget(self._column.count() - 1, view)
        self._follows = True
        return view

    def drop_last(self) -> None:
        """Take the last turn away."""
        self.messages.pop().deleteLater()

    def clear(self) -> None:
        """Take every turn away."""
        while self.messages:
            self.drop_last()

    @Slot()
    def _on_range_changed(self) -> None:
        if self._follows:
            bar = self._area.verticalScrollBar()
            bar.setValue(bar.maximum())

    @Slot(int)
    def _on_value_changed(self, value: int) -> None:
        self._follows = value >= self._area.verticalScrollBar().maximum() - 4
