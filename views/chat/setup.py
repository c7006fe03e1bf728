"""How the model is asked: preset, system prompt, template, and what a full context means."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QFormLayout, QLineEdit, QPlainTextEdit

from app.chat.overflow import Overflow
from app.chat.presets import PRESETS
from views.chat.commands import Configure
from views.widgets import Card, Kit

if TYPE_CHECKING:
    from app.worker.protocol import Sampling

TEMPLATES = (
    "chatml", "llama3", "llama4", "gemma", "mistral-v7", "mistral-v3", "phi4", "phi3", "deepseek3",
    "gpt-oss", "granite", "command-r", "zephyr", "vicuna", "llama2",
)  # fmt: skip
"""Built-in templates of llama.cpp that models most often need."""
LINES = 2
MIN_CHARS = 10


class Setup(Card):
    """A form; ``configuration`` is what it says.

    Signals:
        changed: Something was chosen (not: typed).
    """

    changed = Signal()

    def __init__(self, kit: Kit) -> None:
        """Start with no system prompt and the defaults."""
        super().__init__(kit)
        self._sampling: Sampling | None = None
        form = QFormLayout()
        form.setSpacing(2 * kit.unit)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        self.column.addLayout(form)
        self.preset = self._box(
            (("", self.tr("None")), *((p.id, self._title(p.id)) for p in PRESETS))
        )
        self.system = QPlainTextEdit()
        self.system.setTabChangesFocus(True)
        self.system.setPlaceholderText(self.tr("How the model should be (optional)"))
        self.system.setFixedHeight(self.system.fontMetrics().lineSpacing() * LINES + 4 * kit.unit)
        self.overflow = self._box(
            (
                (Overflow.STOP, self.tr("Stop and say so")),
                (Overflow.DROP_OLDEST, self.tr("Leave out the oldest turns")),
                (Overflow.SUMMARISE, self.tr("Summarise the oldest turns")),
            )
        )
        names = ((name, name) for name in TEMPLATES)
        self.template = self._box(
            (("", self.tr("The model's own")), *names, ("text", self.tr("None: plain text")))
        )
        self.stop = QLineEdit()
        self.stop.setPlaceholderText(self.tr("Text that ends an answer (optional)"))
        for label, widget in (
            (self.tr("&Preset"), self.preset), (self.tr("&System prompt"), self.system),
            (self.tr("When the &context is full"), self.overflow),
            (self.tr("Chat &template"), self.template), (self.tr("&End answers at"), self.stop),
        ):  # fmt: skip
            widget.setAccessibleName(label.replace("&", ""))
            form.addRow(label, widget)
        self.preset.activated.connect(self._on_preset_chosen)
        self.overflow.activated.connect(self.changed)
        self.template.activated.connect(self.changed)
        self.column.addStretch(1)

    def configuration(self) -> Configure:
        """Return what is chosen and typed now."""
        stop = self.stop.text()
        return Configure(
            system=self.system.toPlainText().strip(), sampling=self._sampling,
            overflow=Overflow(self.overflow.currentData()), template=self.template.currentData(),
            stop=(stop,) if stop else (),
        )  # fmt: skip

    def show_system(self, text: str) -> None:
        """Show the system prompt of a conversation that was opened."""
        if text != self.system.toPlainText().strip():
            self.system.setPlainText(text)
            self.preset.setCurrentIndex(0)
            self._sampling = None

    def _box(self, rows: tuple[tuple[str, str], ...]) -> QComboBox:
        box = QComboBox()
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(MIN_CHARS)
        for key, text in rows:
            box.addItem(text, str(key))
        return box

    def _title(self, preset: str) -> str:
        titles = {
            "assistant": self.tr("Assistant: brief and honest"),
            "code": self.tr("Code: working examples"),
            "writing": self.tr("Writing: a careful editor"),
        }
        return titles[preset]

    @Slot()
    def _on_preset_chosen(self) -> None:
        preset = next((p for p in PRESETS if p.id == self.preset.currentData()), None)
        self.system.setPlainText("" if preset is None else preset.system)
        self._sampling = None if preset is None else preset.sampling
        self.changed.emit()
