"""One turn of a conversation on screen."""

from PySide6.QtCore import QSize, Qt, QUrl, Slot
from PySide6.QtGui import QGuiApplication, QResizeEvent, QTextCursor, QTextDocument
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QTextBrowser
from typing_extensions import override

from views.theme import scale_font
from views.widgets.basics import Card, Kit, text_label

NO_HTML = QTextDocument.MarkdownFeature(
    QTextDocument.MarkdownFeature.MarkdownDialectGitHub.value
    | QTextDocument.MarkdownFeature.MarkdownNoHTML.value
)


class MessageView(Card):
    """Who speaks, the text, and a way to copy it."""

    def __init__(self, kit: Kit, role: str, text: str = "") -> None:
        """Show ``text`` of ``role`` (``user`` or ``assistant``)."""
        super().__init__(kit, "sunken" if role == "user" else "card")
        self.role = role
        self.column.setContentsMargins(3 * kit.unit, 2 * kit.unit, 2 * kit.unit, 2 * kit.unit)
        self.column.setSpacing(0)
        row = QHBoxLayout()
        name = self.tr("You") if role == "user" else self.tr("Model")
        who = text_label(name, muted=True, wrap=False)
        scale_font(who, 0.92, bold=True)
        row.setSpacing(2 * kit.unit)
        row.addWidget(who)
        self._timing = text_label(muted=True, wrap=False)
        scale_font(self._timing, 0.92)
        row.addWidget(self._timing, 1)
        copy = kit.icon_button(self.tr("Copy this message"), "copy")
        copy.clicked.connect(self._on_copy_clicked)
        row.addWidget(copy)
        self.column.addLayout(row)
        self._body = _Body(name)
        self.column.addWidget(self._body)
        self._text = ""
        if text:
            self.append(text)
            self.finish()

    @property
    def text(self) -> str:
        """The text as it was written."""
        return self._text

    def append(self, text: str) -> None:
        """Add what just arrived, as plain text."""
        self._text += text
        cursor = self._body.textCursor()
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text)

    def finish(self, timing: str = "") -> None:
        """Render the whole text; markdown only now, so that it does not flicker."""
        if self.role != "user":
            self._body.document().setMarkdown(self._text, NO_HTML)
        self._body.fit()
        if timing:
            self._timing.setText("·  " + timing)

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._text)


class _Body(QTextBrowser):
    """Text as high as its content; loads nothing and opens nothing by itself."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setProperty("role", "message")
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(2)
        self.document().documentLayout().documentSizeChanged.connect(self._on_size_changed)

    def fit(self) -> None:
        """Take the height the text needs at this width."""
        self.document().setTextWidth(self.viewport().width())
        self.setFixedHeight(max(int(self.document().size().height()) + 2, 1))

    @Slot()
    def _on_size_changed(self) -> None:
        self.fit()

    @override
    def sizeHint(self) -> QSize:
        return QSize(400, int(self.document().size().height()) + 2)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    @override
    def loadResource(self, kind: int, name: QUrl | str) -> object:
        # A model's answer must not make the window read files or fetch pictures.
        return None
