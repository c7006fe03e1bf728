"""``rigtune models``: models other programs downloaded, each with its verdict here."""

import argparse

from app.cli.output import EXIT_DONE, human, print_json, table
from app.domain.memory import Verdict
from app.domain.record import Record
from app.domain.units import format_bytes
from app.session import ModelEntry, Session

NAME = "models"
HELP = "list the models found on this machine and whether they fit"
VERDICT_TEXT = {
    Verdict.FITS: "fits whole",
    Verdict.TIGHT: "tight",
    Verdict.DOES_NOT_FIT: "in part",
    Verdict.UNKNOWN: "—",
}


class ModelsDocument(Record, frozen=True, kw_only=True):
    """``rigtune.models/1``."""

    schema: str = "rigtune.models/1"
    models: tuple[ModelEntry, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments (none)."""
    del parser


def run(args: argparse.Namespace, session: Session) -> int:
    """Print what was found."""
    entries = session.models()
    if args.json:
        print_json(ModelsDocument(models=entries))
        return EXIT_DONE
    console = human()
    if not entries:
        console.print("No models found. Name a .gguf file, or try: rigtune tune demo")
        return EXIT_DONE
    rows = [
        [
            entry.id,
            entry.arch or "—",
            entry.quant or "—",
            format_bytes(entry.file_bytes),
            entry.problem or VERDICT_TEXT[entry.verdict],
        ]
        for entry in entries
    ]
    console.print(table(["model", "family", "quant", "size", "on this machine"], rows))
    return EXIT_DONE
