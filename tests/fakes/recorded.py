"""Recorded machines as whole machines: probes, engine and one reading of everything."""

from pathlib import Path

import msgspec

from app.advice.rule import Situation
from app.domain.machine import (
    GpuInfo,
    GpuSample,
    Machine,
    ProbeSet,
)
from app.machine import aliases, join_machine
from app.session.recording import read_engine
from probes import registry

MACHINES = Path(__file__).parents[1] / "golden" / "machines"


class RecordedMachine:
    """Shows a recorded machine as if it were this one: ``Probing`` for a session."""

    def __init__(self, name: str) -> None:
        """Show the machine in the folder ``name`` of the golden machines."""
        self._name = name

    def detect(self) -> ProbeSet:
        """Return the recorded probes as this machine's."""
        return registry.replay(MACHINES / self._name)

    def replay(self, directory: Path | str) -> ProbeSet:
        """Return the probes of another recording."""
        return registry.replay(directory)

    def record(self, directory: Path | str) -> Path:
        """Refuse: there is nothing new to record."""
        raise NotImplementedError(directory)

    def ram_read_gb_s(self, n_threads: int, cache_bytes: int | None = None) -> float | None:
        """Measure nothing: the machine is not here."""
        return None

    def disk_read_mb_s(self, path: Path) -> float | None:
        """Measure nothing: the machine is not here."""
        return None


def situation_of(folder: Path) -> Situation:
    """What the advice sees of a recorded machine."""
    probes = registry.replay(folder)
    host = probes.host.identify()
    infos: list[GpuInfo] = []
    read: list[GpuSample] = []
    for probe in probes.gpus:
        infos += probe.identify()
        read += probe.sample()
        probe.close()
    machine: Machine = join_machine(host, infos, read_engine(folder))
    machine = msgspec.structs.replace(machine, unavailable=probes.unavailable)
    names = aliases(machine)
    samples: dict[str, tuple[GpuSample, ...]] = {}
    for sample in read:
        key = names.get(sample.key, sample.key)
        samples[key] = (*samples.get(key, ()), sample)
    return Situation(machine=machine, samples=samples, host_sample=probes.host.sample())
