"""Who holds a GPU's memory now: our engine, other programs, free."""

import os
from collections.abc import Sequence

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.machine import GpuProcess, GpuSample
from app.domain.memory import DeviceMemory
from app.domain.units import MIB
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
    """A line of names, a bar, and what its parts are."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(kit.unit)
        self._bar = _UsedBar(kit)
        self._text = LiveText(kit)
        self._legend = _Legend(kit)
        column.addWidget(self._text)  # above, as with the strips
        column.addWidget(self._bar)
        column.addWidget(self._legend)

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
        names = biggest_users(sample.processes or ())
        self._text.show_text(f"{line} · {names}" if names else line)
        self._legend.show_parts(self._named(parts) if loaded is not None else ())
        self.setAccessibleName(", ".join([self._text.text(), *self._legend.texts]))

    def _named(self, parts: dict[str, int]) -> Sequence[tuple[str, str]]:
        """Return colour and words of each part; those of our model are estimates."""
        others = self.tr("others")
        return tuple(
            (PARTS[name], f"{others} {format_bytes(n)}")
            if name == OTHERS
            else (PARTS[name], f"{memory_part_label(name)} ≈\u00a0{format_bytes(n)}")
            for name, n in parts.items()
        )


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
        return QSize(40 * self._kit.unit, 3 * self._kit.unit)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        area = QRectF(self.rect())
        radius = 2  # rounder, it would look like a scroll bar
        painter.setBrush(self._kit.theme.color("sunken"))
        painter.drawRoundedRect(area, radius, radius)
        left, width = area.left(), area.width()
        for color, fraction in self._parts:
            piece = QRectF(left, area.top(), max(1.0, width * fraction - 1), area.height())
            painter.setBrush(self._kit.theme.color(color))
            painter.drawRoundedRect(piece, radius, radius)
            left += width * fraction


class _Legend(QWidget):
    """The parts in words, each behind its colour; painted, so that no layout follows a reading."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._parts: Sequence[tuple[str, str]] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.hide()
        kit.theme.changed.connect(self.update)

    @property
    def texts(self) -> tuple[str, ...]:
        """What it says."""
        return tuple(text for _, text in self._parts)

    def show_parts(self, parts: Sequence[tuple[str, str]]) -> None:
        if len(parts) != len(self._parts):
            self.setVisible(bool(parts))
            self.updateGeometry()
        self._parts = parts
        self.update()

    def _places(self, width: int) -> list[QRect]:
        """Return where each part stands; a line that is full goes on below."""
        metrics, gap = self.fontMetrics(), 4 * self._kit.unit
        places, left, top = [], 0, 0
        for text in self.texts:
            wide = metrics.horizontalAdvance(text) + 3 * self._kit.unit
            if left and left + wide > width:
                left, top = 0, top + metrics.height()
            places.append(QRect(left, top, wide, metrics.height()))
            left += wide + gap
        return places

    @override
    def heightForWidth(self, width: int) -> int:
        return max((p.bottom() + 1 for p in self._places(width)), default=0)

    @override
    def sizeHint(self) -> QSize:
        return QSize(40 * self._kit.unit, self.heightForWidth(max(self.width(), 1)))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(10 * self._kit.unit, self.fontMetrics().height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        u, theme = self._kit.unit, self._kit.theme
        for (color, text), place in zip(self._parts, self._places(self.width()), strict=True):
            swatch = QRect(place.left(), place.center().y() - u + 1, 2 * u, 2 * u)
            painter.fillRect(swatch, theme.color(color))
            painter.setPen(theme.color("muted"))
            words = place.adjusted(3 * u, 0, 0, 0)
            painter.drawText(words, int(Qt.AlignmentFlag.AlignVCenter), text)


def split(used_bytes: int, loaded: DeviceMemory | None) -> dict[str, int]:
    """Return who holds the memory in use: parts of our model by estimate, and others."""
    if loaded is None:
        return {OTHERS: used_bytes}
    parts = {name: part_bytes(loaded, name) or 0 for name in LOADED_PARTS}
    known = sum(parts.values())
    if known > used_bytes:  # still loading: what is there is shared out
        parts = {name: n * used_bytes // max(1, known) for name, n in parts.items()}
    rest = used_bytes - sum(parts.values())
    return {
        **{name: n for name, n in parts.items() if n},
        **({OTHERS: rest} if rest >= MIB else {}),
    }


def biggest_users(processes: tuple[GpuProcess, ...]) -> str:
    """Return the programs that hold most memory, largest first; our own is called RigTune."""
    known = [p for p in processes if p.vram_bytes]
    known.sort(key=lambda p: -(p.vram_bytes or 0))
    own = os.getpid()
    return ", ".join(
        f"{'RigTune' if p.pid == own else p.name or p.pid} {format_bytes(p.vram_bytes)}"
        for p in known[:MAX_NAMES]
    )
