"""A pyqtgraph plot that follows the look of the window."""

import pyqtgraph as pg
from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication, QSizePolicy
from typing_extensions import override

from views.widgets.basics import Kit


class WholeAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """An axis of counts: no tick between two whole numbers."""

    @override
    def tickSpacing(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, float]]:
        spacing = super().tickSpacing(minVal, maxVal, size)
        return [level for level in spacing if level[0] >= 1 and level[0] % 1 == 0] or [(1.0, 0.0)]


class Axes(QObject):
    """Owns one ``PlotWidget``: colours, fonts, grid, no menus, no zooming by accident."""

    def __init__(self, kit: Kit, x_label: str, y_label: str) -> None:
        """Build empty axes."""
        super().__init__()
        self._kit = kit
        self._labels = {"bottom": x_label, "left": y_label}
        # Its menus alone would be forty widgets per plot.
        self.widget = pg.PlotWidget(enableMenu=False, axisItems={"bottom": WholeAxis("bottom")})
        self.plot = self.widget.getPlotItem()
        self.plot.hideButtons()
        self.plot.setMouseEnabled(x=False, y=False)
        self.plot.showGrid(x=True, y=True, alpha=0.15)
        self.widget.setFrameShape(pg.QtWidgets.QFrame.Shape.NoFrame)
        self.widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.widget.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.widget.setMinimumHeight(45 * kit.unit)
        self.items: list[pg.GraphicsObject] = []
        kit.theme.changed.connect(self.restyle)
        self.restyle()

    def set_labels(self, x_label: str, y_label: str) -> None:
        """Change what the axes are called."""
        self._labels = {"bottom": x_label, "left": y_label}
        self.restyle()

    def clear(self) -> None:
        """Remove everything drawn."""
        for item in self.items:
            self.plot.removeItem(item)
        self.items.clear()

    def add(self, item: "pg.GraphicsObject") -> None:
        """Draw ``item``."""
        self.plot.addItem(item)
        self.items.append(item)

    def pen(self, color: str, width: float = 1.0, *, dashed: bool = False) -> object:
        """Return a cosmetic pen in a colour of the look."""
        style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
        return pg.mkPen(self._kit.theme.color(color), width=width, style=style)

    def brush(self, color: str, alpha: float = 1.0) -> object:
        """Return a brush in a colour of the look."""
        shade = self._kit.theme.color(color)
        shade.setAlphaF(alpha)
        return pg.mkBrush(shade)

    def add_text(self, text: str, x: float, y: float, anchor: tuple[float, float]) -> None:
        """Write ``text`` beside a point of the plot."""
        item = pg.TextItem(
            text, color=self._kit.theme.color("text"), anchor=anchor,
            fill=self.brush("surface", 0.85),
        )  # fmt: skip
        item.setPos(x, y)
        self.add(item)

    @Slot()
    def restyle(self) -> None:
        """Take colours and fonts of the look in use."""
        theme = self._kit.theme
        self.widget.setBackground(theme.color("surface"))
        font = QFont(QApplication.font())
        for side, label in self._labels.items():
            axis = self.plot.getAxis(side)
            axis.setPen(pg.mkPen(theme.color("control")))
            axis.setTextPen(pg.mkPen(theme.color("muted")))
            axis.setTickFont(font)
            axis.enableAutoSIPrefix(False)
            axis.setLabel(label, color=theme.colors.muted)
            axis.label.setFont(font)
