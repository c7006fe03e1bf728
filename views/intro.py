"""The first start: three screens at most, each of which can be skipped."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.machine import Machine
from views.dashboard.gpu_card import gpu_facts, gpu_name
from views.dashboard.host_card import host_facts
from views.page import SCROLLED_UNITS, Page, scrolling
from views.settings.choices import Choice
from views.widgets import Card, Heading, Kit, text_label

WIDE_UNITS = 160
"""Longer lines are hard to read."""


class IntroPage(Page):
    """What RigTune does, what it found, and where to begin.

    Signals:
        done: Seen or skipped; the page to go to.
    """

    done = Signal(str)

    def __init__(self, kit: Kit) -> None:
        """Build the three screens."""
        super().__init__(kit, "", min_units=SCROLLED_UNITS)
        self.title.setText(self.tr("Welcome to RigTune"))
        self.skip = kit.button(self.tr("Skip"), role="quiet")
        self.skip.clicked.connect(self._on_skipped)
        self.top.addWidget(self.skip)
        self._stack = QStackedWidget()
        for screen in (self._what_screen(), self._machine_screen(), self._start_screen()):
            self._stack.addWidget(scrolling(screen))
        self.body.addWidget(self._stack, 1)
        row = QHBoxLayout()
        self.back = kit.button(self.tr("Back"), "back")
        self.where = text_label(muted=True)
        self.next = kit.button(self.tr("Continue"), "next", "primary")
        row.addWidget(self.back)
        row.addStretch(1)
        row.addWidget(self.where)
        row.addWidget(self.next)
        self.body.addLayout(row)
        self.back.clicked.connect(self._on_back)
        self.next.clicked.connect(self._on_next)
        self._show(0)

    def _screen(self, title: str) -> tuple[QWidget, QVBoxLayout]:
        screen = QWidget()
        column = QVBoxLayout(screen)
        column.setContentsMargins(0, 0, 0, 0)
        card = Card(self.kit)
        card.setMaximumWidth(WIDE_UNITS * self.kit.unit)
        card.column.setSpacing(4 * self.kit.unit)
        heading = Heading(title, 1.35)
        heading.setWordWrap(True)
        card.column.addWidget(heading)
        # In the middle, a little above it, where the eye looks first.
        column.addStretch(2)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(card, 1000)
        row.addStretch(1)
        column.addLayout(row)
        column.addStretch(3)
        return screen, card.column

    def _what_screen(self) -> QWidget:
        screen, column = self._screen(self.tr("The best settings for your GPU, measured"))
        for icon, text in (
            ("tune", self.tr("A few short measurements find the llama.cpp settings that are "
                             "fastest for what you want to do, and RigTune shows why.")),
            ("chat", self.tr("Chat on them at once, or take them along to llama-server, Ollama, "
                             "LM Studio and others.")),
            ("good", self.tr("Everything stays on this machine: no account, no network, and no "
                             "setting of your system is changed.")),
        ):  # fmt: skip
            row = QHBoxLayout()
            row.setSpacing(3 * self.kit.unit)
            row.addWidget(self.kit.icon_label(icon, "accent", 6 * self.kit.unit))
            row.addWidget(text_label(text), 1)
            column.addLayout(row)
        form = QFormLayout()
        form.setHorizontalSpacing(4 * self.kit.unit)
        form.setVerticalSpacing(2 * self.kit.unit)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        options = self.kit.options
        for field, label, values in (
            ("language", self.tr("&Language"), [
                ("system", self.tr("As the system")), ("en", "English"), ("zh", "简体中文")]),
            ("theme", self.tr("&Colours"), [
                ("auto", self.tr("As the system")), ("light", self.tr("Light")),
                ("dark", self.tr("Dark"))]),
        ):  # fmt: skip
            choice = Choice(options, field, label.replace("&", ""), values)
            words = QLabel(label)
            words.setBuddy(choice)
            form.addRow(words, choice)
        column.addLayout(form)
        return screen

    def _machine_screen(self) -> QWidget:
        screen, column = self._screen(self.tr("Your machine"))
        self._found = text_label(self.tr("Looking at your machine…"))
        column.addWidget(self._found)
        hint = self.tr(
            "The dashboard shows live what each device does; Advice says what slows it down."
        )
        column.addWidget(text_label(hint, muted=True))
        return screen

    def _start_screen(self) -> QWidget:
        screen, column = self._screen(self.tr("Where to begin"))
        text = self.tr(
            "One click on the next page tunes a small demo model. Or choose a model of yours: "
            "those of LM Studio, Ollama, Hugging Face, Jan, GPT4All and llama.cpp are found where "
            "they lie, and any .gguf file can be dropped there."
        )
        column.addWidget(text_label(text))
        return screen

    def show_machine(self, machine: Machine | None) -> None:
        """Say what was found."""
        if machine is None:
            return
        lines = [f"{gpu_name(gpu)}\n{gpu_facts(gpu)}" for gpu in machine.gpus]
        if not lines:
            lines = [self.tr("No GPU was found. Everything works on the CPU, only slower.")]
        cpu = machine.host.cpu_name or self.tr("Processor")
        self._found.setText("\n\n".join([*lines, f"{cpu}\n{host_facts(machine.host)}"]))

    def _show(self, index: int) -> None:
        count = self._stack.count()
        self._stack.setCurrentIndex(index)
        self.back.setEnabled(index > 0)
        is_last = index == count - 1
        self.next.setText(self.tr("Find Best Settings") if is_last else self.tr("Continue"))
        self.next.setAccessibleName(self.next.text())
        self.where.setText(self.tr("{n} of {count}").format(n=index + 1, count=count))
        self.next.setFocus()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.next.setFocus()

    @Slot()
    def _on_back(self) -> None:
        self._show(self._stack.currentIndex() - 1)

    @Slot()
    def _on_next(self) -> None:
        index = self._stack.currentIndex() + 1
        if index < self._stack.count():
            self._show(index)
        else:
            self.done.emit("tune")

    @Slot()
    def _on_skipped(self) -> None:
        self.done.emit("dashboard")
