"""The user's command line beside the search's answer, for people."""

from rich.console import Console

from app.advice.text import render
from app.cli.output import escape, human, table
from app.cli.progress import summary
from app.cli.tune_text import format_rate
from app.domain.check import Checked, CheckSide, CheckVerdict
from app.domain.outcome import OUTCOMES
from app.domain.units import MISSING, format_seconds


def show_check(check: Checked) -> None:
    """Print the comparison."""
    console = human()
    console.print(f"[bold]Your {escape(check.program)} command beside it[/] (measured in turns):")
    rows = [side_row("yours", check.theirs), side_row("RigTune", check.ours)]
    console.print(table(["", "prefill tok/s", "decode tok/s", "request", "outcome"], rows))
    console.print(verdict_text(check), markup=False)
    console.print(f"yours: {summary(check.theirs.settings)}", markup=False)
    for difference in check.differences:
        line = f"  {difference.name}: yours {difference.theirs}, RigTune {difference.ours}"
        console.print(escape(line))
    for note in check.notes:
        console.print(f"• {escape(render('check', note.code, note.data))}")
    show_ignored(console, check)


def show_ignored(console: Console, check: Checked) -> None:
    """Name the flags that played no part."""
    if check.ignored:
        flags = ", ".join(dict.fromkeys(check.ignored))
        console.print(f"• {escape(render('check', 'ignored', {'flags': flags}))}")


def side_row(name: str, side: CheckSide) -> list[str]:
    """Return one configuration as a row; what failed says how."""
    if side.error is not None:
        outcome = side.error.message
    else:
        outcome = OUTCOMES[side.outcome].label if side.outcome else MISSING
    return [
        name,
        format_rate(side.prefill_tok_s),
        format_rate(side.decode_tok_s),
        format_seconds(side.request_s),
        outcome,
    ]


def verdict_text(check: Checked) -> str:
    """Return the comparison in one sentence."""
    frac = abs(check.slower_frac or 0.0)
    if check.verdict is CheckVerdict.FASTER and check.slower_frac is not None:
        frac = 1 / (1 + check.slower_frac) - 1  # as a gain: how much longer ours takes
    low, high = check.slower_low_frac, check.slower_high_frac
    interval = MISSING if low is None or high is None else f"{100 * low:+.1f} to {100 * high:+.1f}"
    data: dict[str, str | int | float | None] = {"pct": round(100 * frac, 1), "interval": interval}
    return render("check", f"verdict_{check.verdict}", data)
