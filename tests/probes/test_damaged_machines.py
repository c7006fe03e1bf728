"""Recorded machines with answers knocked out or made absurd: nothing breaks or shows rubbish."""

import io
import math
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from app.advice.rule import Situation
from app.advice.rules import findings
from app.cli import probe as page
from app.cli.findings import view_of
from app.domain.machine import MAX_MEMORY_BYTES, GpuInfo, GpuSample, HostInfo, HostSample
from app.machine import join_machine, search_devices
from app.session.recording import read_engine
from probes import registry
from probes.reading import HOST_RANGES
from probes.record import RecordedMachine
from probes.replay import RecordedNvml, RecordedSystem, RecordedTree, load
from probes.windows.recording import RecordedWindows
from tests.fakes.recorded import MACHINES

TEXTS = (
    *("!no_permission", "!stale", "", "N/A", "[N/A]", "ERR!", "-1", "nan", "9" * 30, "0x"),
    *("\x00\x00", "Unknown", "é" * 50),
)
ANSWERS: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**64, 1e400, math.nan, "N/A", b"\xff".hex(), [], [None], {}, "!lost"),
    *("!not_supported", "!no_permission", {"total": -5, "free": 2**63, "used": "x"}, [[1], "a"]),
)


AMOUNTS, SHARES = (None, -1, 0, 2**45, 2**63), (None, -5.0, 1e9, math.inf, math.nan)
SYSTEM: dict[str, tuple[Any, ...]] = {
    "cores_physical": AMOUNTS, "ram_bytes": AMOUNTS, "ram_available_bytes": AMOUNTS,
    "swap_bytes": AMOUNTS, "swap_used_bytes": AMOUNTS, "cpu_busy_pct": SHARES,
    "battery_pct": SHARES,
}  # fmt: skip
"""Numbers of the operating system, and what they may be instead."""
UNREASONED = {"vulkan_uuid", "node", "uuid"}
"""Names that a device simply may not have."""


def damaged(machine: RecordedMachine, seed: int) -> RecordedMachine:
    """Return the recording with a third of its answers gone or absurd."""
    dice = random.Random(seed)

    def spoil(kept: dict[str, Any], rubbish: tuple[Any, ...]) -> dict[str, Any]:
        return {
            name: dice.choice(rubbish) if dice.random() < 0.2 else value
            for name, value in kept.items()
            if dice.random() > 0.1
        }

    windows = machine.windows
    if windows is not None and isinstance(windows.counters, dict):
        numbers = (-1.0, 1e300, math.inf, math.nan)
        counters = {path: spoil(values, numbers) for path, values in windows.counters.items()}
        registry_ = {key: spoil(values, (None,)) for key, values in windows.registry.items()}
        registry_ = {k: {n: v for n, v in vs.items() if v} for k, vs in registry_.items()}
        windows = msgspec.structs.replace(windows, counters=counters, registry=registry_)
    system = {name: dice.choice(bad) for name, bad in SYSTEM.items() if dice.random() < 0.2}
    return msgspec.structs.replace(
        machine,
        system=msgspec.structs.replace(machine.system, **system),
        files=spoil(machine.files, TEXTS),
        nvml=spoil(machine.nvml, ANSWERS),
        links=spoil(machine.links, TEXTS),
        windows=windows,
    )


def readings(
    machine: RecordedMachine,
) -> tuple[HostInfo, list[GpuInfo], list[GpuSample], HostSample]:
    doors = registry.Doors(
        RecordedTree(machine),
        RecordedNvml(machine),
        RecordedSystem(machine),
        RecordedWindows(machine.windows),
    )
    probes = registry.build(doors)
    infos: list[GpuInfo] = []
    samples: list[GpuSample] = []
    for probe in probes.gpus:
        infos += probe.identify()
        samples += probe.sample()
        samples += probe.sample()
    return probes.host.identify(), infos, samples, probes.host.sample()


def numbers_of(record: msgspec.Struct) -> list[float]:
    values = (getattr(record, name) for name in record.__struct_fields__)
    return [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]


def check_records(
    host: HostInfo, infos: list[GpuInfo], samples: list[GpuSample], load: HostSample
) -> None:
    """Every number can be true, no part is larger than its whole, and what is absent says why."""
    totals = {info.key: info.vram_total_bytes or MAX_MEMORY_BYTES for info in infos}
    for record in (*infos, *samples, host, load):
        assert all(math.isfinite(value) for value in numbers_of(record))
        named = {name: getattr(record, name) for name in record.__struct_fields__}
        for name, value in named.items():
            if value is None or isinstance(value, str | bool):
                continue
            if name.endswith("_pct") and isinstance(value, float) and name != "fan_pct":
                assert 0 <= value <= 100, name
            if name.endswith("_bytes"):
                assert 0 <= value <= max(MAX_MEMORY_BYTES, HOST_RANGES["ram_bytes"][1]), name
        if isinstance(record, GpuInfo | GpuSample | HostInfo):
            absent = {name for name, value in named.items() if value is None} - UNREASONED
            assert absent <= set(record.missing)
            assert all(named.get(name) is None for name in record.missing)
    for sample in samples:
        for part in (sample.vram_used_bytes, sample.vram_free_bytes):
            assert part is None or part <= totals.get(sample.key, MAX_MEMORY_BYTES)
    if host.ram_bytes is not None and host.ram_available_bytes is not None:
        assert host.ram_available_bytes <= host.ram_bytes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("path", sorted(MACHINES.iterdir()), ids=lambda path: path.name)
def test_damaged_machine_gives_plausible_records(path: Path, seed: int) -> None:
    """No exception; every number is finite and no memory larger than can be."""
    host, infos, samples, host_sample = readings(damaged(load(path), seed))
    check_records(host, infos, samples, host_sample)
    machine = join_machine(host, infos, read_engine(path))
    for device in search_devices(machine):
        assert 0 <= device.free_bytes <= device.total_bytes
    read = {sample.key: (sample,) for sample in samples}
    shown = Situation(machine=machine, samples=read, host_sample=host_sample)
    found = findings(shown)
    document = page.ProbeDocument(
        host=host,
        gpus=tuple(page.gpu_view(g, read.get(g.key, ())) for g in machine.gpus),
        engine=machine.engine,
        unavailable={},
        measured=None,
        findings=tuple(view_of(finding) for finding in found),
    )
    assert msgspec.json.encode(document)
    text = io.StringIO()
    page.show(Console(file=text, width=160), document)
    assert "None" not in text.getvalue()
    assert "nan" not in re.findall(r"[a-z]+", text.getvalue().lower().replace("nan mode", ""))
