"""Who holds a GPU's memory now: our engine, other programs, free."""

import os

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.machine import GpuProcess, GpuSample
from app.domain.units import format_bytes
from views.widgets.basics import Kit, text_label

MAX_NAMES = 3


class MemorySplit(QWidget):
    """A bar and one line of names."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(kit.unit)
        self._bar = _UsedBar(kit)
        self._text = text_label(muted=True)
        column.addWidget(self._bar)
        column.addWidget(self._text)

    def show_sample(self, sample: GpuSample, total_bytes: int | None) -> None:
        """Show the memory of ``sample``; hidden when it is not known."""
        used = sample.vram_used_bytes
        self.setVisible(bool(used is not None and total_bytes))
        if used is None or not total_bytes:
            return
        self._bar.show_fraction(used / total_bytes)
        line = self.tr("Memory: {used} used, {free} free of {total}").format(
            used=format_bytes(used), free=format_bytes(total_bytes - used),
            total=format_bytes(total_bytes),
        )  # fmt: skip
        names = biggest_users(sample.processes or ())
        self._text.setText(f"{line} · {names}" if names else line)
        self.setAccessibleName(self._text.text())


class _UsedBar(QWidget):
    """The bar itself."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._fraction = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        kit.theme.changed.connect(self.update)

    def show_fraction(self, fraction: float) -> None:
        self._fraction = min(1.0, fraction)
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(40 * self._kit.unit, 2 * self._kit.unit)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        area = QRectF(self.rect())
        radius = area.height() / 2
        painter.setBrush(self._kit.theme.color("sunken"))
        painter.drawRoundedRect(area, radius, radius)
        area.setWidth(max(area.height(), area.width() * self._fraction))
        painter.setBrush(self._kit.theme.color("memory"))
        painter.drawRoundedRect(area, radius, radius)


def biggest_users(processes: tuple[GpuProcess, ...]) -> str:
    """Return the programs that hold most memory, largest first; our own is called RigTune."""
    known = [p for p in processes if p.vram_bytes]
    known.sort(key=lambda p: -(p.vram_bytes or 0))
    own = os.getpid()
    return ", ".join(
        f"{'RigTune' if p.pid == own else p.name or p.pid} {format_bytes(p.vram_bytes)}"
        for p in known[:MAX_NAMES]
    )
