"""Two searches side by side: what differs, in settings and in speed."""

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.domain.sweep import Recommended, SweepResult
from app.domain.units import MISSING, format_seconds
from views.results.text import device_text, setting_rows
from views.widgets import Card, Heading, Kit, Table, text_label
from views.words import number, rate_text

translate = QCoreApplication.translate

SAME_FRAC = 0.01
LABEL_SEP = " · "
"""Between a result's name and its time."""


class CompareView(QWidget):
    """A table of both answers, what differs first.

    Signals:
        closed: Back to one result.
    """

    closed = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build it empty."""
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        card = Card(kit)
        row = QHBoxLayout()
        row.addWidget(Heading(self.tr("Compared"), 1.1), 1)
        self.close_button = kit.button(self.tr("Close Comparison"), "close", "quiet")
        self.close_button.clicked.connect(self.closed)
        row.addWidget(self.close_button)
        card.column.addLayout(row)
        self._sentence = text_label()
        card.column.addWidget(self._sentence)
        self.table = Table(
            kit, self.tr("Two results side by side"),
            [self.tr("What"), self.tr("First"), self.tr("Second"), self.tr("Difference")],
        )  # fmt: skip
        self.table.set_elastic(1, 2)
        card.column.addWidget(self.table, 1)
        column.addWidget(card, 1)

    def show_results(self, first: tuple[str, SweepResult], second: tuple[str, SweepResult]) -> None:
        """Compare two results, each with its name."""
        names = column_names(first[0], second[0])
        self.table.rows.set_headers([self.tr("What"), *names, self.tr("Difference")])
        self.table.set_rows(compare_rows(first[1].recommended, second[1].recommended))
        self._sentence.setText(compare_text(first, second))
        self.table.setAccessibleDescription(self._sentence.text())


def column_names(first: str, second: str) -> tuple[str, str]:
    """Return what to write above two columns: of one model, the times tell results apart."""
    (model, _, time), (other, _, other_time) = (n.partition(LABEL_SEP) for n in (first, second))
    return (time, other_time) if model == other and time and other_time else (first, second)


def compare_text(first: tuple[str, SweepResult], second: tuple[str, SweepResult]) -> str:
    """Return which of two is faster, by how much, and whether that is more than noise."""
    one, other = (r.recommended and r.recommended.decode_tok_s for r in (first[1], second[1]))
    if not one or not other:
        return translate("Compare", "One of them has no speed to compare.")
    gain = max(one.median, other.median) / min(one.median, other.median) - 1
    if one.high >= other.low and other.high >= one.low:
        return translate("Compare", "Decode speeds differ by less than measurements scatter.")
    faster = first[0] if one.median > other.median else second[0]
    text = translate("Compare", "{name} decodes {gain}\u00a0% faster.")
    return text.format(name=faster, gain=number(100 * gain))


def compare_rows(one: Recommended | None, other: Recommended | None) -> list[tuple[str, ...]]:
    """Return speeds and settings of both; those that differ stand first."""
    rows = [
        _speed_row(translate("Compare", "Decode, tok/s"), one, other, "decode_tok_s"),
        _speed_row(translate("Compare", "Prefill, tok/s"), one, other, "prefill_tok_s"),
        (translate("Compare", "Time for one request"),
         *(format_seconds(p.request_s) if p else MISSING for p in (one, other)),
         _change(one.request_s if one else None, other.request_s if other else None)),
        (translate("Compare", "Memory"), *(device_text(p) if p else MISSING for p in (one, other)),
         ""),
    ]  # fmt: skip
    values = [
        {label: v for label, v, _ in setting_rows(p.settings)} if p else {} for p in (one, other)
    ]
    labels = dict.fromkeys([*values[0], *values[1]])
    settings = [
        (label, values[0].get(label, MISSING), values[1].get(label, MISSING)) for label in labels
    ]
    settings.sort(key=lambda row: row[1] == row[2])
    differs = translate("Compare", "differs")
    return [*rows, *((*row, "" if row[1] == row[2] else differs) for row in settings)]


def _speed_row(
    name: str, one: Recommended | None, other: Recommended | None, field: str
) -> tuple[str, str, str, str]:
    rates = [getattr(p, field) if p else None for p in (one, other)]
    medians = [r.median if r else None for r in rates]
    return name, rate_text(rates[0]), rate_text(rates[1]), _change(*medians)


def _change(one: float | None, other: float | None) -> str:
    if not one or not other:
        return ""
    change = other / one - 1
    return "=" if abs(change) < SAME_FRAC else f"{change * 100:+.0f}\u00a0%".replace("-", "−")
