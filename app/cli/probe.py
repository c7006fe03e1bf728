"""``rigtune probe``: what this machine is, as probes and engine see it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from app.advice import rule
from app.advice.rules import Situation, findings
from app.cli.findings import FindingView, show_findings, view_of
from app.cli.output import EXIT_DONE, human, print_json, progress_console, table
from app.cli.probe_text import (
    UNMATCHED_WORDS,
    gpu_details,
    host_rows,
    memory_text,
    timeout_rows,
)
from app.domain.machine import (
    STALE,
    EngineDevice,
    EngineInfo,
    Gpu,
    GpuInfo,
    GpuKind,
    GpuSample,
    HostInfo,
)
from app.domain.record import Record
from app.domain.units import MISSING, format_bytes
from app.machine import judged_memory, merge_samples
from app.session import Session
from app.session.views import ReadSpeeds, speeds_text

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
    measured: ReadSpeeds | None
    findings: tuple[FindingView, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--record", metavar="DIR", help="write this machine as a recording")
    parser.add_argument(
        "--replay",
        dest="machine_replay",
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="show a recorded machine",
    )
    parser.add_argument(
        "--measure",
        nargs="?",
        const="demo",
        metavar="MODEL",
        help="measure how fast RAM and a model's disk are read (about two seconds)",
    )


def run(args: argparse.Namespace, session: Session) -> int:
    """Print the machine."""
    measured = session.read_speeds(args.measure) if args.measure else None
    if args.record:
        file = session.record_machine(Path(args.record))
        progress_console().print(
            f"Recorded to {file}, without serial numbers and names; read it before you share it.",
            markup=False,
        )
    document = document_of(session, measured)
    if args.json:
        print_json(document)
        return EXIT_DONE
    show(human(), document)
    return EXIT_DONE


def document_of(session: Session, measured: ReadSpeeds | None = None) -> ProbeDocument:
    """Return the machine with one reading of it and what follows from both."""
    machine = session.machine()
    telemetry = session.telemetry()
    telemetry.sample_now(READ_S)
    samples = {gpu.key: telemetry.latest(gpu.key) for gpu in machine.gpus}
    situation = Situation(machine=machine, samples=samples, host_sample=telemetry.latest_host())
    return ProbeDocument(
        host=machine.host,
        gpus=tuple(gpu_view(gpu, samples[gpu.key] or _late(gpu)) for gpu in machine.gpus),
        engine=machine.engine,
        unavailable=machine.unavailable,
        measured=measured,
        findings=tuple(view_of(f) for f in findings(situation)),
    )


def _late(gpu: Gpu) -> tuple[GpuSample, ...]:
    """Return what stands for a card that was not read in time; the engine's own are not read."""
    return (GpuSample.unread(gpu.key, 0, STALE),) if gpu.info is not None else ()


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
    if document.measured is not None:
        console.print(speeds_text(document.measured), markup=False)
    if document.gpus:
        rows = [gpu_row(gpu, document.host) for gpu in document.gpus]
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
    console.print(name_of(gpu), markup=False)
    for line in gpu_details(gpu.info, gpu.reading):
        console.print(f"  {line}", markup=False)
    if gpu.unmatched is not None:
        why = UNMATCHED_WORDS.get(gpu.unmatched, gpu.unmatched)
        console.print(f"  not matched with a driver's card: {why}", markup=False)


def show_engine(console: Console, engine: EngineInfo | None) -> None:
    """Print the engine build."""
    if engine is not None:
        backends = ", ".join(engine.backends)
        console.print(
            f"Engine: llama.cpp {engine.llama_version} ({engine.version}), backends {backends}",
            markup=False,
        )


def gpu_row(gpu: GpuView, host: HostInfo) -> list[str]:
    """Return the table row of a GPU."""
    info, device = gpu.info, (gpu.engine[0] if gpu.engine else None)
    kind = info.kind if info else (device.kind if device else None)
    total, free = believed(gpu, host)
    return [
        name_of(gpu),
        kind.value if kind else MISSING,
        memory_text(info, total),
        format_bytes(free),
        (info.driver if info else None) or MISSING,
        ", ".join(d.name for d in gpu.engine) or MISSING,
    ]


def believed(gpu: GpuView, host: HostInfo) -> tuple[int | None, int | None]:
    """Return total and free memory that can be believed; free is never more than the total."""
    joined = Gpu(key=gpu.key, info=gpu.info, engine=gpu.engine)
    judged = judged_memory(joined, gpu.engine[0], host) if gpu.engine else None
    total, free = judged if judged is not None else (None, None)
    info, reading = gpu.info, gpu.reading
    if info is None or info.kind is GpuKind.INTEGRATED:
        return total, free
    read = reading.vram_free_bytes if reading is not None else None
    return info.vram_total_bytes or total, read if read is not None else free


def name_of(gpu: GpuView) -> str:
    """Return the best name a GPU has."""
    return rule.name_of(Gpu(key=gpu.key, info=gpu.info, engine=gpu.engine))
