"""The live page: a card per GPU, one for CPU and RAM."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QComboBox, QFileDialog, QPushButton, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.errors import ErrorInfo
from app.domain.machine import Gpu, HostInfo, Machine
from app.domain.memory import DeviceMemory
from views.dashboard.csv_file import Column, csv_text
from views.dashboard.gpu_card import GpuCard
from views.dashboard.host_card import HostCard
from views.feed import HOST, TelemetryFeed
from views.page import SCROLLED_UNITS, Page, scrolling
from views.power.panel import PowerPanel
from views.slices import Slices
from views.widgets import Banner, EmptyState, Kit

WINDOWS_S = (60, 300, 1800)


class DashboardPage(Page):
    """Shows what this machine is and does.

    Signals:
        tune_requested: "Find best settings" was pressed.
        export_requested: Path, and what makes the text to write there (called on a thread).
    """

    tune_requested = Signal()
    export_requested = Signal(str, object)

    def __init__(self, kit: Kit, feed: TelemetryFeed) -> None:
        """Build the page; the machine comes later."""
        super().__init__(kit, "", min_units=SCROLLED_UNITS)
        self.title.setText(self.tr("Dashboard"))
        self._feed = feed
        self._cards_shown: tuple[GpuCard | HostCard, ...] = ()
        self._is_engine_known = False
        self._unshown: list[GpuCard | HostCard] = []
        self._loaded: Sequence[DeviceMemory] = ()
        self._paused_s: float | None = None
        self._is_built = False
        self._slices = Slices(self)
        self._build_top(kit)
        self._banner = Banner(kit)
        self.body.addWidget(self._banner)
        self.power = PowerPanel(kit)
        self._waiting = EmptyState(
            kit, "gpu", self.tr("Looking at your machine…"),
            self.tr("Probes read the drivers, and the engine lists its devices."),
        )  # fmt: skip
        self.body.addWidget(self._waiting, 1)
        content = QWidget()
        whole = QVBoxLayout(content)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(3 * kit.unit)
        whole.addWidget(self.power)
        self._column = QVBoxLayout()
        self._column.setSpacing(3 * kit.unit)
        whole.addLayout(self._column, 1)
        self._area = scrolling(content)
        self._area.hide()
        self.body.addWidget(self._area, 1)
        feed.updated.connect(self._on_feed_updated)

    def _build_top(self, kit: Kit) -> None:
        self._window = QComboBox()
        self._window.setAccessibleName(self.tr("Time shown"))
        names = (self.tr("Last minute"), self.tr("Last 5 minutes"), self.tr("Last 30 minutes"))
        for seconds, name in zip(WINDOWS_S, names, strict=True):
            self._window.addItem(name, seconds)
        self._pause = self._switch("pause", self.tr("Pause the curves"))
        self._as_table = self._switch("table", self.tr("Show readings as table"))
        self._processes = self._switch("process", self.tr("Show programs that use a GPU"))
        self._export = kit.icon_button(self.tr("Export readings as CSV…"), "export")
        self._tune = kit.button(self.tr("Find Best Settings"), "tune", "primary")
        for widget in (self._window, self._pause, self._as_table, self._processes, self._export,
                       self._tune):  # fmt: skip
            self.top.addWidget(widget)
        self._window.currentIndexChanged.connect(self._refresh)
        self._pause.toggled.connect(self._on_pause_toggled)
        self._processes.toggled.connect(self._on_processes_toggled)
        self._export.clicked.connect(self._on_export_clicked)
        self._tune.clicked.connect(self.tune_requested)

    def _switch(self, icon: str, name: str) -> QPushButton:
        button = self.kit.icon_button(name, icon)
        button.setCheckable(True)
        return button

    def show_machine(self, machine: Machine) -> None:
        """Build the cards of ``machine``."""
        self._waiting.hide()
        self._clear()
        self._is_engine_known = machine.engine is not None
        devices: list[Gpu | HostInfo] = [*machine.gpus, machine.host]
        # One card after the other, and so with their first readings: eight at once would hold the
        # window. One takes the look of the window in a turn of its own.
        for device in devices:
            self._slices.add([partial(self._build_card, device), self._show_card])
        self._slices.add([self._end_build])
        if not machine.gpus:
            self._banner.say(self.tr(
                "No GPU found: neither a driver nor the engine reports one. "
                "Everything works on the CPU, only slower."
            ))  # fmt: skip
        self._area.show()

    def show_loaded(self, devices: Sequence[DeviceMemory]) -> None:
        """Know what RigTune's own model needs, for the memory maps; empty = none is loaded."""
        self._loaded = devices
        for card in self._cards_shown:
            if isinstance(card, GpuCard):
                card.show_loaded(devices)

    @property
    def is_ready(self) -> bool:
        """Whether every card is there."""
        return self._is_built

    def _build_card(self, device: Gpu | HostInfo) -> None:
        card = (
            GpuCard(self.kit, device, is_engine_known=self._is_engine_known)
            if isinstance(device, Gpu)
            else HostCard(self.kit, device)
        )
        self._unshown.append(card)

    def _show_card(self) -> None:
        card = self._unshown.pop()
        self._column.addWidget(card)
        self._as_table.toggled.connect(card.show_as_table)
        card.show_as_table(self._as_table.isChecked())
        if isinstance(card, GpuCard):
            card.show_loaded(self._loaded)
            card.show_programs(self._processes.isChecked())
        self._cards_shown = (*self._cards_shown, card)

    def _end_build(self) -> None:
        self._is_built = True
        self._column.addStretch(1)
        self._on_feed_updated()

    def stop(self) -> None:
        """Build no more."""
        self._slices.clear()

    def show_problem(self, error: ErrorInfo) -> None:
        """Say that the machine could not be read."""
        self._banner.show_error(error)
        self._waiting.say(self.tr("This machine could not be read."))
        self._area.show()  # a power limit that was left changed can be put back even now

    def show_error(self, error: ErrorInfo) -> None:
        """Say what went wrong."""
        self._banner.show_error(error)

    @Slot(object)
    def show_written(self, path: str) -> None:
        """Say where the readings were written."""
        self._banner.say(self.tr("Written: {path}").format(path=path), "good")

    def say_set_aside(self, path: str) -> None:
        """Say that the preferences could not be read, once."""
        text = self.tr("The settings file was damaged and is now kept as {path}. Defaults count.")
        self._banner.say(text.format(path=path), "warn")

    def _clear(self) -> None:
        self._slices.clear()
        self._is_built = False
        self._cards_shown = ()
        self._unshown = []
        while item := self._column.takeAt(0):
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()

    @Slot(bool)
    def _on_pause_toggled(self, is_paused: bool) -> None:  # noqa: FBT001
        # Readings go on; only the curves stand still, so that they can be looked at.
        self._paused_s = time.perf_counter() if is_paused else None
        name = self.tr("Go on with the curves") if is_paused else self.tr("Pause the curves")
        self._pause.setAccessibleName(name)
        self._pause.setToolTip(name)
        self.kit.icons.bind(self._pause, "play" if is_paused else "pause", "text")
        self._refresh()

    @Slot(bool)
    def _on_processes_toggled(self, is_shown: bool) -> None:  # noqa: FBT001
        for card in self._cards_shown:
            if isinstance(card, GpuCard):
                card.show_programs(is_shown)
        self._refresh()

    @Slot()
    def _on_export_clicked(self) -> None:
        dialog = QFileDialog(self, self.tr("Export readings"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("csv")
        dialog.setNameFilter(self.tr("CSV files (*.csv)"))
        dialog.selectFile("rigtune-readings.csv")
        dialog.fileSelected.connect(self.export_to)
        dialog.open()

    @Slot(str)
    def export_to(self, path: str) -> None:
        """Write everything that is kept to ``path``."""
        make: Callable[[], str] = partial(csv_text, self._feed, self._columns())
        self.export_requested.emit(path, make)

    def _columns(self) -> list[Column]:
        return [
            Column(
                device=card.name, key=HOST if isinstance(card, HostCard) else card.key,
                field=strip.field, unit=strip.info.unit, scale=strip.info.scale,
                offset=strip.info.offset,
            )
            for card in self._cards_shown
            for strip in card.quantities
        ]  # fmt: skip

    @Slot()
    def _on_feed_updated(self) -> None:
        if self._paused_s is None:
            self._refresh()

    @Slot()
    def _refresh(self) -> None:
        if not self.isVisible():
            return
        for card in self._cards_shown:
            if not card.has_readings:  # it finds its height now
                self._slices.add([partial(self._refresh_card, card)])
            elif not card.visibleRegion().isEmpty():  # one that is scrolled away costs nothing
                self._refresh_card(card)

    def _refresh_card(self, card: GpuCard | HostCard) -> None:
        card.refresh(self._feed, (float(self._window.currentData()), self._paused_s))

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._feed.set_active(True)
        self._refresh()

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._feed.set_active(False)
