"""``rigtune estimate``: what a configuration needs per device, and what would fit."""

import argparse

from app.cli.arguments import add_reserve, add_settings, mib_from, settings_from
from app.cli.memory_bar import memory_bars
from app.cli.output import EXIT_DONE, escape, human, print_json, table
from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.units import counted, format_bytes
from app.session import Estimate, IfClosed, Remedy, Session

NAME = "estimate"
HELP = "say what a configuration needs per device, and the most that fits"

VERDICT_TEXT = {
    Verdict.FITS: "[green]✓ fits[/]",
    Verdict.TIGHT: "[yellow]! tight[/]",
    Verdict.DOES_NOT_FIT: "[red]✗ does not fit[/]",
    Verdict.UNKNOWN: "? unknown",
}
VERDICT_WORDS = {
    Verdict.FITS: "fits",
    Verdict.TIGHT: "tight",
    Verdict.DOES_NOT_FIT: "does not fit",
    Verdict.UNKNOWN: "unknown",
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
    min_n_cpu_moe: int | None
    cheapest_kv: str | None
    next_layer_bytes: int | None
    if_closed: tuple[IfClosed, ...]
    remedies: tuple[Remedy, ...]
    source: str
    elapsed_ms: float | None
    max_error_pct: float | None
    overhead_source: str
    note: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="path, id from `models`, or demo")
    add_settings(
        parser,
        (
            "n_gpu_layers",
            "n_cpu_moe",
            "override_tensor",
            "n_ctx",
            "n_batch",
            "n_ubatch",
            "n_seq_max",
            "type_k",
            "type_v",
            "flash_attn",
            "devices",
            "split_mode",
            "tensor_split",
            "offload_kqv",
            "op_offload",
        ),
    )
    parser.add_argument("--headroom", type=int, metavar="MIB", help="memory to leave free")
    add_reserve(parser)
    parser.add_argument(
        "--exact",
        action="store_true",
        help="ask the engine's dry run (not while a GPU sleeps: it would wake it)",
    )


def run(args: argparse.Namespace, session: Session) -> int:
    """Print the estimate."""
    spec = session.inspect(args.model)
    base = Settings(n_gpu_layers=spec.max_gpu_layers)
    settings = settings_from(args, base, spec.n_layer)
    answer = session.estimate(
        spec,
        settings,
        headroom_bytes=mib_from("--headroom", args.headroom),
        reserve_bytes=mib_from("--reserve", args.reserve) or 0,
        exact=args.exact,
    )
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
        min_n_cpu_moe=answer.min_n_cpu_moe,
        cheapest_kv=answer.cheapest_kv,
        next_layer_bytes=answer.next_layer_bytes,
        if_closed=answer.if_closed,
        remedies=answer.remedies,
        source=estimate.source.value,
        elapsed_ms=estimate.elapsed_ms,
        max_error_pct=estimate.max_error_pct,
        overhead_source=answer.overhead_source,
        note=estimate.note,
    )


def show(answer: Estimate) -> None:
    """Print the estimate as a table and bars, with the answers below."""
    console = human()
    estimate = answer.estimate
    console.print(memory_table(estimate))
    if estimate.devices:
        console.print()
        console.print(memory_bars(estimate.devices))
        console.print()
    if estimate.note:
        console.print(f"Note: {estimate.note}", markup=False)
    console.print(f"Source: {source_text(estimate)}")
    if answer.overhead_source:
        console.print(answer.overhead_source, markup=False)
    for line in inverse_lines(answer):
        console.print(line, markup=False)


def source_text(estimate: MemoryEstimate) -> str:
    """Return where the figures come from that the engine counts."""
    text = "engine's dry run, exact" if estimate.source is MemorySource.DRY_RUN else "formula"
    if estimate.max_error_pct:
        text += f", \u00b1{estimate.max_error_pct:.0f} %"
    return text


def inverse_lines(answer: Estimate) -> list[str]:
    """Return a line per inverse question that has an answer."""
    lines = []
    estimate = answer.estimate
    has_gpu = any(device.device != "host" for device in estimate.devices)
    if answer.max_n_gpu_layers is not None and has_gpu:
        lines.append(f"Most GPU layers at this context: {answer.max_n_gpu_layers}")
    if answer.next_layer_bytes is not None and has_gpu:
        lines.append(f"One more GPU layer needs: {format_bytes(answer.next_layer_bytes)}")
    if answer.max_n_ctx is None and estimate.verdict is Verdict.DOES_NOT_FIT:
        lines.append("Longest context at these layers: none fits")
    if answer.max_n_ctx is not None:
        lines.append(f"Longest context at these layers: {answer.max_n_ctx:,} tokens")
    if answer.min_n_cpu_moe is not None and has_gpu:
        lines.append(f"Fewest layers with experts in RAM: {answer.min_n_cpu_moe}")
    if answer.cheapest_kv is not None:
        lines.append(f"Finest KV cache type that fits: {answer.cheapest_kv}")
    for remedy in answer.remedies:
        text = f"With {remedy.knob} {remedy.value}: {format_bytes(remedy.saved_bytes)} less"
        if remedy.max_n_gpu_layers is not None and has_gpu:
            text += f", at most {counted(remedy.max_n_gpu_layers, 'layer')}"
        lines.append(f"{text}, {VERDICT_WORDS[remedy.verdict]}")
    for closed in answer.if_closed:
        name = escape(closed.name or "the program")
        held = f"{format_bytes(closed.vram_bytes)} of {closed.device}"
        found = [VERDICT_WORDS[closed.verdict]]
        if closed.max_n_gpu_layers is not None:
            found.append(f"at most {counted(closed.max_n_gpu_layers, 'layer')}")
        if closed.max_n_ctx is not None:
            found.append(f"up to {closed.max_n_ctx:,} tokens")
        lines.append(f"If you close {name} (process {closed.pid}, {held}): {', '.join(found)}")
    return lines


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
