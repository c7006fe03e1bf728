"""The line above a turn: who speaks, how fast it was, its branches, and what can be done."""

from PySide6.QtCore import QPoint, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QPushButton

from app.domain.units import format_tok_s
from views.chat.turns import TurnView
from views.theme import scale_font, use_tabular_digits
from views.widgets import Kit
from views.widgets.basics import text_label

COPY, EDIT, RETRY, GO_ON, DELETE = "copy", "edit", "retry", "go_on", "delete"


class Head(QFrame):
    """Shows one turn's line.

    Signals:
        acted: What to do: ``copy``, ``edit``, ``retry``, ``go_on`` or ``delete``.
        switched: Id of the turn to bring into view.
    """

    acted = Signal(str)
    switched = Signal(int)

    def __init__(self, kit: Kit, role: str) -> None:
        """Build it for ``user`` or ``assistant``."""
        super().__init__()
        self._view = TurnView(role=role, content="")
        self._is_last = False
        row = QHBoxLayout(self)
        row.setContentsMargins(0, kit.unit, 0, 0)
        row.setSpacing(2 * kit.unit)
        self.name = self.tr("You") if role == "user" else self.tr("Model")
        who = text_label(self.name, muted=True, wrap=False)
        scale_font(who, 0.92, bold=True)
        row.addWidget(who)
        self._timing = text_label(muted=True, wrap=False)
        scale_font(self._timing, 0.92)
        use_tabular_digits(self._timing)
        row.addWidget(self._timing)
        row.addStretch(1)
        self.back = kit.icon_button(self.tr("Earlier version"), "back")
        self.place = text_label(muted=True, wrap=False)
        use_tabular_digits(self.place)
        self.next = kit.icon_button(self.tr("Later version"), "next")
        self.copy = kit.icon_button(self.tr("Copy this message"), "copy")
        self.more = kit.icon_button(self.tr("More for this message"), "more")
        for widget in (self.back, self.place, self.next, self.copy, self.more):
            row.addWidget(widget)
        self.back.clicked.connect(self._on_back_clicked)
        self.next.clicked.connect(self._on_next_clicked)
        self.copy.clicked.connect(self._on_copy_clicked)
        self.more.clicked.connect(self._on_more_clicked)

    def show_turn(self, view: TurnView, *, is_last: bool, is_busy: bool, note: str = "") -> None:
        """Show ``view``; ``note`` stands in for timings, while an answer comes or was stopped."""
        self._view, self._is_last = view, is_last
        timing = view.timing
        if timing is not None and not note and timing.n_gen:
            note = self.tr("{n} tokens, {speed}").format(
                n=timing.n_gen, speed=format_tok_s(timing.decode_tok_s)
            )
        self._timing.setText(f"·  {note}" if note else "")
        at, count = self._place()
        for widget in (self.back, self.place, self.next):
            widget.setVisible(count > 1)
        self.place.setText(f"{at + 1}/{count}")
        self.place.setAccessibleName(
            self.tr("Version {n} of {all}").format(n=at + 1, all=count)
        )  # fmt: skip
        self.back.setEnabled(at > 0 and not is_busy)
        self.next.setEnabled(at + 1 < count and not is_busy)
        self.more.setEnabled(view.id is not None and not is_busy)

    def fit(self, _width: int) -> int:
        """Return its height, pixels."""
        return self.sizeHint().height()

    def menu(self) -> QMenu:
        """Return what can be done with the turn."""
        menu = QMenu(self)
        menu.setAccessibleName(self.tr("More for this message"))
        rows = []
        if self._view.role == "user":
            rows.append((EDIT, self.tr("Edit and ask again…")))
        elif self._is_last:
            rows.append((RETRY, self.tr("Answer again")))
            rows.append((GO_ON, self.tr("Go on with this answer")))
        rows.append((DELETE, self.tr("Delete from here on…")))
        for action, text in rows:
            menu.addAction(text).triggered.connect(
                lambda _checked=False, action=action: self.acted.emit(action)
            )
        return menu

    def _place(self) -> tuple[int, int]:
        siblings = self._view.siblings
        known = self._view.id is not None and self._view.id in siblings
        return (siblings.index(self._view.id), len(siblings)) if known else (0, 1)

    @Slot()
    def _on_back_clicked(self) -> None:
        self.switched.emit(self._view.siblings[self._place()[0] - 1])

    @Slot()
    def _on_next_clicked(self) -> None:
        self.switched.emit(self._view.siblings[self._place()[0] + 1])

    @Slot()
    def _on_copy_clicked(self) -> None:
        self.acted.emit(COPY)

    @Slot()
    def _on_more_clicked(self) -> None:
        menu = self.menu()
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(_below(self.more))


def _below(button: QPushButton) -> QPoint:
    return button.mapToGlobal(QPoint(0, button.height()))
