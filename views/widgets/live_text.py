"""Running text that changes every second without having its page laid out anew."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from views.widgets.basics import Kit

_FLAGS = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignTop


class LiveText(QWidget):
    """A muted text, wrapped; a label would ask for a new layout with every change."""

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        self._kit = kit
        self._text = ""
        self._high = 0
        self._measured: tuple[object, int] = (None, 0)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        kit.theme.changed.connect(self.update)

    def text(self) -> str:
        """Return what it says."""
        return self._text

    def show_text(self, text: str) -> None:
        """Say ``text``; the page is laid out anew only where it takes more or fewer lines."""
        if text == self._text:
            return
        self._text = text
        self.setAccessibleName(text)
        if self.heightForWidth(self.width()) != self._high:
            self.updateGeometry()
        self.update()

    @override
    def heightForWidth(self, width: int) -> int:
        # Asked for by the text, the layout and the painting: breaking lines takes a while.
        what = (self._text, width, self.font().key())
        if what != self._measured[0]:
            metrics = self.fontMetrics()
            area = QRect(0, 0, max(1, width), 100 * metrics.height())
            lines = metrics.boundingRect(area, _FLAGS, self._text)
            self._measured = (what, max(metrics.height(), lines.height()))
        return self._measured[1]

    @override
    def sizeHint(self) -> QSize:
        return QSize(40 * self._kit.unit, self.heightForWidth(max(self.width(), 1)))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(10 * self._kit.unit, self.fontMetrics().height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.heightForWidth(self.width()) != self._high:
            self.updateGeometry()  # the layout would keep the height it was told for another width

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        self._high = self.heightForWidth(self.width())
        painter = QPainter(self)
        painter.setPen(self._kit.theme.color("muted"))
        painter.drawText(self.rect(), int(_FLAGS), self._text)
