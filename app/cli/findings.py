"""Advice on the command line: one finding as JSON and as lines of text."""

from collections.abc import Sequence

from rich.console import Console

from app.advice.text import render, verification
from app.cli.output import escape
from app.domain.finding import Actor, Finding, Severity
from app.domain.record import Record

ICONS = {
    Severity.INFO: "i",
    Severity.HINT: "→",
    Severity.WARNING: "!",
    Severity.PROBLEM: "✗",
}


class FindingView(Record, frozen=True, kw_only=True):
    """A finding with its texts."""

    id: str
    severity: Severity
    evidence: dict[str, str | int | float | None]
    text: str
    remedy: str
    verify: str
    actor: Actor
    source: str


def view_of(finding: Finding) -> FindingView:
    """Return a finding with its sentences."""
    return FindingView(
        id=finding.id,
        severity=finding.severity,
        evidence=finding.evidence,
        text=render("finding", finding.id, finding.evidence),
        remedy=render("remedy", finding.id, finding.evidence),
        verify=verification(finding),
        actor=finding.actor,
        source=finding.source,
    )


def show_findings(console: Console, found: Sequence[FindingView]) -> None:
    """Print what is worth knowing, what to do about it, and how to see that it worked."""
    for finding in found:
        console.print(f"{ICONS[finding.severity]} {escape(finding.text)}")
        if finding.remedy:
            console.print(f"  {escape(finding.remedy)}")
        if finding.verify:
            console.print(f"  Check: {escape(finding.verify)}")
