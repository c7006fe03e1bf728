"""What is worth knowing about this machine, with what to do about it."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.advice.device_facts import device_facts
from app.advice.rule import Evidence
from app.domain.finding import Finding, Severity
from app.domain.machine import Machine
from views import words
from views.page import Page, scrolling
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
    """

    refresh_requested = Signal()

    def __init__(self, kit: Kit) -> None:
        """Build the page without findings."""
        super().__init__(kit, "")
        self.title.setText(self.tr("Advice"))
        refresh = kit.button(self.tr("Look Again"), "refresh")
        refresh.clicked.connect(self.refresh_requested)
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
        self._area = scrolling(self._list)
        self._area.hide()
        self.body.addWidget(self._area, 1)

    def show_findings(self, findings: Sequence[Finding]) -> None:
        """Show ``findings`` instead of what was there."""
        while item := self._column.takeAt(0):
            if (widget := item.widget()) is not None:
                widget.hide()  # until it is deleted it would show through
                widget.deleteLater()
        for finding in findings:
            self._column.addWidget(self._card(finding))
        self._column.addStretch(1)
        self._empty.setVisible(not findings)
        self._area.setVisible(bool(findings))

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


def sentence(section: str, finding: Finding) -> str:
    """Return a text of the finding; its code where a text is missing."""
    text = words.sentence(section, finding.id, finding.evidence)
    return text or (finding.id.replace("_", " ") if section == "finding" else "")


def device_text(code: str, data: Evidence) -> str:
    """Return the sentence of a fact about devices."""
    return sentence("device", Finding(id=code, severity=Severity.INFO, evidence=data))
