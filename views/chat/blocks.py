"""The widgets a transcript is drawn with: text, code, the line above a turn, folded reasoning."""

from collections.abc import Callable
from math import ceil

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import QFontDatabase, QFontMetrics, QGuiApplication, QTextCursor, QTextDocument
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QTextBrowser,
    QVBoxLayout,
)
from typing_extensions import override

from views.chat.highlight import Highlighter
from views.chat.segments import readable_math, visible
from views.theme import scale_font
from views.widgets import Kit
from views.widgets.basics import text_label

NO_HTML = QTextDocument.MarkdownFeature(
    QTextDocument.MarkdownFeature.MarkdownDialectGitHub.value
    | QTextDocument.MarkdownFeature.MarkdownNoHTML.value
)


class TextBlock(QTextBrowser):
    """Running text; loads nothing and opens nothing by itself.

    Attributes:
        shown: The text it shows, as it was given.
    """

    def __init__(self, kit: Kit, name: str, *, muted: bool = False) -> None:
        """Build it empty; ``name`` says whose words these are."""
        super().__init__()
        self.setProperty("role", "message")
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setTabChangesFocus(True)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(2)
        self.document().setUndoRedoEnabled(False)
        self.shown: str | None = None
        if muted:
            palette = self.palette()
            palette.setColor(palette.ColorRole.Text, kit.theme.color("muted"))
            self.setPalette(palette)

    def show_text(self, text: str, *, markdown: bool) -> None:
        """Show ``text``, rendered or as it is."""
        if markdown:
            self.document().setMarkdown(readable_math(visible(text)), NO_HTML)
        else:
            self.setPlainText(visible(text))

    def append_text(self, text: str) -> None:
        """Add ``text`` as it is."""
        _append(self, visible(text))

    def fit(self, width: int) -> int:
        """Return the height the text needs at this width, pixels."""
        self.document().setTextWidth(width)
        return ceil(self.document().size().height()) + 1

    @override
    def loadResource(self, kind: int, name: QUrl | str) -> object:
        # A model's answer must not make the window read files or fetch pictures.
        return None


class CodeBlock(QFrame):
    """Code (or a formula) with what it is and a way to copy it.

    Attributes:
        shown: The text it shows, as it was given.
    """

    def __init__(self, kit: Kit, language: str, *, is_first: bool, copy: Callable[[], str]) -> None:
        """Build it empty.

        Args:
            kit: Look and icons.
            language: What the fence names; may be empty.
            is_first: Whether this is the first part of the block, which has the copy button.
            copy: Returns the text of the whole block.
        """
        super().__init__()
        self.setProperty("role", "code")
        self._copy = copy
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(2 * kit.unit, kit.unit if is_first else 0, 2 * kit.unit, kit.unit)
        column.setSpacing(0)
        self.button: QPushButton | None = None
        if is_first:
            row = QHBoxLayout()
            label = text_label(visible(language) or self.tr("code"), muted=True, wrap=False)
            scale_font(label, 0.92)
            row.addWidget(label, 1)
            self.button = kit.icon_button(self.tr("Copy this code"), "copy")
            self.button.clicked.connect(self._on_copy_clicked)
            row.addWidget(self.button)
            column.addLayout(row)
        self.text = QPlainTextEdit()
        self.text.setProperty("role", "code")
        self.text.setReadOnly(True)
        self.text.setUndoRedoEnabled(False)
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.text.setTabChangesFocus(True)
        self.text.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.text.setAccessibleName(self.tr("Code"))
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPointSizeF(self.font().pointSizeF())
        self.text.setFont(font)
        self.text.setTabStopDistance(4 * QFontMetrics(font).averageCharWidth())
        self.text.document().setDocumentMargin(2)
        column.addWidget(self.text)
        self._lighter = Highlighter(self.text.document(), language, kit.theme.colors)
        self._widest = 0
        self.shown: str | None = None

    def show_text(self, text: str) -> None:
        """Show ``text``."""
        self.text.setPlainText(visible(text))
        self._widest = 0
        self._measure(text)

    def append_text(self, text: str) -> None:
        """Add ``text``."""
        _append(self.text, visible(text))
        self._measure(self.text.document().lastBlock().text())

    def fit(self, width: int) -> int:
        """Return the height the code needs at this width, pixels."""
        margins = self._column.contentsMargins()
        metrics = QFontMetrics(self.text.font())
        high = self.text.blockCount() * metrics.lineSpacing() + 6
        if self._widest > width - margins.left() - margins.right() - 8:
            high += self.text.horizontalScrollBar().sizeHint().height()
        # Asked for now: before it is on screen the button has not its style yet.
        head = self.button.sizeHint().height() if self.button is not None else 0
        return head + margins.top() + margins.bottom() + high

    def _measure(self, text: str) -> None:
        metrics = QFontMetrics(self.text.font())
        longest = max(text.split("\n"), key=len)
        self._widest = max(self._widest, metrics.horizontalAdvance(longest))

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._copy())


class Fold(QFrame):
    """The line that unfolds what the model thought.

    Signals:
        toggled: Whether it is unfolded now.
    """

    toggled = Signal(bool)

    def __init__(self, kit: Kit, *, is_open: bool) -> None:
        """Build it."""
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        self.button = kit.button("", role="quiet")
        self.button.setCheckable(True)
        self.button.setChecked(is_open)
        self.button.toggled.connect(self.toggled)
        row.addWidget(self.button)
        row.addStretch(1)

    def say(self, n_words: int, *, is_thinking: bool) -> None:
        """Show how much there is."""
        count = self.tr("{n} words").format(n=n_words)
        what = self.tr("Thinking…") if is_thinking else self.tr("Reasoning")
        mark = "\u25be" if self.button.isChecked() else "\u25b8"
        self.button.setText(f"{mark} {what} · {count}")
        self.button.setAccessibleName(f"{what}, {count}")

    def fit(self, _width: int) -> int:
        """Return its height, pixels."""
        return self.sizeHint().height()


def _append(edit: QTextBrowser | QPlainTextEdit, text: str) -> None:
    """Add ``text``, and leave what is selected as it is: its end would move with the text's."""
    own, cursor = edit.textCursor(), edit.textCursor()
    anchor, position = own.anchor(), own.position()
    cursor.movePosition(QTextCursor.MoveOperation.End)
    cursor.insertText(text)
    if anchor != position:
        own.setPosition(anchor)
        own.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
        edit.setTextCursor(own)
