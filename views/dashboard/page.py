"""The live page: a card per GPU, one for CPU and RAM."""

from collections import deque

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QComboBox, QVBoxLayout, QWidget
from typing_extensions import override

from app.domain.errors import ErrorInfo
from app.domain.machine import Gpu, HostInfo, Machine
from views.dashboard.gpu_card import GpuCard
from views.dashboard.host_card import HostCard
from views.feed import TelemetryFeed
from views.page import Page, scrolling
from views.power.panel import PowerPanel
from views.widgets import Banner, EmptyState, Kit

WINDOWS_S = (60, 300, 1800)


class DashboardPage(Page):
    """Shows what this machine is and does.

    Signals:
        tune_requested: "Find best settings" was pressed.
    """

    tune_requested = Signal()

    def __init__(self, kit: Kit, feed: TelemetryFeed) -> None:
        """Build the page; the machine comes later."""
        super().__init__(kit, "")
        self.title.setText(self.tr("Dashboard"))
        self._feed = feed
        self._cards_shown: tuple[GpuCard | HostCard, ...] = ()
        self._to_build: deque[Gpu | HostInfo] = deque()
        self._turn = QTimer(self)
        self._turn.setInterval(0)
        self._turn.timeout.connect(self._on_turn)
        self._window = QComboBox()
        self._window.setAccessibleName(self.tr("Time shown"))
        names = (self.tr("Last minute"), self.tr("Last 5 minutes"), self.tr("Last 30 minutes"))
        for seconds, name in zip(WINDOWS_S, names, strict=True):
            self._window.addItem(name, seconds)
        self._as_table = kit.button(self.tr("Table"), "table", "quiet")
        self._as_table.setCheckable(True)
        self._as_table.setAccessibleName(self.tr("Show readings as table"))
        self._tune = kit.button(self.tr("Find Best Settings"), "tune", "primary")
        for widget in (self._window, self._as_table, self._tune):
            self.top.addWidget(widget)
        self._banner = Banner(kit)
        self.body.addWidget(self._banner)
        self.power = PowerPanel(kit)
        self.body.addWidget(self.power)
        self._waiting = EmptyState(
            kit, "gpu", self.tr("Looking at your machine…"),
            self.tr("Probes read the drivers, and the engine lists its devices."),
        )  # fmt: skip
        self.body.addWidget(self._waiting, 1)
        self._cards = QWidget()
        self._column = QVBoxLayout(self._cards)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(3 * kit.unit)
        self._area = scrolling(self._cards)
        self._area.hide()
        self.body.addWidget(self._area, 1)
        feed.updated.connect(self._on_feed_updated)
        self._window.currentIndexChanged.connect(self._on_feed_updated)
        self._tune.clicked.connect(self.tune_requested)

    def show_machine(self, machine: Machine) -> None:
        """Build the cards of ``machine``."""
        self._waiting.hide()
        self._clear()
        self._to_build = deque([*machine.gpus, machine.host])
        self._turn.start()
        if not machine.gpus:
            self._banner.say(self.tr(
                "No GPU found: neither a driver nor the engine reports one. "
                "Everything works on the CPU, only slower."
            ))  # fmt: skip
        self._area.show()

    @property
    def is_ready(self) -> bool:
        """Whether every card is there."""
        return bool(self._cards_shown) and not self._to_build

    @Slot()
    def _on_turn(self) -> None:
        # One card per turn of the event loop: eight at once would hold the window.
        device = self._to_build.popleft()
        card = GpuCard(self.kit, device) if isinstance(device, Gpu) else HostCard(self.kit, device)
        self._column.addWidget(card)
        self._as_table.toggled.connect(card.show_as_table)
        card.show_as_table(self._as_table.isChecked())
        self._cards_shown = (*self._cards_shown, card)
        if self._to_build:
            return
        self._turn.stop()
        self._column.addStretch(1)
        self._on_feed_updated()

    def stop(self) -> None:
        """Build no more."""
        self._turn.stop()

    def show_problem(self, error: ErrorInfo) -> None:
        """Say that the machine could not be read."""
        self._banner.show_error(error)
        self._waiting.say(self.tr("This machine could not be read."))

    def _clear(self) -> None:
        self._cards_shown = ()
        while item := self._column.takeAt(0):
            if (widget := item.widget()) is not None:
                widget.deleteLater()

    @Slot()
    def _on_feed_updated(self) -> None:
        if not self.isVisible():
            return
        window_s = float(self._window.currentData())
        for card in self._cards_shown:
            # A card that is scrolled away costs nothing, once it has found its height.
            if not (card.has_readings and card.visibleRegion().isEmpty()):
                card.refresh(self._feed, window_s)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._feed.set_active(True)
        self._on_feed_updated()

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._feed.set_active(False)
