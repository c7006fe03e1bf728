"""The cap sweep of ``rigtune tune --goal quiet`` in the terminal: progress, table, what to do."""

import threading

from app.cli.output import human, progress_console, table
from app.cli.tune_text import format_rate
from app.domain.settings import Settings
from app.domain.sweep import BudgetName
from app.domain.units import MISSING, significant
from app.power.caps import CapPoint
from app.session import Session
from app.session.capsweep import CapsProgress, CapsResult, CapsStarted


def measure_caps(
    session: Session,
    model: str,
    settings: Settings,
    budget: BudgetName,
    cancel: threading.Event,
    *,
    is_quiet: bool,
) -> CapsResult | None:
    """Run the cap sweep and say how it goes on stderr; ``None`` when it gave no result."""
    result = None
    console = progress_console()
    n_said, is_asked = -1, False
    for event in session.sweep_caps(model, settings, budget=budget, cancel=cancel):
        match event:
            case CapsResult():
                result = event
            case CapsStarted() if not is_quiet:
                console.print(_plan(event), markup=False)
            case CapsProgress(phase="password") if not (is_quiet or is_asked):
                is_asked = True
                console.print("The system asks for an administrator's password…", markup=False)
            case CapsProgress(phase="measure") if not is_quiet and event.n_done != n_said:
                n_said = event.n_done
                console.print(f"  {_value(event.value)}: 2 to 7 minutes", markup=False)
            case _:
                pass
    return result


def show_caps(result: CapsResult) -> None:
    """Print what the limits give, which to take, and what can be done where none can be set."""
    console = human()

    def say(text: str) -> None:
        console.print(text, markup=False)

    if result.why_not is not None:
        say(f"Power limit: {result.why_not.message} {result.why_not.hint}")
    if result.points:
        headers = ["", "decode tok/s", "draw W", "tok/J", "°C", "fan %", "after 30 min (estimated)"]
        rows = [_row(result, i, p) for i, p in enumerate(result.points)]
        console.print(table(headers, rows))
    if not result.is_complete and result.points:
        say("Not every step was measured.")
    choice, cap_w = result.choice, result.cap_w
    if choice is not None and cap_w is not None:
        loss, saved = 100 * choice.loss_frac, 100 * choice.saved_frac
        say(
            f"{cap_w:.0f} W is the best: {loss:.1f} % slower than the fastest, {saved:.0f} % less "
            f"energy per request. rigtune power --cap {cap_w:.0f} keeps it for every chat."
        )
    elif result.device is not None:
        say("rigtune chat MODEL --power quiet paces: short pauses, no rights needed.")
    for command in result.commands:
        say(f"  by hand: {command.set}\n  undo:    {command.undo}")


def _plan(started: CapsStarted) -> str:
    low, high = 2 * len(started.values), 7 * len(started.values)
    what = ", ".join(_value(v) for v in started.values)
    return f"{started.device}: measuring {what}; {low} to {high} minutes, Ctrl-C keeps the rest."


def _row(result: CapsResult, index: int, point: CapPoint) -> list[str]:
    if point.refused is not None:
        return [_value(point.cap_w), "refused", *[MISSING] * 5]
    after = result.sustained[index]
    return [
        _value(point.cap_w) + ("" if point.is_steady else " (still warming)"),
        format_rate(point.decode_tok_s),
        _number(point.power_w),
        _number(point.tok_per_j),
        _number(point.temp_c),
        _number(point.fan_pct),
        format_rate(after.decode_tok_s if after else None),
    ]


def _value(value: float | None) -> str:
    """Return a limit in watts, or a pace: both stand in the same place."""
    if value is None:
        return MISSING
    return f"{value:.0f} W" if value > 1.0 else f"{100 * value:.0f} % of the time"


def _number(value: float | None) -> str:
    return MISSING if value is None else significant(value)
