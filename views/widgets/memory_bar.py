"""What a configuration needs on one device, drawn to scale against what is free."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.memory import DeviceMemory
from views.units import format_bytes
from views.widgets.basics import Kit, ValueLabel, text_label
from views.widgets.flow import Flow
from views.widgets.pill import Pill
from views.widgets.sides import Sides
from views.words import VERDICT_TONES, memory_part_label, verdict_label

# part: fields of DeviceMemory it sums, colour of the look
PARTS: dict[str, tuple[tuple[str, ...], str]] = {
    "weights": (("weights_bytes",), "memory"),
    "kv_cache": (("kv_cache_bytes", "recurrent_state_bytes"), "prefill"),
    "compute": (("compute_bytes", "output_bytes"), "power"),
    "overhead": (("driver_context_bytes", "growth_bytes"), "control"),
}


class MemoryBar(QWidget):
    """Title, verdict, bar and legend of one device."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(kit.unit)
        top = Flow(2 * kit.unit)
        self._title = text_label(wrap=False)
        self._total = ValueLabel(self.tr("Memory needed"))
        self._verdict = Pill(kit)
        top.addWidget(self._title)
        top.add_gap()
        top.addWidget(self._total)
        top.addWidget(self._verdict)
        column.addWidget(top)
        self._track = _Track(kit)
        column.addWidget(self._track)
        legend = Sides(kit, gap=2)
        column.addWidget(legend)
        self._cells: dict[str, ValueLabel] = {}
        for parts in (("weights", "compute"), ("kv_cache", "overhead")):
            half = QWidget()
            grid = QGridLayout(half)
            grid.setContentsMargins(0, 0, 0, 0)
            grid.setHorizontalSpacing(kit.unit + kit.unit // 2)
            grid.setVerticalSpacing(0)
            grid.setColumnStretch(3, 1)
            self._cells |= {part: self._legend_cell(grid, i, part) for i, part in enumerate(parts)}
            legend.add(half)

    def show_memory(self, memory: DeviceMemory, name: str) -> None:
        """Show the need of ``memory`` on the device called ``name``."""
        sizes = {part: part_bytes(memory, part) for part in PARTS}
        self._title.setText(name)
        free = format_bytes(memory.free_bytes)
        self._total.set_value(
            self.tr("{need} of {free} free").format(
                need=format_bytes(memory.total_bytes), free=free
            )
        )
        self._verdict.show_state(verdict_label(memory.verdict), VERDICT_TONES[memory.verdict])
        for part, value in self._cells.items():
            value.set_value(format_bytes(sizes[part]))
        known = [(PARTS[p][1], n) for p, n in sizes.items() if n]
        rest = memory.total_bytes - sum(n for _, n in known)
        if rest > 0:
            known.append(("muted", rest))
        capacity = max(memory.free_bytes or 0, memory.total_bytes, 1)
        self._track.show_parts(known, capacity, memory)
        self.setAccessibleName(summary_of(memory, name))

    def _legend_cell(self, grid: QGridLayout, row: int, part: str) -> ValueLabel:
        caption = text_label(memory_part_label(part), muted=True, wrap=False)
        value = ValueLabel(caption.text())
        grid.addWidget(_Swatch(self._kit, PARTS[part][1]), row, 0)
        grid.addWidget(caption, row, 1)
        grid.addWidget(value, row, 2)
        return value


class _Track(QWidget):
    """The bar itself."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._parts: list[tuple[str, int]] = []
        self._capacity = 1
        self._limit: int | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        kit.theme.changed.connect(self.update)

    def show_parts(self, parts: list[tuple[str, int]], capacity: int, memory: DeviceMemory) -> None:
        self._parts = parts
        self._capacity = capacity
        self._limit = None
        if memory.free_bytes is not None:
            self._limit = max(0, memory.free_bytes - memory.headroom_bytes)
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(60 * self._kit.unit, 5 * self._kit.unit)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._kit.theme.color("sunken"))
        painter.drawRoundedRect(area, self._kit.unit, self._kit.unit)
        left = area.left()
        for color, n_bytes in self._parts:
            width = area.width() * n_bytes / self._capacity
            painter.setBrush(self._kit.theme.color(color))
            # A one pixel gap tells neighbours apart without relying on their colours.
            painter.drawRect(QRectF(left, area.top(), max(1.0, width - 1), area.height()))
            left += width
        if self._limit is not None:
            self._draw_limit(painter, area)

    def _draw_limit(self, painter: QPainter, area: QRectF) -> None:
        x = area.left() + area.width() * min(1.0, (self._limit or 0) / self._capacity)
        painter.setPen(QPen(self._kit.theme.color("text"), 2, Qt.PenStyle.DashLine))
        painter.drawLine(int(x), int(area.top()), int(x), int(area.bottom()))


class _Swatch(QLabel):
    """A small square in a colour of the look."""

    def __init__(self, kit: Kit, color: str) -> None:
        super().__init__()
        self._kit = kit
        self._color = color
        self.setFixedSize(2 * kit.unit, 2 * kit.unit)
        kit.theme.changed.connect(self.update)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), QColor(self._kit.theme.color(self._color)))


def part_bytes(memory: DeviceMemory, part: str) -> int | None:
    """Return the bytes of one part; ``None`` when none of its fields is known."""
    values = [getattr(memory, field) for field in PARTS[part][0]]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def summary_of(memory: DeviceMemory, name: str) -> str:
    """Return the bar as one sentence."""
    parts = ", ".join(
        f"{memory_part_label(part)} {format_bytes(part_bytes(memory, part))}" for part in PARTS
    )
    state = verdict_label(memory.verdict)
    return f"{name}: {format_bytes(memory.total_bytes)}, {state} ({parts})"
