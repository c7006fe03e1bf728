"""Recorded machines as whole machines: probes, engine and one reading of everything."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.advice.rule import Situation
from app.machine import aliases, join_machine
from app.session.recording import read_engine
from probes import registry

if TYPE_CHECKING:
    from app.domain.machine import GpuInfo, GpuSample, Machine

MACHINES = Path(__file__).parents[1] / "golden" / "machines"


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
