"""The stored conversations: search, open, rename, export, delete."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QInputDialog,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.domain.record import Record
from app.store import Store
from views.bridge import Jobs, Latest
from views.chat.dialogs import ask_to_delete
from views.chat.segments import visible
from views.port import SessionPort
from views.widgets import Kit, text_label
from views.words import local_time

MAX_SHOWN = 200
SNIPPET_CHARS = 60
WIDE_CHARS = 30
_ENTRY = Qt.ItemDataRole.UserRole


class Entry(Record, frozen=True, kw_only=True):
    """A conversation in the list; with the turn that was found, when something is looked for."""

    conversation_id: int
    title: str
    when: str
    snippet: str = ""
    message_id: int | None = None


def find(store: Store, text: str) -> tuple[Entry, ...]:
    """Return conversations, the last used first; those that contain every word of ``text``."""
    words = [word.casefold() for word in text.split()]
    hits = {hit.conversation_id: hit for hit in reversed(store.search_messages(text))}
    found = []
    for kept in store.conversations():
        hit = hits.get(kept.id)
        title = kept.title.casefold()
        if words and hit is None and not all(word in title for word in words):
            continue
        found.append(
            Entry(
                conversation_id=kept.id, title=kept.title,
                when=local_time(kept.updated_utc),
                snippet="" if hit is None else _around(hit.message.content, words),
                message_id=None if hit is None else hit.message.id,
            )
        )  # fmt: skip
    return tuple(found[:MAX_SHOWN])


class History(QWidget):
    """A list with a search field.

    Signals:
        opened: ``Entry`` to bring into view.
        removed: Id of a conversation that was deleted.
        export_requested: ``Entry`` to write to a file.
        failed: ``ErrorInfo``.
    """

    opened = Signal(object)
    removed = Signal(int)
    export_requested = Signal(object)
    failed = Signal(object)

    def __init__(self, kit: Kit, session: SessionPort, jobs: Jobs) -> None:
        """Build it empty; ``refresh`` fills it."""
        super().__init__()
        self._session = session
        self._jobs = jobs
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * kit.unit)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search all conversations"))
        self.search.setAccessibleName(self.tr("Search all conversations"))
        self.search.setClearButtonEnabled(True)
        column.addWidget(self.search)
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Conversations"))
        self.list.setWordWrap(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column.addWidget(self.list, 1)
        self.nothing = text_label(muted=True)
        column.addWidget(self.nothing)
        row = QHBoxLayout()
        self.rename = kit.icon_button(self.tr("Rename this conversation…"), "rename")
        self.export = kit.icon_button(self.tr("Export this conversation…"), "export")
        self.delete = kit.icon_button(self.tr("Delete this conversation…"), "delete")
        row.addStretch(1)
        row.addWidget(self.rename)
        row.addWidget(self.export)
        row.addWidget(self.delete)
        column.addLayout(row)
        self._latest = Latest(jobs, "conversations", self)
        self._latest.result_arrived.connect(self._on_found)
        self._latest.failed.connect(self.failed)
        self.search.textChanged.connect(self.refresh)
        self.list.itemActivated.connect(self._on_activated)
        self.list.itemClicked.connect(self._on_activated)
        self.list.currentRowChanged.connect(self._show_state)
        self.list.installEventFilter(self)
        self.rename.clicked.connect(self._on_rename_clicked)
        self.export.clicked.connect(self._on_export_clicked)
        self.delete.clicked.connect(self._on_delete_clicked)
        self._show_state()

    @override
    def sizeHint(self) -> QSize:
        wide = WIDE_CHARS * self.fontMetrics().averageCharWidth()
        return QSize(wide, super().sizeHint().height())

    @property
    def current(self) -> Entry | None:
        """The conversation that is chosen in the list."""
        item = self.list.currentItem()
        entry: Entry | None = None if item is None else item.data(_ENTRY)
        return entry

    @Slot()
    def refresh(self) -> None:
        """Read the list anew."""
        text = self.search.text()
        self._latest.submit(lambda: find(self._session.store(), text))

    @Slot(object)
    def _on_found(self, entries: tuple[Entry, ...]) -> None:
        chosen = self.current
        self.list.clear()
        for entry in entries:
            below = visible(entry.snippet or entry.when)
            item = QListWidgetItem(f"{visible(entry.title) or '—'}\n{below}")
            item.setData(_ENTRY, entry)
            self.list.addItem(item)
            if chosen is not None and entry.conversation_id == chosen.conversation_id:
                self.list.setCurrentItem(item)
        is_search = bool(self.search.text().strip())
        text = self.tr("Nothing found.") if is_search else self.tr("No conversation is kept yet.")
        self.nothing.setText("" if entries else text)
        self.nothing.setVisible(not entries)
        self._show_state()

    @Slot(QListWidgetItem)
    def _on_activated(self, item: QListWidgetItem) -> None:
        self.opened.emit(item.data(_ENTRY))

    @Slot()
    def _on_rename_clicked(self) -> None:
        entry = self.current
        if entry is None:
            return
        dialog = QInputDialog(self)
        dialog.setWindowTitle(self.tr("Rename conversation"))
        dialog.setLabelText(self.tr("Title"))
        dialog.setTextValue(entry.title)
        number = entry.conversation_id
        dialog.textValueSelected.connect(lambda text: self._rename(number, text))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _rename(self, number: int, text: str) -> None:
        title = " ".join(text.split())
        if title:
            self._do(lambda: self._session.store().update_conversation(number, title=title))

    @Slot()
    def _on_export_clicked(self) -> None:
        if self.current is not None:
            self.export_requested.emit(self.current)

    @Slot()
    def _on_delete_clicked(self) -> None:
        entry = self.current
        if entry is None:
            return
        number = entry.conversation_id
        question = self.tr("Delete “{title}”?").format(title=visible(entry.title) or "—")
        ask_to_delete(self, question, lambda: self._remove(number))

    def _remove(self, number: int) -> None:
        # first: nobody may write into it while it goes
        self.removed.emit(number)
        self._do(lambda: self._session.store().delete_conversation(number))

    def _do(self, change: Callable[[], object]) -> None:
        job = self._jobs.call("conversations", change)
        job.failed.connect(self.failed)
        job.ended.connect(self.refresh)

    @Slot()
    def _show_state(self) -> None:
        for button in (self.rename, self.export, self.delete):
            button.setEnabled(self.current is not None)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key = event.key()
            act = {
                Qt.Key.Key_Delete: self._on_delete_clicked,
                Qt.Key.Key_F2: self._on_rename_clicked,
            }
            if key in act:
                act[Qt.Key(key)]()
                return True
        return super().eventFilter(watched, event)


def _around(text: str, words: list[str]) -> str:
    """Return the part of ``text`` around the first word that was looked for."""
    line = " ".join(text.split())
    at = min((i for w in words if (i := line.casefold().find(w)) >= 0), default=0)
    begin = max(0, at - SNIPPET_CHARS // 3)
    part = line[begin : begin + SNIPPET_CHARS]
    return ("…" if begin else "") + part + ("…" if begin + SNIPPET_CHARS < len(line) else "")
