"""Recorded machines as whole machines: probes, engine and one reading of everything."""

from pathlib import Path

import msgspec

from app.advice.rule import Situation
from app.domain.machine import (
    EngineDevice,
    EngineInfo,
    GpuInfo,
    GpuSample,
    Machine,
    ProbeSet,
)
from app.machine import aliases, join_machine
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


def engine_of(folder: Path) -> EngineInfo | None:
    """The engine whose devices were recorded beside the machine."""
    file = folder / "engine.json"
    if not file.exists():
        return None
    devices = msgspec.json.decode(file.read_bytes(), type=tuple[EngineDevice, ...])
    backends = tuple(dict.fromkeys(device.backend for device in devices))
    return EngineInfo(
        version="0.3",
        llama_version="b1",
        backends=("CPU", *backends),
        devices=devices,
        supports_offload=bool(devices),
    )


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
    machine: Machine = join_machine(host, infos, engine_of(folder))
    machine = msgspec.structs.replace(machine, unavailable=probes.unavailable)
    names = aliases(machine)
    samples: dict[str, tuple[GpuSample, ...]] = {}
    for sample in read:
        key = names.get(sample.key, sample.key)
        samples[key] = (*samples.get(key, ()), sample)
    return Situation(machine=machine, samples=samples, host_sample=probes.host.sample())
