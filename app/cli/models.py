"""``rigtune models``: models other programs downloaded, each with its verdict here."""

import argparse

from app.cli.output import EXIT_DONE, human, print_json, table
from app.domain.memory import Verdict
from app.domain.record import Record
from app.domain.units import MISSING, format_bytes, significant
from app.session import ModelEntry, Prediction, Session

NAME = "models"
HELP = "list the models found on this machine and whether they fit"
VERDICT_TEXT = {
    Verdict.FITS: "fits whole",
    Verdict.TIGHT: "tight",
    Verdict.DOES_NOT_FIT: "in part",
    Verdict.UNKNOWN: "—",
}
LEGEND = {
    "measured": "Decode without a sign: measured here by a search.",
    "estimated": "≈ estimated from other models' measurements on this machine.",
    "bound": "≤ at most, by the measured speed of RAM.",
    "nothing_measured": "— nothing measured here yet: rigtune tune MODEL.",
    "not_unpacked": "— the demo model is unpacked when it is first used.",
    "gpu_asleep": "— a GPU sleeps, and a list does not wake it.",
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
            predicted_text(entry.predicted),
            entry.problem or VERDICT_TEXT[entry.verdict],
        ]
        for entry in entries
    ]
    headers = ["model", "family", "quant", "size", "decode tok/s", "on this machine"]
    console.print(table(headers, rows))
    shown = {entry.predicted.source or entry.predicted.reason or "" for entry in entries}
    for key in sorted(shown & set(LEGEND)):
        console.print(LEGEND[key])
    return EXIT_DONE


def predicted_text(predicted: Prediction) -> str:
    """Return the speed so that a measured one, an estimate and a bound look different."""
    if predicted.tok_s is None:
        return MISSING
    sign = {"estimated": "≈ ", "bound": "≤ "}.get(predicted.source or "", "")
    return f"{sign}{significant(predicted.tok_s)}"
