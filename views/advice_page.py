"""What is worth knowing about this machine, with what to do about it."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.advice.device_facts import device_facts
from app.advice.rule import Evidence
from app.domain.errors import ErrorInfo
from app.domain.finding import Check, CheckStatus, Finding, Severity
from app.domain.machine import Machine
from views import words
from views.page import SCROLLED_UNITS, Page, scrolling
from views.widgets import Card, EmptyState, Heading, Kit, Pill, text_label

TONES = {
    Severity.INFO: "info",
    Severity.HINT: "info",
    Severity.WARNING: "warn",
    Severity.PROBLEM: "bad",
}


class AdvicePage(Page):
    """Findings, most serious first.

    Signals:
        refresh_requested: The machine is to be looked at again.
        test_requested: The self-test is to start, or to stop where it runs.
    """

    refresh_requested = Signal()
    test_requested = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build the page without findings."""
        super().__init__(kit, "", min_units=SCROLLED_UNITS)
        self.title.setText(self.tr("Advice"))
        refresh = kit.button(self.tr("Look Again"), "refresh")
        refresh.clicked.connect(self.refresh_requested)
        self.test = kit.button(self.tr("Test Each Device"), "start")
        self.test.setToolTip(
            self.tr("Starts the engine and runs a trial of about five seconds on every device.")
        )
        self.test.clicked.connect(self.test_requested)
        self.top.addWidget(self.test)
        self.top.addWidget(refresh)
        self._empty = EmptyState(
            kit, "advice", self.tr("Nothing to advise"),
            self.tr("Nothing on this machine stands in the way of a fast model. "
                    "What a search finds out is shown with its result."),
        )  # fmt: skip
        self.body.addWidget(self._empty, 1)
        self._list = QWidget()
        self._column = QVBoxLayout(self._list)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(3 * kit.unit)
        tests = QWidget()
        self._tested = QVBoxLayout(tests)
        self._tested.setContentsMargins(0, 0, 0, 0)
        self._tested.setSpacing(3 * kit.unit)
        self._column.addWidget(tests)  # stays there, whatever the findings are
        self._area = scrolling(self._list)
        self._area.hide()
        self.body.addWidget(self._area, 1)

    def show_findings(self, findings: Sequence[Finding]) -> None:
        """Show ``findings`` instead of what was there."""
        _empty(self._column, keep=1)
        for finding in findings:
            self._column.addWidget(self._card(finding))
        self._column.addStretch(1)
        is_empty = not findings and not self._tested.count()
        self._empty.setVisible(is_empty)
        self._area.setVisible(not is_empty)

    def begin_test(self) -> None:
        """Forget the last self-test: another one begins."""
        _empty(self._tested)
        self._say_test(self.tr("Stop Test"))

    def show_check(self, check: Check) -> None:
        """Show a step of the self-test that has ended."""
        self._tested.addWidget(self._check_card(check))
        self._empty.hide()
        self._area.show()

    def show_test_error(self, error: ErrorInfo) -> None:
        """Say why there is no self-test."""
        self.show_check(
            Check(id=error.code, status=CheckStatus.PROBLEM, text=error.message, hint=error.hint)
        )

    def end_test(self) -> None:
        """Let the next self-test be asked for."""
        self._say_test(self.tr("Test Each Device"))

    def _say_test(self, text: str) -> None:
        self.test.setText(f" {text}")
        self.test.setAccessibleName(text)

    def show_facts(self, machine: Machine) -> None:
        """Show what is worth knowing of the machine's devices beneath the findings."""
        facts = list(device_facts(machine))
        if not facts:
            return
        card = Card(self.kit)
        card.column.addWidget(Heading(self.tr("Devices and time limits"), 1.1))
        for fact in facts:
            card.column.addWidget(text_label(device_text(fact.code, fact.data)))
            if fact.hint is not None:
                card.column.addWidget(text_label(device_text(fact.hint, fact.data), muted=True))
        self._column.insertWidget(self._column.count() - 1, card)
        self._empty.hide()
        self._area.show()

    def _check_card(self, check: Check) -> Card:
        card = Card(self.kit)
        names = {
            CheckStatus.OK: (self.tr("in order"), "good"),
            CheckStatus.WARNING: (self.tr("Warning"), "warn"),
            CheckStatus.PROBLEM: (self.tr("Problem"), "bad"),
            CheckStatus.SKIPPED: (self.tr("left out"), "muted"),
        }
        row = QHBoxLayout()
        row.setSpacing(3 * self.kit.unit)
        row.addWidget(text_label(words.said_text(check.text)), 1)
        row.addWidget(Pill(self.kit, *names[check.status]))
        card.column.addLayout(row)
        if check.hint:
            card.column.addWidget(text_label(words.said_text(check.hint), muted=True))
        return card

    def _card(self, finding: Finding) -> Card:
        card = Card(self.kit)
        row = QHBoxLayout()
        row.setSpacing(3 * self.kit.unit)
        names = {
            Severity.INFO: self.tr("Good to know"), Severity.HINT: self.tr("Hint"),
            Severity.WARNING: self.tr("Warning"), Severity.PROBLEM: self.tr("Problem"),
        }  # fmt: skip
        row.addWidget(text_label(sentence("finding", finding)), 1)
        row.addWidget(Pill(self.kit, names[finding.severity], TONES[finding.severity]))
        card.column.addLayout(row)
        remedy = sentence("remedy", finding)
        if remedy:
            card.column.addWidget(text_label(remedy, muted=True))
        check = sentence("verify", finding)
        if check:
            text = self.tr("To see that it worked: {check}").format(check=check)
            card.column.addWidget(text_label(text, muted=True))
        return card


def _empty(layout: QVBoxLayout, keep: int = 0) -> None:
    """Take everything but the first ``keep`` widgets out of a layout."""
    while item := layout.takeAt(keep):
        if (widget := item.widget()) is not None:
            widget.hide()  # until it is deleted it would show through
            widget.deleteLater()


def sentence(section: str, finding: Finding) -> str:
    """Return a text of the finding; its code where a text is missing."""
    text = words.sentence(section, finding.id, finding.evidence)
    return text or (finding.id.replace("_", " ") if section == "finding" else "")


def device_text(code: str, data: Evidence) -> str:
    """Return the sentence of a fact about devices."""
    return sentence("device", Finding(id=code, severity=Severity.INFO, evidence=data))
