"""The search's answer for people: recommendation, knee, baselines, reasons."""

from rich.console import Console

from app.advice.text import render_reason
from app.cli.findings import show_findings, view_of
from app.cli.output import escape, human, table
from app.cli.progress import summary
from app.domain.machine import EngineInfo
from app.domain.sweep import Recommended, SweepResult, SweepStatus
from app.domain.trial import Rate
from app.domain.units import MISSING, counted, format_bytes, format_seconds, significant
from app.store.records import engine_name

STATUS_TEXT = {
    SweepStatus.COMPLETE: "complete",
    SweepStatus.BUDGET_REACHED: "stopped at its budget",
    SweepStatus.CANCELLED: "not finished",
    SweepStatus.FAILED: "failed",
}


def engine_text(engine: EngineInfo | None) -> str:
    """Return which build measured, in one line; empty for a recording."""
    name = engine_name(engine)
    return f"{name} in {engine.directory}" if engine and engine.directory else name


def show(result: SweepResult, what: str, engine: str = "") -> None:
    """Print the answer; ``engine`` says which build measured it."""
    console = human()
    console.print(
        f"[bold]{escape(what)}[/]: search {STATUS_TEXT[result.status]} after "
        f"{counted(len(result.trials), 'trial')}, {counted(result.n_model_loads, 'load')}, "
        f"{format_seconds(result.virtual_s or result.measured_s)}."
    )
    if engine:
        console.print(f"Measured with {escape(engine)}.")
    if result.error:
        console.print(f"[red]{escape(result.error.message)}[/]")
        console.print(escape(result.error.hint))
    if result.recommended:
        show_points(console, result)
        show_commands(console, result.recommended)
    for reason in result.reasons:
        console.print(f"• {escape(render_reason(reason))}")
    show_findings(console, [view_of(f) for f in result.findings])


def show_points(console: Console, result: SweepResult) -> None:
    """Print the recommendation beside the knee and the baselines (all measured)."""
    points = [
        ("Recommended", result.recommended),
        ("Knee (saver)", result.knee),
        ("llama.cpp's own fit", result.baseline_auto_fit),
        ("CPU only", result.baseline_cpu),
    ]
    headers = ["", "prefill tok/s", "decode tok/s", "request", "device memory"]
    shown = [(name, point) for name, point in points if point is not None]
    rows = [
        [
            name,
            format_rate(point.prefill_tok_s),
            format_rate(point.decode_tok_s),
            format_seconds(point.request_s),
            device_text(point),
        ]
        for name, point in shown
    ]
    console.print(table(headers, rows))
    for name, point in shown:
        console.print(f"{name}: {summary(point.settings)}", markup=False)
    if result.cliff:
        cliff = result.cliff
        console.print(
            f"Cliff: {cliff.knob} {cliff.last_good} is good, {cliff.first_bad} is not: "
            f"{cliff.kind.replace('_', ' ')}.",
        )
    fits = [point for point in result.context_curve if point.decode_tok_s is not None]
    if fits:
        curve = ", ".join(f"{p.depth:,}: {format_rate(p.decode_tok_s)}" for p in fits)
        console.print(f"Decode tok/s by tokens in context: {curve}")


def show_commands(console: Console, point: Recommended) -> None:
    """Say how to use the answer."""
    if point.profile_id:
        console.print(
            f"Saved as profile {point.profile_id}: rigtune chat MODEL --profile "
            f"{point.profile_id}, rigtune export {point.profile_id} --format llama-server",
        )


def format_rate(rate: Rate | None) -> str:
    """Return a rate with its interval, e.g. ``41.2 (40.8–41.5)``."""
    if rate is None:
        return MISSING
    return f"{significant(rate.median)} ({significant(rate.low)}–{significant(rate.high)})"


def device_text(point: Recommended) -> str:
    """Return the memory need per device."""
    needs = [f"{name} {format_bytes(n)}" for name, n in point.device_bytes.items()]
    if not needs and point.settings.devices and point.settings.is_divided:
        return f"{MISSING} (not counted in this split mode)"
    return ", ".join(needs) or "RAM only"
