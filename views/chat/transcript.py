"""The turns of a conversation; only rows in sight (and a little around) are widgets."""

import time
from bisect import bisect_right
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRect, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QFrame, QWidget
from typing_extensions import override

from views.chat.drawing import Drawer, RowWidget, draw_area, draw_focus, order_tabs
from views.chat.head import COPY, Head
from views.chat.rows import HEAD, UNKNOWN, Row, Turn
from views.chat.turns import TurnView
from views.widgets import Kit

BUDGET_NS = 15_000_000
"""Time for making rows in one go; more are made when the window has drawn and answered."""
KEEP_SCREENS = 2


class Transcript(QAbstractScrollArea):
    """A column of turns, the newest in sight unless the user reads further up.

    Signals:
        acted: Action (``edit``, ``retry``, ``go_on``, ``delete``) and the turn's ``TurnView``.
        switched: Id of the turn to bring into view.
    """

    acted = Signal(str, object)
    switched = Signal(int)

    def __init__(self, kit: Kit) -> None:
        """Start empty."""
        super().__init__()
        self._kit = kit
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Conversation"))
        self.viewport().setAutoFillBackground(False)
        self.turns: list[Turn] = []
        self._rows: list[Row] = []
        self._tops: list[int] = []
        self._widgets: dict[Row, RowWidget] = {}
        self._drawer = Drawer(kit, self._on_acted, self.switched.emit, self._on_folded)
        self._follows = True
        self._is_placing = False
        self._has_new = False
        self._unit = 0
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(0)
        self._rest.timeout.connect(self._place)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        kit.theme.changed.connect(self._on_look_changed)
        QApplication.instance().focusChanged.connect(self._on_focus_changed)  # type: ignore[union-attr]

    # --- what is said ----------------------------------------------------------------------

    def show_turns(self, views: Sequence[TurnView]) -> None:
        """Show these turns; those that are the same as before stay as they are."""
        kept = 0
        for turn, view in zip(self.turns, views, strict=False):
            if (turn.view.role, turn.text) != (view.role, view.content):
                break
            if not turn.is_growing and turn.reasoning != view.reasoning:
                break
            turn.adopt(view)
            kept += 1
        if kept < len(views):
            self._follows = True
        self.turns = [*self.turns[:kept], *(Turn(view) for view in views[kept:])]
        self._renew()

    def begin(self, *, continues: bool) -> None:
        """An answer comes next, as a new turn or as more of the last one."""
        if continues and self.turns and self.turns[-1].view.role == "assistant":
            self.turns[-1] = Turn(self.turns[-1].view, is_growing=True)
        else:
            self.turns.append(Turn(TurnView(role="assistant", content=""), is_growing=True))
        self._follows = True
        self._drawer.note = ""
        self._renew()

    def append(self, text: str, *, is_thought: bool = False) -> None:
        """Add what just arrived to the turn that grows."""
        if not self.turns or not self.turns[-1].is_growing:
            return
        turn = self.turns[-1]
        row, has_changed = turn.append(text, is_thought=is_thought)
        if turn.fold in self._widgets and (is_thought or has_changed):
            self._drawer.fill(turn.fold, self._widgets[turn.fold])
        if has_changed:
            self._renew()
        elif row is not None:
            self._grow(row)

    def end(self, note: str = "") -> None:
        """The answer has ended; ``note`` says so where timings do not."""
        turn = self.turns[-1] if self.turns else None
        if turn is not None and turn.is_growing:
            turn.adopt(turn.view)
            self._drawer.note = note
        self._renew()

    def set_busy(self, is_busy: bool) -> None:  # noqa: FBT001
        """Offer nothing that needs the engine's side while it answers."""
        self._drawer.is_busy = is_busy
        self._fill_heads()

    def reveal(self, turn_id: int) -> None:
        """Scroll to a turn."""
        for turn in self.turns:
            if turn.view.id == turn_id:
                self._follows = False
                self.verticalScrollBar().setValue(turn.head.y)

    def _in_order(self) -> list[RowWidget]:
        return [self._widgets[row] for row in sorted(self._widgets, key=lambda row: row.y)]

    # --- rows ------------------------------------------------------------------------------

    def _renew(self) -> None:
        """Take over which rows there are."""
        self._rows = [row for turn in self.turns for row in turn.rows()]
        for row in self._widgets.keys() - set(self._rows):
            self._drop(row)
        self._fill_heads()
        self._place()

    def _grow(self, row: Row) -> None:
        """Show what came in a row; where it is the last one, no other needs to be looked at."""
        widget = self._widgets.get(row)
        if widget is None or row is not self._rows[-1] or row.width != self._width():
            row.width = UNKNOWN
            self._place()
            return
        self._drawer.fill(row, widget)
        height = widget.fit(row.width)
        if height == row.height:
            return
        row.height = height
        self._is_placing = True
        try:
            self._reach(row.y + height)
            if self._follows:
                self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
            self._move()
        finally:
            self._is_placing = False
        if row.width != self._width():  # the bar came into sight
            self._place()

    @Slot()
    def _place(self) -> None:
        """Put every row where it belongs, and make those in sight."""
        self._arrange(BUDGET_NS)

    def _arrange(self, budget_ns: int) -> None:
        if self._is_placing:
            return
        self._is_placing = True
        try:
            deadline_ns = time.perf_counter_ns() + budget_ns
            is_complete = False
            while not is_complete and time.perf_counter_ns() < deadline_ns:
                self._measure()
                is_complete = self._make_one()
            self._measure()
            self._move()
            if not is_complete:
                self._rest.start()
        finally:
            self._is_placing = False

    def _measure(self) -> None:
        """Stack the rows, keeping what is read where it is."""
        bar = self.verticalScrollBar()
        anchor = self._first_seen()
        offset = bar.value() - anchor.y if anchor is not None else 0
        gap, width = self._gap(), self._width()
        y, self._tops = gap, []
        metrics = self.fontMetrics()
        line, per_line = metrics.lineSpacing(), max(10, width // max(1, metrics.averageCharWidth()))
        for row in self._rows:
            if row.kind == HEAD and self._tops:
                y += 4 * gap
            row.y = y
            self._tops.append(y)
            if row.width == UNKNOWN:
                row.height = row.height or row.guess(per_line, line)
            elif row.width != width and row in self._widgets:
                row.height, row.width = self._widgets[row].fit(width), width
            y += row.height
        self._reach(y)
        bar.setPageStep(self.viewport().height())
        bar.setSingleStep(3 * line)
        bar.setValue(bar.maximum() if self._follows or anchor is None else anchor.y + offset)

    def _reach(self, bottom: int) -> None:
        """Let the bar scroll to the end of the last row."""
        high = self.viewport().height()
        self.verticalScrollBar().setRange(0, max(0, bottom + 2 * self._gap() - high))

    def _make_one(self) -> bool:
        """Make the next row that is in sight; return whether there is none."""
        first, last = self._range(0)
        wanted = range(first, last)
        for index in reversed(wanted) if self._follows else wanted:
            row = self._rows[index]
            widget = self._widgets.get(row)
            if widget is None:
                widget = self._drawer.make(row, self.viewport())
                self._widgets[row] = widget
                self._has_new = True
            elif row.width != UNKNOWN:
                continue
            self._drawer.fill(row, widget)
            row.height, row.width = widget.fit(self._width()), self._width()
            return False
        return True

    def _fill_heads(self) -> None:
        self._drawer.last = self.turns[-1] if self.turns else None
        for row, widget in self._widgets.items():
            if isinstance(widget, Head):
                self._drawer.fill(row, widget)

    def _move(self) -> None:
        """Show the made rows where they belong, and give back those far away."""
        top = self.verticalScrollBar().value()
        first, last = self._range(KEEP_SCREENS * self.viewport().height())
        near = set(self._rows[first:last])
        side, width = 3 * self._gap(), self._width()
        focus = QApplication.focusWidget() or self
        for row in list(self._widgets):
            widget = self._widgets[row]
            if row not in near and not row.is_open and not widget.isAncestorOf(focus):
                self._drop(row)
                continue
            widget.setGeometry(QRect(side, row.y - top, width, row.height))
            widget.show()
        if self._has_new:
            self._has_new = False
            order_tabs(self._in_order())
        self.viewport().update()

    def _drop(self, row: Row) -> None:
        widget = self._widgets.pop(row)
        widget.hide()
        widget.deleteLater()

    def _range(self, margin: int) -> tuple[int, int]:
        """Return first and last (exclusive) index of the rows in sight, and ``margin`` around."""
        top = self.verticalScrollBar().value()
        first = max(0, bisect_right(self._tops, top - margin) - 1)
        last = bisect_right(self._tops, top + self.viewport().height() + margin)
        return first, last

    def _first_seen(self) -> Row | None:
        if not self._tops or len(self._tops) != len(self._rows):
            return next((r for r in self._rows if r.y >= self.verticalScrollBar().value()), None)
        first, _ = self._range(0)
        return self._rows[first] if first < len(self._rows) else None

    def _gap(self) -> int:
        if not self._unit:
            self._unit = self._kit.unit
        return self._unit

    def _width(self) -> int:
        return max(50, self.viewport().width() - 6 * self._gap())

    # --- events ----------------------------------------------------------------------------

    @Slot(int)
    def _on_scrolled(self, value: int) -> None:
        if not self._is_placing:
            self._follows = value >= self.verticalScrollBar().maximum() - 4
            self._place()

    def _on_folded(self, row: Row, is_open: bool) -> None:  # noqa: FBT001
        row.turn.is_unfolded = is_open
        self._follows = False
        self._drawer.fill(row, self._widgets[row])
        self._renew()

    def _on_acted(self, action: str, turn: Turn) -> None:
        if action == COPY:
            QGuiApplication.clipboard().setText(turn.text)
        else:
            self.acted.emit(action, turn.view)

    @Slot()
    def _on_look_changed(self) -> None:
        for row in list(self._widgets):
            self._drop(row)
        self._place()

    @Slot(QWidget, QWidget)
    def _on_focus_changed(self, _old: QWidget | None, new: QWidget | None) -> None:
        if new is None or not self.viewport().isAncestorOf(new):
            return
        row = next((r for r, w in self._widgets.items() if w is new or w.isAncestorOf(new)), None)
        bar, high = self.verticalScrollBar(), self.viewport().height()
        if row is not None and not bar.value() <= row.y <= bar.value() + high - row.height:
            bar.setValue(row.y if row.y < bar.value() else row.y + min(row.height, high) - high)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(0)  # what came into sight is made in turns of its own

    @override
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._unit = 0
            for row in self._rows:
                row.width = UNKNOWN
            self._place()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        if event.key() == Qt.Key.Key_Home:
            bar.setValue(0)
        elif event.key() == Qt.Key.Key_End:
            bar.setValue(bar.maximum())
        else:
            super().keyPressEvent(event)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the area behind each turn in sight, and the focus ring."""
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        gap, top = self._gap(), self.verticalScrollBar().value()
        wide = self.viewport().width() - 2 * gap
        first, last = self._range(0)
        # the last of a turn's rows in sight says where its area ends
        bottoms = {row.turn: row.y + row.height for row in self._rows[first:last]}
        for turn, bottom in bottoms.items():
            area = QRect(gap, turn.head.y - top, wide, bottom - turn.head.y + 2 * gap)
            draw_area(painter, self._kit, area, is_user=turn.view.role == "user")
        if self.hasFocus():
            draw_focus(painter, self._kit, self.viewport().rect())
