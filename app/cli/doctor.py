"""``rigtune doctor``: a self-test of everything RigTune needs."""

import argparse

from app.cli.output import EXIT_DONE, EXIT_PROBLEM, escape, human, print_json
from app.domain.finding import Check, CheckStatus
from app.domain.record import Record
from app.session import Session

NAME = "doctor"
HELP = "test the engine, each device, permissions, and say what is missing"
ICONS = {
    CheckStatus.OK: "[green]✓[/]",
    CheckStatus.WARNING: "[yellow]![/]",
    CheckStatus.PROBLEM: "[red]✗[/]",
    CheckStatus.SKIPPED: "–",
}


class DoctorDocument(Record, frozen=True, kw_only=True):
    """``rigtune.doctor/1``."""

    schema: str = "rigtune.doctor/1"
    ok: bool
    checks: tuple[Check, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments (none)."""
    del parser


def run(args: argparse.Namespace, session: Session) -> int:
    """Run the self-test; exit code 3 when something must be mended."""
    checks = []
    console = human()
    for check in session.doctor():
        checks.append(check)
        if not args.json:
            console.print(f"{ICONS[check.status]} {escape(check.text)}")
            if check.hint:
                console.print(f"  {escape(check.hint)}")
    ok = all(check.status is not CheckStatus.PROBLEM for check in checks)
    if args.json:
        print_json(DoctorDocument(ok=ok, checks=tuple(checks)))
    return EXIT_DONE if ok else EXIT_PROBLEM
