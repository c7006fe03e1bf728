"""Icons: SVG files tinted with the colours of the look in use."""

import weakref
from functools import partial

import shiboken6
from PySide6.QtCore import QByteArray, QObject, QRectF, Qt, Slot
from PySide6.QtGui import QAction, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel

from app.runtime import asset
from views.slices import Slices
from views.theme import Theme

SIZES_PX = (16, 20, 24, 32, 48, 64)

Target = QAbstractButton | QAction | QLabel


class Icons(QObject):
    """Draws icons, and draws them again where they are in use when the look changes.

    The files are read once, at start-up: nothing opens a file on the GUI thread later.
    """

    def __init__(self, theme: Theme) -> None:
        """Read every icon of ``assets/icons``."""
        super().__init__(theme)
        self._theme = theme
        self._svg = {p.stem: p.read_text("utf-8") for p in asset("icons").glob("*.svg")}
        self._cache: dict[tuple[str, str], QIcon] = {}
        self._used: weakref.WeakKeyDictionary[Target, tuple[str, str, int]] = (
            weakref.WeakKeyDictionary()
        )
        self._slices = Slices(self)
        theme.changed.connect(self._on_theme_changed)

    @property
    def names(self) -> tuple[str, ...]:
        """Every icon there is."""
        return tuple(sorted(self._svg))

    @property
    def is_settled(self) -> bool:
        """Whether every icon is in the colours in use."""
        return not self._slices.is_busy

    def icon(self, name: str, color: str = "text") -> QIcon:
        """Return the icon ``name`` in a colour of the look (a field of ``Colors``)."""
        tint = getattr(self._theme.colors, color)
        key = (name, tint)
        if key not in self._cache:
            self._cache[key] = self._draw(name, tint)
        return self._cache[key]

    def bind(self, target: Target, name: str, color: str = "text", size_px: int = 20) -> None:
        """Show an icon on ``target``, now and after every change of the look."""
        self._used[target] = (name, color, size_px)
        self._show(target, name, color, size_px)

    def _show(self, target: Target, name: str, color: str, size_px: int) -> None:
        icon = self.icon(name, color)
        if isinstance(target, QLabel):
            target.setPixmap(icon.pixmap(size_px, size_px))
        else:
            target.setIcon(icon)

    @Slot()
    def _on_theme_changed(self) -> None:
        self._slices.clear()
        self._slices.add(partial(self._show_again, target) for target in list(self._used))
        if not any(w.isVisible() for w in QApplication.topLevelWidgets()):
            self._slices.finish()

    def _show_again(self, target: Target) -> None:
        if shiboken6.isValid(target) and target in self._used:
            self._show(target, *self._used[target])

    def _draw(self, name: str, tint: str) -> QIcon:
        icon = QIcon()
        disabled = self._theme.colors.control
        for mode, color in ((QIcon.Mode.Normal, tint), (QIcon.Mode.Disabled, disabled)):
            data = QByteArray(self._svg[name].replace("currentColor", color).encode())
            renderer = QSvgRenderer(data)
            for size in SIZES_PX:
                pixmap = QPixmap(size, size)
                pixmap.fill(Qt.GlobalColor.transparent)
                painter = QPainter(pixmap)
                renderer.render(painter, QRectF(0, 0, size, size))
                painter.end()
                icon.addPixmap(pixmap, mode)
        return icon
