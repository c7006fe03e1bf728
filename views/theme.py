"""Palette, spacing and fonts of the window, switchable while it is open.

The palette is built and set here because Qt's own colour scheme setter does nothing on some
platforms (offscreen, bare X11).
"""

from functools import partial

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory, QWidget

from app.runtime import asset
from views.colors import LIGHT, ROLES, Colors, Scheme, colors_of
from views.slices import Slices
from views.stylesheet import stylesheet


class Theme(QObject):
    """Holds the look in use and applies it to the application.

    Signals:
        changed: The colours are different now; whoever paints by hand paints again.
    """

    changed = Signal()

    def __init__(
        self,
        app: QApplication,
        scheme: Scheme = Scheme.AUTO,
        *,
        strong: bool = False,
    ) -> None:
        """Apply ``scheme`` at once and follow the system from then on.

        Args:
            app: Whose look it is.
            scheme: Light, dark or as the system.
            strong: High contrast, whatever the system says.
        """
        super().__init__(app)
        self._app = app
        self._scheme = scheme
        self._strong = strong
        self._look: tuple[Scheme, bool] | None = None
        self._slices = Slices(self)
        self.colors = LIGHT
        app.setStyle(QStyleFactory.create("Fusion"))
        app.styleHints().colorSchemeChanged.connect(self._on_system_changed)
        self._apply()

    @property
    def scheme(self) -> Scheme:
        """What the user chose."""
        return self._scheme

    @property
    def is_dark(self) -> bool:
        """Whether the dark colours are in use."""
        return self._look is not None and self._look[0] is Scheme.DARK

    def choose(self, scheme: Scheme, *, strong: bool = False) -> None:
        """Change the look while the window is open."""
        self._scheme = scheme
        self._strong = strong
        self._apply()

    @property
    def is_settled(self) -> bool:
        """Whether every widget has taken the look in use."""
        return not self._slices.is_busy

    @property
    def sheet(self) -> str:
        """The style sheet of a window, the same in every look.

        For the window, not the application: with a style sheet there, each step of building a
        page styles everything built so far again.
        """
        controls = asset("icons/controls").as_posix()
        return stylesheet(ROLES, unit(self._app.font()), controls=controls)

    def color(self, name: str) -> QColor:
        """Return a colour of ``Colors`` by its field name."""
        return QColor(getattr(self.colors, name))

    @Slot()
    def _on_system_changed(self) -> None:
        self._apply()

    def _apply(self) -> None:
        look = (self._resolved(), self._strong or self._wants_contrast())
        if look == self._look:
            return
        self._look = look
        self.colors = colors_of(*look)
        self._app.setPalette(palette_of(self.colors))
        self._repolish()

    def _repolish(self) -> None:
        """Make every widget take the new colours, while open windows keep answering.

        They draw again when all is done, so that nobody sees half of a look.
        """
        windows = [w for w in self._app.topLevelWidgets() if w.isVisible()]
        for window in windows:
            window.setUpdatesEnabled(False)
        self._slices.clear()
        self._slices.add(partial(_polish, widget) for widget in self._app.allWidgets())
        self._slices.add([self.changed.emit, *(partial(_draw_again, w) for w in windows)])
        if not windows:
            self._slices.finish()

    def _resolved(self) -> Scheme:
        if self._scheme is not Scheme.AUTO:
            return self._scheme
        is_dark = self._app.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return Scheme.DARK if is_dark else Scheme.LIGHT

    def _wants_contrast(self) -> bool:
        # QStyleHints.accessibility() came with Qt 6.10; before it the system cannot be asked.
        accessibility = getattr(self._app.styleHints(), "accessibility", None)
        if accessibility is None:
            return False
        preference = accessibility().contrastPreference()
        return bool(preference == Qt.ContrastPreference.HighContrast)


def _polish(widget: QWidget) -> None:
    if shiboken6.isValid(widget):
        style = widget.style()
        style.unpolish(widget)
        style.polish(widget)


def _draw_again(window: QWidget) -> None:
    if shiboken6.isValid(window):
        window.setUpdatesEnabled(True)


def palette_of(colors: Colors) -> QPalette:
    """Return the Qt palette of ``colors``."""
    role = QPalette.ColorRole
    palette = QPalette()
    for target, name in (
        (role.Window, colors.window), (role.WindowText, colors.text), (role.Base, colors.surface),
        (role.AlternateBase, colors.window), (role.Text, colors.text),
        (role.Button, colors.surface), (role.ButtonText, colors.text),
        (role.BrightText, colors.bad), (role.Highlight, colors.accent),
        (role.HighlightedText, colors.on_accent), (role.Link, colors.accent),
        (role.LinkVisited, colors.good), (role.ToolTipBase, colors.surface),
        (role.ToolTipText, colors.text), (role.PlaceholderText, colors.muted),
        (role.Accent, colors.accent), (role.Light, colors.line),
        (role.Midlight, colors.sunken), (role.Mid, colors.control), (role.Dark, colors.control),
        (role.Shadow, colors.warn),
    ):  # fmt: skip
        palette.setColor(target, QColor(name))
    for target in (role.WindowText, role.Text, role.ButtonText, role.HighlightedText):
        palette.setColor(QPalette.ColorGroup.Disabled, target, QColor(colors.control))
    palette.setColor(QPalette.ColorGroup.Disabled, role.Highlight, QColor(colors.sunken))
    return palette


def unit(font: QFont) -> int:
    """Return the step all spacing is made of: a quarter of a text line, pixels, at least 3."""
    return max(3, round(QFontMetrics(font).height() / 4))


def scale_font(widget: QWidget, factor: float, *, bold: bool = False) -> None:
    """Make the text of ``widget`` larger or smaller than the system's font."""
    font = QFont(widget.font())
    if font.pointSizeF() > 0:
        font.setPointSizeF(font.pointSizeF() * factor)
    else:
        font.setPixelSize(round(font.pixelSize() * factor))
    if bold:
        # From here on Qt makes a bold face itself where a font has none, as many Chinese ones.
        font.setWeight(QFont.Weight.Bold)
    widget.setFont(font)


def use_tabular_digits(widget: QWidget) -> None:
    """Give every digit the same width, so that live numbers do not dance."""
    font = QFont(widget.font())
    font.setFeature(QFont.Tag("tnum"), 1)
    widget.setFont(font)
