"""``rigtune probe``: what this machine is, as probes and engine see it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from app.advice.rules import machine_findings
from app.advice.text import render
from app.cli.output import EXIT_DONE, escape, human, print_json, table
from app.domain.finding import Finding, Severity
from app.domain.machine import EngineInfo, Gpu, HostInfo, Machine
from app.domain.record import Record
from app.domain.units import MISSING, format_bytes
from app.session import Session

NAME = "probe"
HELP = "show this machine: CPU, GPUs, engine devices, and what is worth knowing"
ICONS = {
    Severity.INFO: "i",
    Severity.HINT: "i",
    Severity.WARNING: "!",
    Severity.PROBLEM: "✗",
}


class FindingView(Record, frozen=True, kw_only=True):
    """A finding with its text."""

    id: str
    severity: Severity
    evidence: dict[str, str | int | float | None]
    text: str
    remedy: str


class ProbeDocument(Record, frozen=True, kw_only=True):
    """``rigtune.probe/1``."""

    schema: str = "rigtune.probe/1"
    host: HostInfo
    gpus: tuple[Gpu, ...]
    engine: EngineInfo | None
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
    machine = session.machine()
    findings = tuple(view_of(f) for f in machine_findings(machine))
    if args.json:
        print_json(
            ProbeDocument(
                host=machine.host, gpus=machine.gpus, engine=machine.engine, findings=findings
            )
        )
        return EXIT_DONE
    console = human()
    show_host(console, machine.host)
    show_gpus(console, machine)
    show_findings(console, findings)
    return EXIT_DONE


def view_of(finding: Finding) -> FindingView:
    """Return a finding with its sentences."""
    return FindingView(
        id=finding.id,
        severity=finding.severity,
        evidence=finding.evidence,
        text=render("finding", finding.id, finding.evidence),
        remedy=render("remedy", finding.id, finding.evidence),
    )


def show_host(console: Console, host: HostInfo) -> None:
    """Print CPU, RAM and power."""
    cores = f"{host.cores_physical or MISSING} cores, {host.cores_logical or MISSING} threads"
    ram = f"{format_bytes(host.ram_bytes)}, {format_bytes(host.ram_available_bytes)} available"
    rows = [
        ["System", " ".join(x for x in (host.os, host.os_version, host.virtualization) if x)],
        ["CPU", f"{host.cpu_name or MISSING} ({cores})"],
        ["RAM", ram],
        ["Power", host.power_source.value],
    ]
    grid = table(["", ""], rows)
    grid.show_header = False
    grid.columns[1].justify = "left"
    console.print(grid)


def show_gpus(console: Console, machine: Machine) -> None:
    """Print one line per GPU, then the engine."""
    if not machine.gpus:
        console.print("No GPU found: neither a driver nor the engine reports one.")
    rows = [gpu_row(gpu) for gpu in machine.gpus]
    if rows:
        grid = table(["GPU", "kind", "memory", "free", "driver", "engine names"], rows)
        console.print(grid)
    engine = machine.engine
    if engine is not None:
        backends = ", ".join(engine.backends)
        console.print(
            f"Engine: llama.cpp {engine.llama_version} ({engine.version}), backends {backends}",
            markup=False,
        )


def gpu_row(gpu: Gpu) -> list[str]:
    """Return the table row of a GPU."""
    info, device = gpu.info, (gpu.engine[0] if gpu.engine else None)
    name = (info.name if info else None) or (device.description if device else gpu.key)
    kind = info.kind if info else (device.kind if device else None)
    total = (info.vram_total_bytes if info else None) or (device.total_bytes if device else None)
    return [
        name,
        kind.value if kind else MISSING,
        format_bytes(total),
        format_bytes(device.free_bytes if device else None),
        (info.driver if info else None) or MISSING,
        ", ".join(d.name for d in gpu.engine) or MISSING,
    ]


def show_findings(console: Console, findings: Sequence[FindingView]) -> None:
    """Print what is worth knowing, with what to do about it."""
    for finding in findings:
        console.print(f"{ICONS[finding.severity]} {escape(finding.text)}")
        if finding.remedy:
            console.print(f"  {escape(finding.remedy)}")
