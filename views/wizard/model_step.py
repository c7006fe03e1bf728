"""Which model: one click for the usual one, the models found here, or a file."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QMenu,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.domain.memory import Verdict
from app.domain.units import MISSING
from views.units import format_bytes
from views.widgets import Banner, Card, Heading, Kit, Table, text_label
from views.widgets.flow import Flow
from views.widgets.sides import Sides
from views.words import said_text, verdict_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.session import ModelEntry

DEMO = "demo"
DEMO_KIND = "gemma3 Q4_K_M"  # known before its file is put together
SUFFIX = ".gguf"
MAX_NAME = 60
QUICK_CHARS = 30
"""Least width of what one click does: with large text its button goes below, characters."""


class ModelStep(QWidget):
    """Chooses a model.

    Signals:
        model_chosen: What the user means: a path, an id, or ``demo``.
        quick_requested: The same, for a search without further questions.
        refresh_requested: The list is wanted (again).
    """

    model_chosen = Signal(str)
    quick_requested = Signal(str)
    refresh_requested = Signal()

    def __init__(self, kit: Kit, last_model: str, recent: "Sequence[str]" = ()) -> None:
        """Build it without a list; ``last_model`` is what one click tunes."""
        super().__init__()
        self._entries: tuple[ModelEntry, ...] | None = None  # not looked for yet
        self._quick_model = last_model or DEMO
        self.setAcceptDrops(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3 * kit.unit)
        column.addWidget(self._quick_card(kit))
        self.banner = Banner(kit)
        column.addWidget(self.banner)
        column.addWidget(self._list_header(kit))
        self.table = Table(
            kit, self.tr("Models on this machine"),
            [self.tr("Model"), self.tr("Found in"), self.tr("Type"), self.tr("On this machine"),
             self.tr("Size")],
            text_columns=4,
        )  # fmt: skip
        # What is wrong with a file takes a sentence.
        self.table.set_elastic(0, 3)
        column.addWidget(self.table, 1)
        column.addLayout(self._footer(kit))
        self.table.row_chosen.connect(self._on_row_chosen)
        self.table.row_selected.connect(self._on_row_selected)
        self.show_recent(recent)
        self._show_rows()

    def _quick_card(self, kit: Kit) -> Card:
        card = Card(kit)
        row, told = Sides(kit), QWidget()
        line = QHBoxLayout(told)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(3 * kit.unit)
        line.addWidget(kit.icon_label("tune", "accent", 8 * kit.unit))
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(Heading(self.tr("One click"), 1.1))
        self._quick_text = text_label(muted=True)
        self._quick_text.setMinimumWidth(QUICK_CHARS * self.fontMetrics().averageCharWidth())
        texts.addWidget(self._quick_text)
        line.addLayout(texts, 1)
        row.add(told)
        self.quick = kit.button(self.tr("Find Best Settings"), "start", "primary")
        self.quick.clicked.connect(self._on_quick_clicked)
        row.add(self.quick, 0)
        card.column.addWidget(row)
        self.set_quick_model(self._quick_model)
        return card

    def _list_header(self, kit: Kit) -> Flow:
        row = Flow(2 * kit.unit)
        row.addWidget(Heading(self.tr("Or choose a model"), 1.1))
        row.add_gap()
        self._refresh = kit.button(self.tr("Search Again"), "refresh", "quiet")
        self._refresh.clicked.connect(self.refresh_requested)
        self._recent = kit.button(self.tr("Recent"), "clock", "quiet")
        self._recent_menu = QMenu(self._recent)
        self._recent_menu.triggered.connect(self._on_recent_triggered)
        self._recent.setMenu(self._recent_menu)
        row.addWidget(self._recent)
        self._open = kit.button(self.tr("Open File…"), "open")
        self._open.clicked.connect(self.open_file)
        row.addWidget(self._refresh)
        row.addWidget(self._open)
        return row

    def _footer(self, kit: Kit) -> QHBoxLayout:
        row = QHBoxLayout()
        self._hint = text_label(muted=True)
        row.addWidget(self._hint, 1)
        self.next = kit.button(self.tr("Choose Goal"), "next")
        self.next.setEnabled(False)
        self.next.clicked.connect(self._on_next_clicked)
        row.addWidget(self.next)
        return row

    def set_quick_model(self, model: str) -> None:
        """Say what one click tunes."""
        self._quick_model = model
        name = self.tr("the demo model") if model == DEMO else short_name(model)
        text = self.tr("Tunes {model} for chat. Takes minutes, asks nothing.")
        if not model:
            text = self.tr("No model was found yet: open a .gguf file, or drop one here.")
        self._quick_text.setText(text.format(model=name))
        self.quick.setEnabled(bool(model))

    def show_recent(self, recent: "Sequence[str]") -> None:
        """Offer the models of the last searches."""
        self._recent_menu.clear()
        for model in recent:
            name = self.tr("Demo model") if model == DEMO else short_name(model)
            action = self._recent_menu.addAction(name.replace("&", "&&"))
            action.setData(model)
            action.setToolTip(model)
        self._recent.setEnabled(bool(recent))

    @Slot(QAction)
    def _on_recent_triggered(self, action: QAction) -> None:
        self.model_chosen.emit(str(action.data()))

    def show_models(self, entries: "Sequence[ModelEntry]") -> None:
        """Show what was found; where the demo model is not here, one click takes another one."""
        self._entries = tuple(entries)
        self._show_rows()
        if self._quick_model in {DEMO, ""} and all(entry.id != DEMO for entry in entries):
            usable = (entry.path for entry in entries if not entry.problem)
            self.set_quick_model(next(usable, ""))

    @property
    def _origins(self) -> dict[str, str]:
        # programs are called alike in every language
        return {
            "rigtune": "RigTune", "lmstudio": "LM Studio", "ollama": "Ollama",
            "huggingface": "Hugging Face", "jan": "Jan", "gpt4all": "GPT4All",
            "llama.cpp": "llama.cpp", "folder": self.tr("own folder"),
        }  # fmt: skip

    def _show_rows(self) -> None:
        demo = self.tr("Demo: Gemma 3 270M")
        rows = [
            (
                demo if entry.id == DEMO else _shown_name(entry.name),
                self._origins.get(entry.origin, entry.origin),
                DEMO_KIND if entry.id == DEMO else _kind(entry),
                _state(entry),
                format_bytes(entry.file_bytes),
            )
            for entry in self._entries or ()
        ]
        if self._entries is None:  # what most first starts take
            rows = [(demo, "RigTune", DEMO_KIND, MISSING, "241\u00a0MiB")]
        self.table.set_rows(rows)
        if not rows:
            self._show_problem(None)
            self.next.setEnabled(False)
        elif self.table.currentIndex().row() < 0:
            self.table.selectRow(0)

    def _model_at(self, row: int) -> str:
        entry = self._entry_at(row)
        return DEMO if entry is None or entry.id == DEMO else entry.path

    def _entry_at(self, row: int) -> "ModelEntry | None":
        entries = self._entries or ()
        return entries[row] if 0 <= row < len(entries) else None

    @Slot()
    def open_file(self) -> None:
        """Ask for a file without blocking the window."""
        dialog = QFileDialog(self, self.tr("Open a model"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilter(self.tr("GGUF models (*.gguf);;All files (*)"))
        dialog.fileSelected.connect(self.model_chosen)
        dialog.open()

    @Slot()
    def _on_quick_clicked(self) -> None:
        self.quick_requested.emit(self._quick_model)

    @Slot()
    def _on_next_clicked(self) -> None:
        self.model_chosen.emit(self._model_at(self.table.currentIndex().row()))

    @Slot(int)
    def _on_row_chosen(self, row: int) -> None:
        self.model_chosen.emit(self._model_at(row))

    @Slot(int)
    def _on_row_selected(self, row: int) -> None:
        entry = self._entry_at(row)
        self._show_problem(entry.problem if entry else None)

    def _show_problem(self, problem: str | None) -> None:
        """Say why the chosen model cannot be used; the table may have no room for it all."""
        self.next.setEnabled(not problem)
        hint = self.tr("A .gguf file can also be dropped here. Files are read where they lie.")
        self._hint.setText(said_text(problem) if problem else hint)

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_model(event):
            event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        path = _dropped_model(event)
        if path:
            event.acceptProposedAction()
            self.model_chosen.emit(path)


def short_name(model: str) -> str:
    """Return the last part of a path or id."""
    return model.replace("\\", "/").rsplit("/", 1)[-1]


def _shown_name(name: str) -> str:
    """Return ``name``, of a very long one the end: there the file is named."""
    return name if len(name) <= MAX_NAME else f"…{name[1 - MAX_NAME :]}"


def _dropped_model(event: QDropEvent) -> str:
    urls = event.mimeData().urls()
    paths = [url.toLocalFile() for url in urls if url.isLocalFile()]
    return next((p for p in paths if p.lower().endswith(SUFFIX)), "")


def _kind(entry: "ModelEntry") -> str:
    return " ".join(x for x in (entry.arch, entry.quant) if x) or MISSING


def _state(entry: "ModelEntry") -> str:
    if entry.problem:
        return said_text(entry.problem)
    return MISSING if entry.verdict is Verdict.UNKNOWN else verdict_label(entry.verdict)
