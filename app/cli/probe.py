"""``rigtune probe``: what this machine is, as probes and engine see it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from app.advice import rule
from app.advice.rules import Situation, findings
from app.cli.findings import FindingView, show_findings, view_of
from app.cli.output import EXIT_DONE, human, print_json, table
from app.cli.probe_text import gpu_details, host_rows, timeout_rows
from app.domain.machine import EngineDevice, EngineInfo, Gpu, GpuInfo, GpuSample, HostInfo
from app.domain.record import Record
from app.domain.units import MISSING, format_bytes
from app.machine import merge_samples
from app.session import Session

NAME = "probe"
HELP = "show this machine: CPU, GPUs, engine devices, and what is worth knowing"
READ_S = 3.0
"""Longest wait for a reading of every probe."""


class GpuView(Record, frozen=True, kw_only=True):
    """A GPU with its reading of now."""

    key: str
    info: GpuInfo | None
    engine: tuple[EngineDevice, ...]
    unmatched: str | None
    reading: GpuSample | None


class ProbeDocument(Record, frozen=True, kw_only=True):
    """``rigtune.probe/1``."""

    schema: str = "rigtune.probe/1"
    host: HostInfo
    gpus: tuple[GpuView, ...]
    engine: EngineInfo | None
    unavailable: dict[str, str]
    findings: tuple[FindingView, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--record", metavar="DIR", help="write this machine as a recording")
    parser.add_argument(
        "--replay", dest="machine_replay", metavar="DIR", help="show a recorded machine"
    )


def run(args: argparse.Namespace, session: Session) -> int:
    """Print the machine."""
    if args.record:
        session.record_machine(Path(args.record))
    document = document_of(session)
    if args.json:
        print_json(document)
        return EXIT_DONE
    show(human(), document)
    return EXIT_DONE


def document_of(session: Session) -> ProbeDocument:
    """Return the machine with one reading of it and what follows from both."""
    machine = session.machine()
    telemetry = session.telemetry()
    telemetry.sample_now(READ_S)
    samples = {gpu.key: telemetry.latest(gpu.key) for gpu in machine.gpus}
    situation = Situation(machine=machine, samples=samples, host_sample=telemetry.latest_host())
    return ProbeDocument(
        host=machine.host,
        gpus=tuple(gpu_view(gpu, samples[gpu.key]) for gpu in machine.gpus),
        engine=machine.engine,
        unavailable=machine.unavailable,
        findings=tuple(view_of(f) for f in findings(situation)),
    )


def gpu_view(gpu: Gpu, samples: Sequence[GpuSample]) -> GpuView:
    """Return a GPU with what its probes read."""
    return GpuView(
        key=gpu.key,
        info=gpu.info,
        engine=gpu.engine,
        unmatched=gpu.unmatched,
        reading=merge_samples(samples),
    )


def show(console: Console, document: ProbeDocument) -> None:
    """Print the document for people."""
    show_rows(console, host_rows(document.host))
    if document.host.windows is not None:
        console.print("Windows driver timeouts (only read, never changed)")
        show_rows(console, timeout_rows(document.host.windows))
    if not document.gpus:
        console.print("No GPU found: neither a driver nor the engine reports one.")
    else:
        rows = [gpu_row(gpu) for gpu in document.gpus]
        console.print(table(["GPU", "kind", "memory", "free", "driver", "engine names"], rows))
        for gpu in document.gpus:
            show_details(console, gpu)
    show_engine(console, document.engine)
    show_findings(console, document.findings)


def show_rows(console: Console, rows: list[list[str]]) -> None:
    """Print names and values in two columns."""
    grid = table(["", ""], rows)
    grid.show_header = False
    grid.columns[1].justify = "left"
    console.print(grid)


def show_details(console: Console, gpu: GpuView) -> None:
    """Print what is known of one GPU beyond its row."""
    details = gpu_details(gpu.info, gpu.reading)
    if details:
        console.print(f"{name_of(gpu)}: {'; '.join(details)}", markup=False)


def show_engine(console: Console, engine: EngineInfo | None) -> None:
    """Print the engine build."""
    if engine is not None:
        backends = ", ".join(engine.backends)
        console.print(
            f"Engine: llama.cpp {engine.llama_version} ({engine.version}), backends {backends}",
            markup=False,
        )


def gpu_row(gpu: GpuView) -> list[str]:
    """Return the table row of a GPU."""
    info, device = gpu.info, (gpu.engine[0] if gpu.engine else None)
    kind = info.kind if info else (device.kind if device else None)
    total = (info.vram_total_bytes if info else None) or (device.total_bytes if device else None)
    free = gpu.reading.vram_free_bytes if gpu.reading is not None else None
    return [
        name_of(gpu),
        kind.value if kind else MISSING,
        format_bytes(total),
        format_bytes(free if free is not None else (device.free_bytes if device else None)),
        (info.driver if info else None) or MISSING,
        ", ".join(d.name for d in gpu.engine) or MISSING,
    ]


def name_of(gpu: GpuView) -> str:
    """Return the best name a GPU has."""
    return rule.name_of(Gpu(key=gpu.key, info=gpu.info, engine=gpu.engine))
