"""Why the recommendation is what it is: a sentence per reason."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from views.widgets.basics import Heading, Kit, text_label


class Reasons(QWidget):
    """Sentences as a list; lines that wrap stand below their own text, not below the dot."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        self._texts: tuple[str, ...] = ()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(kit.unit)
        self._column.addWidget(Heading(self.tr("Why"), 1.1))
        self._rows: QWidget | None = None

    def text(self) -> str:
        """Return what it says, a line per reason."""
        return "\n".join(self._texts)

    def show_texts(self, texts: Sequence[str]) -> None:
        """Show ``texts`` instead of what was there."""
        self._texts = tuple(texts) or (self.tr("No reasons were recorded."),)
        if self._rows is not None:
            self._rows.hide()
            self._rows.deleteLater()
        self._rows = QWidget()
        grid = QGridLayout(self._rows)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(2 * self._kit.unit)
        grid.setVerticalSpacing(self._kit.unit)
        grid.setColumnStretch(1, 1)
        for row, text in enumerate(self._texts):
            grid.addWidget(text_label("•", wrap=False), row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(text_label(text, is_selectable=False), row, 1)
        self._column.addWidget(self._rows)
