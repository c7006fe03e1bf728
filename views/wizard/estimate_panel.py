"""The instant estimate: memory per device, and the most that would fit."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.domain.errors import ErrorInfo
from app.domain.memory import MemorySource
from app.domain.model import ModelSpec
from app.domain.units import significant
from views.widgets.basics import Heading, Kit, text_label
from views.widgets.memory_bar import MemoryBar
from views.words import error_text, number, paragraph, said_text

if TYPE_CHECKING:
    from app.session import Estimate

HOST = "host"


class EstimatePanel(QWidget):
    """Bars for the devices, and two sentences."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2 * kit.unit, 0, 0)
        column.setSpacing(2 * kit.unit)
        column.addWidget(Heading(self.tr("Estimate"), 1.1))
        self._column = QVBoxLayout()
        self._column.setSpacing(3 * kit.unit)
        column.addLayout(self._column)
        self._text = text_label(self.tr("Reading the model…"), muted=True)
        column.addWidget(self._text)
        self._bars: list[MemoryBar] = []

    def show_estimate(self, answer: "Estimate", spec: ModelSpec) -> None:
        """Show ``answer``."""
        devices = answer.estimate.devices
        while len(self._bars) < len(devices):
            self._bars.append(MemoryBar(self._kit))
            self._column.addWidget(self._bars[-1])
        for index, bar in enumerate(self._bars):
            bar.setVisible(index < len(devices))
            if index < len(devices):
                name = devices[index].device
                bar.show_memory(devices[index], self.tr("RAM") if name == HOST else name)
        self._text.setText(self._sentences(answer, spec))

    def show_problem(self, error: ErrorInfo) -> None:
        """Say why there is no estimate."""
        for bar in self._bars:
            bar.hide()
        self._text.setText(error_text(error))

    def _sentences(self, answer: "Estimate", spec: ModelSpec) -> str:
        parts = []
        most = answer.max_n_gpu_layers
        has_gpu = any(d.device != HOST for d in answer.estimate.devices)
        if most is not None and has_gpu:
            text = self.tr("At most {n} of {all} layers fit on the GPU at this context.")
            parts.append(text.format(n=most, all=spec.max_gpu_layers))
        if answer.max_n_ctx is not None:
            text = self.tr("The longest context that fits is {n} tokens.")
            parts.append(text.format(n=number(answer.max_n_ctx)))
        if answer.estimate.note:
            parts.append(said_text(answer.estimate.note))
        if answer.overhead_source:
            parts.append(said_text(answer.overhead_source))
        error = answer.estimate.max_error_pct
        if answer.estimate.source is MemorySource.FORMULA and error is not None:
            parts.append(self.tr("Estimated, ±\u00a0{n}\u00a0%.").format(n=significant(error, 2)))
        return paragraph(parts)
