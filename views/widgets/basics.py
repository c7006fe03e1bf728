"""Labels, cards and buttons in the window's own style."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QFrame,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.domain.units import MISSING
from views.icons import Icons
from views.options import Options
from views.theme import Theme, scale_font, unit, use_tabular_digits


class Kit:
    """What every widget of the window is built with: look, icons, spacing, preferences."""

    def __init__(self, theme: Theme, icons: Icons, options: Options | None = None) -> None:
        """Take them from the composition root."""
        self.theme = theme
        self.icons = icons
        self.options = options or Options()

    @property
    def unit(self) -> int:
        """The step all spacing is made of, pixels."""
        return unit(QApplication.font())

    def button(self, text: str, icon: str | None = None, role: str = "") -> QPushButton:
        """Return a push button; ``role`` is ``primary``, ``quiet`` or nothing."""
        # Fusion leaves hardly a gap between icon and text, and a style sheet cannot add one.
        button = QPushButton(f" {text}" if icon and text else text)
        button.setAccessibleName(text.replace("&", ""))
        button.setAutoDefault(True)  # outside dialogs Return would press no button but Space
        button.setIconSize(QSize(self.unit * 4, self.unit * 4))
        if role:
            button.setProperty("role", role)
        if icon == "next":
            button.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        if icon:
            color = "on_accent" if role == "primary" else "text"
            self.icons.bind(button, icon, color, self.unit * 4)
        return button

    def icon_button(self, name: str, icon: str) -> QPushButton:
        """Return a quiet button that shows an icon only; ``name`` is read aloud and on hover."""
        button = self.button("", icon, "quiet")
        button.setAccessibleName(name)
        button.setToolTip(name)
        return button

    def icon_label(self, icon: str, color: str = "muted", size_px: int = 0) -> QLabel:
        """Return an icon that decorates the text beside it."""
        label = QLabel()
        self.icons.bind(label, icon, color, size_px or self.unit * 5)
        label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        return label


class Heading(QLabel):
    """A title, larger than the text and known as such to nobody but the eye."""

    def __init__(self, text: str, factor: float = 1.35) -> None:
        """Show ``text`` at ``factor`` times the normal size."""
        super().__init__(text)
        scale_font(self, factor, bold=True)
        self.setWordWrap(False)


class Card(QFrame):
    """A framed area with the distances of the house; add to ``column``."""

    def __init__(self, kit: Kit, role: str = "card") -> None:
        """Build an empty card."""
        super().__init__()
        self.setProperty("role", role)
        self.column = QVBoxLayout(self)
        pad = 4 * kit.unit
        self.column.setContentsMargins(pad, pad, pad, pad)
        self.column.setSpacing(2 * kit.unit)

    def add_left(self, widget: QWidget) -> None:
        """Add a widget that keeps its own width."""
        self.column.addWidget(widget, 0, Qt.AlignmentFlag.AlignLeft)


class ValueLabel(QLabel):
    """A number with its unit, or "—" with the reason why there is none."""

    def __init__(self, name: str, factor: float = 1.0, *, bold: bool = False) -> None:
        """Start without a value.

        Args:
            name: What the number is; read before it by a screen reader.
            factor: Size relative to the normal text.
            bold: Whether it stands out.
        """
        super().__init__(MISSING)
        self._name = name
        scale_font(self, factor, bold=bold)
        use_tabular_digits(self)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.setAccessibleName(f"{name}: {MISSING}")

    def set_value(self, text: str | None, reason: str = "") -> None:
        """Show ``text``; ``None`` shows "—" and keeps ``reason`` for hover and screen reader."""
        shown = MISSING if text is None else text
        if shown == self.text() and reason == self.toolTip():
            return
        self.setText(shown)
        self.setToolTip(reason)
        self.setAccessibleName(f"{self._name}: {shown}")
        self.setAccessibleDescription(reason)


def primary(button: QPushButton) -> QPushButton:
    """Mark the one action of a view that most people want."""
    button.setProperty("role", "primary")
    button.setDefault(True)
    return button


def text_label(
    text: str = "", *, muted: bool = False, wrap: bool = True, is_selectable: bool = True
) -> QLabel:
    """Return running text that can be selected with the mouse, or a caption of one line."""
    label = QLabel(text)
    label.setWordWrap(wrap)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if wrap and is_selectable:  # makes a document of each: too dear for fifty captions
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if muted:
        label.setProperty("role", "muted")
    return label


def indent(spin: QAbstractSpinBox) -> None:
    """Keep a number off the left border: a style sheet's padding does not reach it."""
    line = spin.findChild(QLineEdit)
    if isinstance(line, QLineEdit):
        line.setTextMargins(spin.fontMetrics().averageCharWidth(), 0, 0, 0)


def set_tone(widget: QWidget, tone: str) -> None:
    """Change a widget's tone (``good``, ``warn``, ``bad``, ``info``, ``muted``) and repaint it."""
    widget.setProperty("tone", tone)
    widget.style().unpolish(widget)
    widget.style().polish(widget)
