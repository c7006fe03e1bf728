"""A plot, its table and its summary: three ways to the same numbers."""

from collections.abc import Sequence

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QComboBox, QStackedWidget, QVBoxLayout, QWidget

from views.plots.axes import Axes
from views.widgets.basics import Heading, Kit, text_label
from views.widgets.flow import Flow
from views.widgets.table import Table


class PlotTwin(QWidget):
    """Title, a switch between graph and table, and one sentence that says it all."""

    def __init__(self, kit: Kit) -> None:
        """Build nothing yet: ``build`` needs texts that only a finished object can translate."""
        super().__init__()
        self._kit = kit
        self._made: Axes | None = None

    @property
    def _axes(self) -> Axes:
        """The axes, made when something is drawn first: they take longer than all the rest."""
        if self._made is None:
            self._made = Axes(self._kit, "", "")
            self._made.setParent(self)
            self._holder.addWidget(self._made.widget)
            self._made.widget.setAccessibleName(self.title.text())
            self._made.widget.setAccessibleDescription(self.summary)
        return self._made

    def _is_ready_to_draw(self, again: QTimer) -> bool:
        """Whether the axes are there; if not, they are made now and ``again`` draws next turn."""
        if self._made is not None:
            return True
        _ = self._axes
        again.start(0)
        return False

    def build(self, title: str, headers: Sequence[str], text_columns: int = 1) -> None:
        """Put the plot beside a table with ``headers``."""
        kit = self._kit
        plot = QWidget()
        plot.setMinimumHeight(45 * kit.unit)
        self._holder = QVBoxLayout(plot)
        self._holder.setContentsMargins(0, 0, 0, 0)
        self.column = column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * kit.unit)
        self.top = Flow(2 * kit.unit)
        self.title = Heading(title, 1.1)
        self.top.addWidget(self.title)
        self.top.add_gap()
        self._switch = kit.button(self.tr("Table"), "table", "quiet")
        self._switch.setCheckable(True)
        self._switch.setAccessibleName(self.tr("Show as table: {title}").format(title=title))
        self.top.addWidget(self._switch)
        column.addWidget(self.top)
        self._stack = QStackedWidget()
        self.table = Table(kit, title, headers, text_columns)
        self._stack.addWidget(plot)
        self._stack.addWidget(self.table)
        column.addWidget(self._stack, 1)
        self._summary = text_label(muted=True)
        column.addWidget(self._summary)
        self._switch.toggled.connect(self._on_switch_toggled)

    def add_choice(self, name: str) -> QComboBox:
        """Add a choice beside the title."""
        box = QComboBox()
        box.setAccessibleName(name)
        box.setToolTip(name)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.top.insert_widget(self.top.count() - 1, box)
        return box

    def say(self, summary: str) -> None:
        """Show the sentence; it also describes the plot to a screen reader."""
        self._summary.setText(summary)
        self._summary.setVisible(bool(summary))
        if self._made is not None:
            self._made.widget.setAccessibleDescription(summary)

    @property
    def summary(self) -> str:
        """The sentence."""
        return self._summary.text()

    @Slot(bool)
    def _on_switch_toggled(self, is_table: bool) -> None:  # noqa: FBT001
        self._stack.setCurrentIndex(int(is_table))
