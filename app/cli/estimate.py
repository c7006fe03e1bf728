"""``rigtune estimate``: what a configuration needs per device, and what would fit."""

import argparse

from app.cli.arguments import add_settings, settings_from
from app.cli.output import EXIT_DONE, human, print_json, table
from app.domain.memory import DeviceMemory, MemoryEstimate, Verdict
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.units import format_bytes
from app.session import Estimate, Session

NAME = "estimate"
HELP = "say what a configuration needs per device, and the most that fits"

VERDICT_TEXT = {
    Verdict.FITS: "[green]✓ fits[/]",
    Verdict.TIGHT: "[yellow]! tight[/]",
    Verdict.DOES_NOT_FIT: "[red]✗ does not fit[/]",
    Verdict.UNKNOWN: "? unknown",
}
PARTS = (
    ("weights", "weights_bytes"),
    ("KV cache", "kv_cache_bytes"),
    ("state", "recurrent_state_bytes"),
    ("compute", "compute_bytes"),
    ("output", "output_bytes"),
    ("driver", "driver_context_bytes"),
    ("growth", "growth_bytes"),
)


class EstimateDocument(Record, frozen=True, kw_only=True):
    """``rigtune.estimate/1``."""

    schema: str = "rigtune.estimate/1"
    settings: Settings
    devices: tuple[DeviceMemory, ...]
    verdict: Verdict
    max_n_gpu_layers: int | None
    max_n_ctx: int | None
    source: str
    elapsed_ms: float | None
    max_error_pct: float | None
    note: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="path, id from `models`, or demo")
    add_settings(
        parser,
        (
            "n_gpu_layers",
            "n_cpu_moe",
            "n_ctx",
            "n_batch",
            "n_ubatch",
            "n_seq_max",
            "type_k",
            "type_v",
            "flash_attn",
            "devices",
        ),
    )
    parser.add_argument("--headroom", type=int, metavar="MIB", help="memory to leave free")
    parser.add_argument("--exact", action="store_true", help="ask the engine's dry run")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print the estimate."""
    spec = session.inspect(args.model)
    base = Settings(n_gpu_layers=spec.max_gpu_layers)
    settings = settings_from(args, base, spec.n_layer)
    headroom = None if args.headroom is None else args.headroom << 20
    answer = session.estimate(spec, settings, headroom_bytes=headroom, exact=args.exact)
    if args.json:
        print_json(document_of(answer))
    else:
        show(answer)
    return EXIT_DONE


def document_of(answer: Estimate) -> EstimateDocument:
    """Return the JSON view of an estimate."""
    estimate = answer.estimate
    return EstimateDocument(
        settings=answer.settings,
        devices=estimate.devices,
        verdict=estimate.verdict,
        max_n_gpu_layers=answer.max_n_gpu_layers,
        max_n_ctx=answer.max_n_ctx,
        source=estimate.source.value,
        elapsed_ms=estimate.elapsed_ms,
        max_error_pct=estimate.max_error_pct,
        note=estimate.note,
    )


def show(answer: Estimate) -> None:
    """Print the estimate as a table with the answers below."""
    console = human()
    estimate = answer.estimate
    console.print(memory_table(estimate))
    if estimate.note:
        console.print(f"Note: {estimate.note}", markup=False)
    source = "engine's dry run, exact" if estimate.source.value == "dry_run" else "formula"
    error = f", ±{estimate.max_error_pct:.0f} %" if estimate.max_error_pct else ""
    console.print(f"Source: {source}{error}")
    has_gpu = any(device.device != "host" for device in estimate.devices)
    if answer.max_n_gpu_layers is not None and has_gpu:
        console.print(f"Most GPU layers at this context: {answer.max_n_gpu_layers}")
    if answer.max_n_ctx is not None:
        console.print(f"Longest context at these layers: {answer.max_n_ctx:,} tokens")


def memory_table(estimate: MemoryEstimate) -> object:
    """Return a table with a column per part that any device has."""
    parts = [
        (label, field) for label, field in PARTS if any(getattr(d, field) for d in estimate.devices)
    ]
    # the answer first: a narrow terminal cuts what is on the right
    grid = table(["device", "verdict", "total", "free", *(label for label, _ in parts)], [])
    for device in estimate.devices:
        cells = [format_bytes(getattr(device, field)) for _, field in parts]
        grid.add_row(
            "RAM" if device.device == "host" else device.device,
            VERDICT_TEXT[device.verdict],
            format_bytes(device.total_bytes),
            format_bytes(device.free_bytes),
            *cells,
        )
    return grid
