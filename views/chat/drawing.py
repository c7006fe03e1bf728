"""Makes and fills the widgets of a transcript's rows, and draws what lies behind them."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from PySide6.QtCore import QObject, QRect, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QWidget

from views.chat.blocks import CodeBlock, Fold, TextBlock
from views.chat.head import Head
from views.chat.rows import FOLD, HEAD, THOUGHT, Row, Turn
from views.chat.segments import CODE, TEXT
from views.widgets import Kit

RowWidget = Head | Fold | TextBlock | CodeBlock


class Drawer(QObject):
    """Knows how each kind of row looks.

    Attributes:
        is_busy: Whether an answer comes, so that turns cannot be changed.
        last: The newest turn.
        note: What stands in for its timings; empty = the timings.
    """

    def __init__(
        self,
        kit: Kit,
        on_acted: Callable[[str, Turn], None],
        on_switched: Callable[[int], None],
        on_folded: Callable[[Row, bool], None],
    ) -> None:
        """Tell these of what the user does."""
        super().__init__()
        self._kit = kit
        self._on_acted = on_acted
        self._on_switched = on_switched
        self._on_folded = on_folded
        self.is_busy = False
        self.last: Turn | None = None
        self.note = ""

    def make(self, row: Row, parent: QWidget) -> RowWidget:
        """Return a new widget for ``row``, not filled yet."""
        widget: RowWidget
        if row.kind == HEAD:
            widget = self._head(row)
        elif row.kind == FOLD:
            widget = Fold(self._kit, is_open=row.turn.is_unfolded)
            widget.toggled.connect(lambda is_open: self._on_folded(row, is_open))
        elif row.kind in {TEXT, THOUGHT}:
            name = self.tr("You") if row.turn.view.role == "user" else self.tr("Model")
            widget = TextBlock(self._kit, name, muted=row.kind == THOUGHT)
        else:
            widget = self._code(row)
        widget.setParent(parent)
        return widget

    def fill(self, row: Row, widget: RowWidget) -> None:
        """Show what ``row`` says now."""
        match widget:
            case Head():
                turn = row.turn
                is_last = turn is self.last
                widget.show_turn(
                    turn.view,
                    is_last=is_last,
                    is_busy=self.is_busy,
                    note=self.note if is_last else "",
                )
            case Fold():
                is_thinking = row.turn.is_growing and not row.turn.has_text
                widget.say(row.turn.n_thought_words, is_thinking=is_thinking)
            case _:
                self._fill_text(row, widget)

    def _head(self, row: Row) -> Head:
        head = Head(self._kit, row.turn.view.role)
        head.acted.connect(lambda action: self._on_acted(action, row.turn))
        head.switched.connect(self._on_switched)
        return head

    def _code(self, row: Row) -> CodeBlock:
        segment, turn = row.segment, row.turn
        assert segment is not None
        is_code = segment.kind == CODE
        language = segment.language if is_code else self.tr("formula")

        def copied() -> str:
            return turn.code(segment.block) if is_code else segment.text

        return CodeBlock(self._kit, language, is_first=row.is_first, copy=copied)

    def _fill_text(self, row: Row, widget: TextBlock | CodeBlock) -> None:
        assert row.segment is not None
        text, shown = row.segment.text, widget.shown
        if row.is_open and shown is not None and text.startswith(shown):
            widget.append_text(text[len(shown) :])
        elif isinstance(widget, CodeBlock):
            widget.show_text(text)
        else:
            is_markdown = row.turn.view.role != "user" and not row.is_open
            widget.show_text(text, markdown=is_markdown)
        widget.shown = text


def order_tabs(widgets: Sequence[RowWidget]) -> None:
    """Let the Tab key go through the rows in this order."""
    stops = [stop for widget in widgets for stop in _tab_stops(widget)]
    for one, two in pairwise(stops):
        if one.nextInFocusChain() is not two:
            QWidget.setTabOrder(one, two)


def draw_area(painter: QPainter, kit: Kit, area: QRect, *, is_user: bool) -> None:
    """Draw what lies behind a turn."""
    painter.setBrush(kit.theme.color("sunken" if is_user else "surface"))
    painter.setPen(QPen(kit.theme.color("sunken" if is_user else "line"), 1))
    radius = 2 * kit.unit
    painter.drawRoundedRect(area, radius, radius)


def draw_focus(painter: QPainter, kit: Kit, area: QRect) -> None:
    """Draw the ring that says that the keyboard scrolls here."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(kit.theme.color("accent"), 2))
    painter.drawRoundedRect(area.adjusted(1, 1, -1, -1), kit.unit, kit.unit)


def _tab_stops(widget: RowWidget) -> list[QWidget]:
    if isinstance(widget, Head):
        return [widget.back, widget.next, widget.copy, widget.more]
    button = getattr(widget, "button", None)
    return [] if button is None else [button]
