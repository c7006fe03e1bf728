"""For developers: every building block in every state, on one page (Ctrl+Shift+G)."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QLineEdit,
    QProgressBar,
    QRadioButton,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from app.domain.memory import DeviceMemory, Verdict
from app.domain.units import GIB
from views.page import SCROLLED_UNITS, Page, scrolling
from views.plots.live_strip import LiveStrip, StripInfo
from views.widgets import Banner, Card, EmptyState, Heading, Kit, Pill, Table, ValueLabel
from views.widgets.basics import indent
from views.widgets.flow import Flow
from views.widgets.memory_bar import MemoryBar
from views.widgets.pill import TONES

# Names of states, the same in every language: developers compare them with the code.
ROLES = ("", "primary", "quiet")


class GalleryPage(Page):
    """Shows the design system; acts on nothing."""

    def __init__(self, kit: Kit) -> None:
        """Build every block once per state."""
        super().__init__(kit, "Gallery", min_units=SCROLLED_UNITS)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3 * kit.unit)
        for title, blocks in (
            ("Buttons", self._buttons()), ("Inputs", self._inputs()), ("Pills", self._pills()),
            ("Banners", self._banners()), ("Values", self._values()), ("Icons", self._icons()),
            ("Strips", self._strips()), ("Memory", self._memory()), ("Empty", self._empty()),
        ):  # fmt: skip
            card = Card(kit)
            card.column.addWidget(Heading(title, 1.1))
            for block in blocks:
                card.column.addWidget(block)
            column.addWidget(card)
        self.body.addWidget(scrolling(content), 1)

    def _row(self, widgets: list[QWidget]) -> list[QWidget]:
        row = Flow(2 * self.kit.unit)
        for widget in widgets:
            row.addWidget(widget)
        return [row]

    def _buttons(self) -> list[QWidget]:
        made: list[QWidget] = []
        for role in ROLES:
            for is_enabled in (True, False):
                name = f"{role or 'normal'}{'' if is_enabled else ', disabled'}"
                button = self.kit.button(name, "start", role)
                button.setEnabled(is_enabled)
                made.append(button)
        checked = self.kit.button("checked", "table", "quiet")
        checked.setCheckable(True)
        checked.setChecked(True)
        return self._row([*made, checked, self.kit.icon_button("icon only", "refresh")])

    def _inputs(self) -> list[QWidget]:
        box = QComboBox()
        box.addItems(["first", "second"])
        box.setAccessibleName("choice")
        line, spin, slider = QLineEdit("text"), QDoubleSpinBox(), QSlider()
        for widget, name in ((line, "line"), (spin, "number"), (slider, "slider")):
            widget.setAccessibleName(name)
        indent(spin)
        bar = QProgressBar()
        bar.setValue(40)
        bar.setTextVisible(False)
        bar.setAccessibleName("progress")
        check, radio = QCheckBox("check"), QRadioButton("radio")
        check.setChecked(True)
        radio.setChecked(True)
        slider.setOrientation(Qt.Orientation.Horizontal)
        return self._row([box, line, spin, slider, bar, check, radio])

    def _pills(self) -> list[QWidget]:
        return self._row([Pill(self.kit, tone, tone) for tone in TONES])

    def _banners(self) -> list[QWidget]:
        made: list[QWidget] = []
        for tone in TONES:
            banner = Banner(self.kit)
            banner.say(f"A sentence in the tone {tone}, with an action.", tone, "Act")
            made.append(banner)
        return made

    def _values(self) -> list[QWidget]:
        known, missing = ValueLabel("known", 1.5, bold=True), ValueLabel("missing")
        known.set_value("41.2\u00a0tok/s")
        missing.set_value(None, "not supported by this device")
        table = Table(self.kit, "table", ["Words", "Number"])
        table.set_rows([("one", "1.00"), ("two", "22.0")])
        table.setFixedHeight(35 * self.kit.unit)
        return [*self._row([known, missing]), table]

    def _icons(self) -> list[QWidget]:
        holder = QWidget()
        grid = QGridLayout(holder)
        for index, name in enumerate(self.kit.icons.names):
            label = self.kit.icon_label(name, "text")
            label.setToolTip(name)
            grid.addWidget(label, index // 16, index % 16)
        return [holder]

    def _strips(self) -> list[QWidget]:
        made: list[QWidget] = []
        for color in ("prefill", "decode", "memory", "power", "heat"):
            info = StripInfo(name=color, color=color, unit="W", limit=80.0, limit_name="limit")
            strip = LiveStrip(self.kit, info)
            points = [(60.0 - i, None if i in (20, 21) else 40.0 + (i * 7) % 45) for i in range(60)]
            strip.show_points(points, 60.0)
            made.append(strip)
        return made

    def _memory(self) -> list[QWidget]:
        made: list[QWidget] = []
        for verdict in Verdict:
            bar = MemoryBar(self.kit)
            memory = DeviceMemory(
                device="CUDA0", weights_bytes=4 * GIB, kv_cache_bytes=GIB, compute_bytes=GIB // 4,
                output_bytes=0, driver_context_bytes=GIB // 2, growth_bytes=GIB // 4,
                total_bytes=6 * GIB, free_bytes=7 * GIB, headroom_bytes=GIB // 2, verdict=verdict,
            )  # fmt: skip
            bar.show_memory(memory, "CUDA0")
            made.append(bar)
        return made

    def _empty(self) -> list[QWidget]:
        state = EmptyState(self.kit, "results", "Nothing here", "One sentence why.", "Do something")
        state.setMinimumHeight(80 * self.kit.unit)
        return [state]
