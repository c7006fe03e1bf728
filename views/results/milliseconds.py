"""Where the milliseconds of one token go, and how a request divides into reading and writing."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.record import Record
from app.domain.sweep import SweepResult
from views.plots.sweep_data import context_points, depth_of
from views.widgets.basics import Heading, Kit, text_label
from views.words import number

translate = QCoreApplication.translate


class Part(Record, frozen=True, kw_only=True):
    """A part of a token's time.

    Attributes:
        name: In words.
        ms: Milliseconds per token.
        color: Colour of the look.
        is_estimated: By the curve fitted to the trials, not timed by itself.
    """

    name: str
    ms: float
    color: str
    is_estimated: bool = False


def token_parts(result: SweepResult) -> tuple[Part, ...]:
    """Return where the time of a generated token goes; empty without a speed.

    What the filled context costs is the difference of two measured speeds; what the layers in RAM
    cost comes from the fitted curve; the rest is all other work, weights on the GPU above all.
    """
    best = result.recommended
    if best is None or best.decode_tok_s is None:
        return ()
    whole = 1000 / best.decode_tok_s.median
    context = _context_ms(result, whole)
    reasons = {reason.code: reason.data for reason in result.reasons}
    share = float(reasons.get("ram_share", {}).get("share_pct") or 0) / 100
    in_ram = max(0.0, min(share * whole, whole - context))
    on_gpu = translate("Milliseconds", "weights on the GPU, and the rest")
    on_cpu = translate("Milliseconds", "weights on the CPU, and the rest")
    parts = (
        Part(
            name=on_gpu if best.settings.n_gpu_layers else on_cpu,
            ms=whole - context - in_ram, color="decode", is_estimated=bool(in_ram),
        ),
        Part(
            name=translate("Milliseconds", "layers left in RAM"), ms=in_ram, color="prefill",
            is_estimated=True,
        ),
        Part(name=translate("Milliseconds", "reading the context"), ms=context, color="memory"),
    )  # fmt: skip
    return tuple(part for part in parts if part.ms > 0.01 * whole)


def _context_ms(result: SweepResult, whole_ms: float) -> float:
    """Return what the context at the goal's depth adds to a token, from the measured curve."""
    depth = depth_of(result)
    empty = next((r for x, r in context_points(result) if x == 0), None)
    if empty is None or not depth:
        return 0.0
    return max(0.0, min(whole_ms, whole_ms - 1000 / empty.median))


class Milliseconds(QWidget):
    """A bar with its legend."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(kit.unit)
        self._title = Heading("", 1.1)
        self._bar = _Bar(kit)
        self._column.addWidget(self._title)
        self._column.addWidget(self._bar)
        self._legend: QWidget | None = None

    def show_result(self, result: SweepResult) -> None:
        """Show the parts of ``result``; hidden without any."""
        parts = token_parts(result)
        self.setVisible(bool(parts))
        if self._legend is not None:
            self._legend.hide()
            self._legend.deleteLater()
        self._legend = QWidget()
        grid = QGridLayout(self._legend)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(2 * self._kit.unit)
        grid.setVerticalSpacing(self._kit.unit // 2)
        grid.setColumnStretch(1, 1)
        total = sum(part.ms for part in parts)
        self._title.setText(
            self.tr("Where the {n} ms of a token go").format(
                n=number(total, 1 if total < 100 else 0)
            )
        )
        for row, part in enumerate(parts):
            mark = "≈ " if part.is_estimated else ""
            value = f"{mark}{number(part.ms, 1)}\u00a0ms"
            grid.addWidget(_Swatch(self._kit, part.color), row, 0)
            grid.addWidget(text_label(part.name, muted=True, is_selectable=False), row, 1)
            grid.addWidget(text_label(value, wrap=False), row, 2, Qt.AlignmentFlag.AlignRight)
        self._column.addWidget(self._legend)
        self._bar.show_parts([(part.color, part.ms / total) for part in parts] if total else [])
        words = ", ".join(f"{part.name} {number(part.ms, 1)} ms" for part in parts)
        self.setAccessibleName(f"{self._title.text()}: {words}")


class _Bar(QWidget):
    """The parts side by side."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._parts: Sequence[tuple[str, float]] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        kit.theme.changed.connect(self.update)

    def show_parts(self, parts: Sequence[tuple[str, float]]) -> None:
        self._parts = parts
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(30 * self._kit.unit, 4 * self._kit.unit)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        left = 0.0
        for color, fraction in self._parts:
            width = self.width() * fraction
            painter.setBrush(self._kit.theme.color(color))
            painter.drawRoundedRect(QRectF(left, 0, max(2.0, width - 2), self.height()), 3, 3)
            left += width


class _Swatch(QWidget):
    """A square in a part's colour."""

    def __init__(self, kit: Kit, color: str) -> None:
        super().__init__()
        self._kit = kit
        self._color = color
        self.setFixedSize(3 * kit.unit, 3 * kit.unit)
        kit.theme.changed.connect(self.update)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._kit.theme.color(self._color))
        painter.drawRoundedRect(QRectF(self.rect()), 2, 2)
