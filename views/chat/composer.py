"""Where the user writes: Enter sends, Shift+Enter begins a line; files go along."""

from collections.abc import Sequence

from PySide6.QtCore import QMimeData, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget
from typing_extensions import override

from app.chat.attach import Attachment, with_attachments
from views.chat.segments import visible
from views.widgets import Kit
from views.widgets.basics import text_label

LINES = 3
PASTE_CHARS = 16_000
"""A longer paste becomes an attachment: a field is slow with it, and its size should be seen."""
CHARS_PER_TOKEN = 4.0
"""Rough, until the model has counted: English prose."""
_CHIPS_PER_ROW = 2


class Composer(QWidget):
    """Field, attachments and buttons.

    Signals:
        sent: The text, attachments included.
        stop_requested: Stop the answer.
        attach_requested: The user wants to choose files.
        files_dropped: Paths of files dropped on the field.
        changed: Text or attachments are different now.
        edit_ended: The user does not want to edit an earlier message after all.
    """

    sent = Signal(str)
    stop_requested = Signal()
    attach_requested = Signal()
    files_dropped = Signal(list)
    changed = Signal()
    edit_ended = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build it ready to write."""
        super().__init__()
        self._kit = kit
        self.attachments: dict[str, Attachment] = {}
        self._counts: dict[str, int] = {}
        self._n_added = 0
        self._sent: tuple[str, str, dict[str, Attachment]] = ("", "", {})
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(kit.unit)
        outer.addWidget(self._build_editing())
        self._chips = QFrame()
        self._grid = QGridLayout(self._chips)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._chips.hide()
        outer.addWidget(self._chips)
        row = QHBoxLayout()
        row.setSpacing(2 * kit.unit)
        outer.addLayout(row)
        self.field = _Field(self.tr("Message"))
        self.field.setPlaceholderText(self.tr("Write a message. Enter sends it."))
        height = self.field.fontMetrics().lineSpacing() * LINES + 4 * kit.unit
        self.field.setFixedHeight(height)
        self.field.entered.connect(self._on_entered)
        self.field.textChanged.connect(self.changed)
        self.field.pasted.connect(self._on_pasted)
        self.field.files_dropped.connect(self.files_dropped)
        row.addWidget(self.field, 1)
        row.addLayout(self._build_buttons())

    def _build_editing(self) -> QFrame:
        self._editing = QFrame()
        row = QHBoxLayout(self._editing)
        row.setContentsMargins(0, 0, 0, 0)
        text = self.tr("Editing an earlier message: sending it begins another branch.")
        row.addWidget(text_label(text, muted=True), 1)
        self.give_up = self._kit.button(self.tr("Keep as It Was"), "close", "quiet")
        self.give_up.clicked.connect(self.edit_ended)
        row.addWidget(self.give_up)
        self._editing.hide()
        return self._editing

    def _build_buttons(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(self._kit.unit)
        self.send = self._kit.button(self.tr("Send"), "send", "primary")
        self.send.clicked.connect(self._on_entered)
        self.stop = self._kit.button(self.tr("Stop"), "stop")
        self.stop.setShortcut(Qt.Key.Key_Escape)
        self.stop.clicked.connect(self.stop_requested)
        self.stop.hide()
        column.addWidget(self.send)
        column.addWidget(self.stop)
        self.attach = self._kit.button(self.tr("Attach…"), "attach", "quiet")
        self.attach.clicked.connect(self.attach_requested)
        column.addWidget(self.attach)
        column.addStretch(1)
        return column

    def set_busy(self, is_busy: bool) -> None:  # noqa: FBT001
        """Offer Stop instead of Send while an answer is being written."""
        self.send.setVisible(not is_busy)
        self.stop.setVisible(is_busy)

    def set_editing(self, is_editing: bool) -> None:  # noqa: FBT001
        """Say whether an earlier message is edited."""
        self._editing.setVisible(is_editing)

    def write(self, text: str) -> None:
        """Replace what is written."""
        self.field.setPlainText(text)
        self.field.moveCursor(self.field.textCursor().MoveOperation.End)

    def bring_back(self, text: str) -> None:
        """Put a message that was sent back, above what was written since."""
        sent, own, attachments = self._sent
        if sent != text:
            own, attachments = text, {}
        since = self.field.toPlainText()
        self.attachments = attachments | self.attachments
        self._show_chips()
        self.write(f"{own}\n\n{since}" if own and since else own or since)

    def clear(self) -> None:
        """Empty field and attachments."""
        self.field.clear()
        self.attachments.clear()
        self._show_chips()

    def add(self, attachment: Attachment) -> None:
        """Have a file go along with the next message."""
        self._n_added += 1
        self.attachments[f"attachment-{self._n_added}"] = attachment
        self._show_chips()
        self.changed.emit()

    def uncounted(self) -> dict[str, str]:
        """Return attachments whose tokens the model has not counted, by key."""
        known = self._counts
        return {key: a.text for key, a in self.attachments.items() if key not in known}

    def show_counts(self, counts: dict[str, int]) -> None:
        """Show the model's own counts."""
        self._counts |= counts
        self._show_chips()

    def forget_counts(self) -> None:
        """Another model counts otherwise."""
        self._counts = {}
        self._show_chips()

    def chip_texts(self) -> Sequence[str]:
        """Return what is shown of each attachment: name and tokens, ≈ where estimated."""
        return [self._chip_text(key) for key in self.attachments]

    def _chip_text(self, key: str) -> str:
        attachment, n_tok = self.attachments[key], self._counts.get(key)
        about = "" if n_tok is not None else "\u2248\u00a0"
        if n_tok is None:
            n_tok = max(1, round(len(attachment.text) / CHARS_PER_TOKEN))
        return self.tr("{name}: {about}{n} tokens").format(
            name=visible(attachment.name), about=about, n=f"{n_tok:,}"
        )

    def _show_chips(self) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for index, key in enumerate(self.attachments):
            text = self._chip_text(key)
            chip = self._kit.button(text, "close", "quiet")
            chip.setAccessibleName(self.tr("Remove {what}").format(what=text))
            chip.setToolTip(self.tr("Remove"))
            chip.clicked.connect(lambda _checked=False, key=key: self._remove(key))
            self._grid.addWidget(chip, index // _CHIPS_PER_ROW, index % _CHIPS_PER_ROW)
        self._chips.setVisible(bool(self.attachments))

    def _remove(self, key: str) -> None:
        self.attachments.pop(key, None)
        self._show_chips()
        self.field.setFocus()
        self.changed.emit()

    @Slot(str)
    def _on_pasted(self, text: str) -> None:
        self.add(Attachment(name=self.tr("pasted text"), text=text))

    @Slot()
    def _on_entered(self) -> None:
        text = self.field.toPlainText().strip()
        if (text or self.attachments) and not self.send.isHidden():
            sent = with_attachments(text, list(self.attachments.values()))
            self._sent = (sent, text, dict(self.attachments))
            self.clear()
            self.sent.emit(sent)


class _Field(QPlainTextEdit):
    """A text field that knows Enter, long pastes and dropped files."""

    entered = Signal()
    pasted = Signal(str)
    files_dropped = Signal(list)

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

    @override
    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasUrls() or super().canInsertFromMimeData(source)

    @override
    def insertFromMimeData(self, source: QMimeData) -> None:
        files = [url.toLocalFile() for url in source.urls() if url.isLocalFile()]
        if files:
            self.files_dropped.emit(files)
        elif source.hasText() and len(source.text()) > PASTE_CHARS:
            self.pasted.emit(source.text())
        else:
            super().insertFromMimeData(source)
