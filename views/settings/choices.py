"""One row of the settings page: a choice among a few words, or among numbers."""

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, QSize, Slot
from PySide6.QtWidgets import QComboBox
from typing_extensions import override

from views.options import Options


class Choice(QComboBox):
    """Shows one preference and changes it at once."""

    def __init__(
        self, options: Options, field: str, name: str, values: Sequence[tuple[object, str]]
    ) -> None:
        """Offer ``values``: what is stored, and its words.

        Args:
            options: Where it is kept.
            field: Which preference.
            name: Read aloud; the label beside it says the same.
            values: Stored value and text of each choice.
        """
        super().__init__()
        self._options = options
        self._field = field
        self.setAccessibleName(name)
        for value, text in values:
            self.addItem(text, value)
        self.show_value()
        self.currentIndexChanged.connect(self._on_chosen)

    def show_value(self) -> None:
        """Show what is stored, without changing it."""
        with QSignalBlocker(self):
            self.setCurrentIndex(self.findData(getattr(self._options.value, self._field)))

    @override
    def minimumSizeHint(self) -> QSize:
        # Very long choices may be cut in a narrow window; the list shows them whole.
        wide = min(38 * self.fontMetrics().averageCharWidth(), self.sizeHint().width())
        return QSize(wide, super().minimumSizeHint().height())

    @Slot(int)
    def _on_chosen(self, index: int) -> None:
        self._options.change(**{self._field: self.itemData(index)})
