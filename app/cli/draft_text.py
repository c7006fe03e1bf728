"""What trying drafted tokens showed, for people."""

import sys

from app.advice.text import render
from app.cli.output import escape, human
from app.domain.draft import DraftResult
from app.domain.units import MISSING
from app.export import command_line, draft_arguments


def show_draft(found: DraftResult) -> None:
    """Print whether drafts pay, and how to use them where they do."""
    human().print(escape(draft_text(found)))
    if found.kept:
        flags = command_line(draft_arguments(found), windows=sys.platform == "win32")
        human().print(escape(f"llama-server: {flags} (the exported profile has it)"))


def draft_text(found: DraftResult) -> str:
    """Return the comparison in one sentence."""
    if found.error is not None:
        data: dict[str, str | int | float | None] = {"why": found.error.message}
        return render("draft", "failed", data)
    shares = (found.gain_frac, found.gain_low_frac, found.gain_high_frac, found.accepted_frac)
    gain, low, high, accepted = (MISSING if x is None else f"{100 * x:.0f}" for x in shares)
    code = "kept" if found.kept else "rejected" if found.same_output else "other_output"
    return render("draft", code, {"gain": gain, "low": low, "high": high, "accepted": accepted})
