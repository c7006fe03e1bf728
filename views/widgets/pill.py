"""A short state: icon and word in one tone, never colour alone."""

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy

from views.theme import scale_font
from views.widgets.basics import Kit, set_tone

# tone -> icon of assets/icons and colour of the look
TONES = {
    "good": ("good", "good"),
    "warn": ("warn", "warn"),
    "bad": ("bad", "bad"),
    "info": ("info", "accent"),
    "muted": ("muted", "muted"),
}


class Pill(QFrame):
    """Says in a word or two how something is, such as "fits" or "asleep"."""

    def __init__(self, kit: Kit, text: str = "", tone: str = "muted", icon: str = "") -> None:
        """Show ``text``; ``icon`` replaces the tone's own."""
        super().__init__()
        self._kit = kit
        self._shown: tuple[str, str, str] | None = None
        self.setProperty("role", "pill")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * kit.unit - 2, kit.unit // 2, 2 * kit.unit, kit.unit // 2)
        row.setSpacing(kit.unit)
        self._icon = QLabel()
        self._text = QLabel()
        scale_font(self._text, 0.92)
        row.addWidget(self._icon)
        row.addWidget(self._text)
        self.show_state(text, tone, icon)

    @property
    def text(self) -> str:
        """What it says."""
        return self._text.text()

    def show_state(self, text: str, tone: str, icon: str = "") -> None:
        """Say ``text`` in ``tone``."""
        if (text, tone, icon) == self._shown:
            return  # live values say the same most of the time
        self._shown = (text, tone, icon)
        own, color = TONES[tone]
        self._text.setText(text)
        set_tone(self._text, tone)
        set_tone(self, tone)
        self._kit.icons.bind(self._icon, icon or own, color, 3 * self._kit.unit + 2)
        self.setAccessibleName(text)
        self.setVisible(bool(text))
