"""Who holds a GPU's memory now: our engine, other programs, free."""

import os

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.machine import GpuProcess, GpuSample
from app.domain.memory import DeviceMemory
from views.units import format_bytes
from views.widgets.basics import Kit
from views.widgets.live_text import LiveText
from views.widgets.memory_bar import part_bytes
from views.words import memory_part_label

MAX_NAMES = 3
OTHERS = "others"
LOADED_PARTS = ("weights", "kv_cache", "compute", "overhead")
PARTS = {
    "weights": "memory",
    "kv_cache": "prefill",
    "compute": "power",
    "overhead": "decode",
    OTHERS: "control",
}
"""Colour of the look per part."""


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
        self._text = LiveText(kit)
        column.addWidget(self._bar)
        column.addWidget(self._text)

    def show_sample(
        self, sample: GpuSample, total_bytes: int | None, loaded: DeviceMemory | None = None
    ) -> None:
        """Show the memory of ``sample``; hidden when it is not known.

        Args:
            sample: The newest reading.
            total_bytes: Size of the memory.
            loaded: What RigTune's own model needs here by estimate, if one is loaded.
        """
        used = sample.vram_used_bytes
        self.setVisible(bool(used is not None and total_bytes))
        if used is None or not total_bytes:
            return
        parts = split(used, loaded)
        self._bar.show_parts([(PARTS[name], n / total_bytes) for name, n in parts.items()])
        line = self.tr("Memory: {used} used, {free} free of {total}").format(
            used=format_bytes(used), free=format_bytes(total_bytes - used),
            total=format_bytes(total_bytes),
        )  # fmt: skip
        if loaded is not None:
            words = {name: memory_part_label(name) for name in parts if name != OTHERS}
            others = self.tr("others")
            named = [f"{words.get(n, others)} {format_bytes(b)}" for n, b in parts.items()]
            line = f"{line} · ≈ {', '.join(named)}"
        names = biggest_users(sample.processes or ())
        self._text.show_text(f"{line} · {names}" if names else line)
        self.setAccessibleName(self._text.text())


class _UsedBar(QWidget):
    """The bar itself."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._parts: list[tuple[str, float]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        kit.theme.changed.connect(self.update)

    def show_parts(self, parts: list[tuple[str, float]]) -> None:
        self._parts = parts
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
        left, width = area.left(), area.width()
        for color, fraction in self._parts:
            piece = QRectF(left, area.top(), max(1.0, width * fraction - 1), area.height())
            painter.setBrush(self._kit.theme.color(color))
            painter.drawRoundedRect(piece, min(radius, piece.width() / 2), radius)
            left += width * fraction


def split(used_bytes: int, loaded: DeviceMemory | None) -> dict[str, int]:
    """Return who holds the memory in use: parts of our model by estimate, and others."""
    if loaded is None:
        return {OTHERS: used_bytes}
    parts = {name: part_bytes(loaded, name) or 0 for name in LOADED_PARTS}
    known = sum(parts.values())
    if known > used_bytes:  # still loading: what is there is shared out
        parts = {name: n * used_bytes // max(1, known) for name, n in parts.items()}
    rest = used_bytes - sum(parts.values())
    return {**{name: n for name, n in parts.items() if n}, **({OTHERS: rest} if rest else {})}


def biggest_users(processes: tuple[GpuProcess, ...]) -> str:
    """Return the programs that hold most memory, largest first; our own is called RigTune."""
    known = [p for p in processes if p.vram_bytes]
    known.sort(key=lambda p: -(p.vram_bytes or 0))
    own = os.getpid()
    return ", ".join(
        f"{'RigTune' if p.pid == own else p.name or p.pid} {format_bytes(p.vram_bytes)}"
        for p in known[:MAX_NAMES]
    )
