"""What the probes read of GPUs and RAM now, for estimates; a sleeping GPU stays asleep."""

import os
from typing import NamedTuple

import msgspec

from app.domain.machine import (
    EngineDevice,
    Gpu,
    GpuKind,
    GpuProcess,
    GpuSample,
    HostSample,
    Machine,
    PowerState,
    ProbeSet,
)
from app.domain.sweep import SearchDevice
from app.domain.units import MIB
from app.machine import aliases, judged_memory, kind_of, merge_samples
from app.telemetry import Telemetry

ASLEEP, UNREAD = "asleep", "unread"
PARENT = "parent"
"""``GpuInfo.mig`` of a split card, which is usable through its parts only."""
_WORTH_CLOSING = 64 * MIB


class Readings(NamedTuple):
    """One moment: a sample per GPU, by ``Gpu.key``, and one of the host."""

    gpus: dict[str, GpuSample]
    host: HostSample | None = None


class Holder(NamedTuple):
    """A program and what it holds of one engine device's memory, bytes."""

    device: str
    process: GpuProcess
    n_bytes: int


def read_now(machine: Machine, probes: ProbeSet, telemetry: Telemetry | None) -> Readings:
    """Return the newest reading of every GPU, through the telemetry where it is running."""
    names = aliases(machine)
    found: dict[str, list[GpuSample]] = {}
    if telemetry is not None:
        for gpu in machine.gpus:
            found[gpu.key] = list(telemetry.latest(gpu.key))
        host = telemetry.latest_host() or probes.host.sample()
    else:
        for sample in (s for probe in probes.gpus for s in probe.sample()):
            found.setdefault(names.get(sample.key, sample.key), []).append(sample)
        host = probes.host.sample()
    merged = {key: merge_samples(samples) for key, samples in found.items()}
    return Readings({key: sample for key, sample in merged.items() if sample is not None}, host)


def with_ram_of_now(machine: Machine, readings: Readings) -> Machine:
    """Return ``machine`` with the RAM that is available now."""
    available = readings.host.ram_available_bytes if readings.host else None
    if available is None:
        return machine
    host = msgspec.structs.replace(machine.host, ram_available_bytes=available)
    return msgspec.structs.replace(machine, host=host)


def named_gpus(machine: Machine) -> dict[str, Gpu]:
    """Return the GPUs by the names estimates give them: the engine's, else their own."""
    names: dict[str, Gpu] = {}
    for gpu in machine.gpus:
        for device in gpu.engine:
            names[device.name] = gpu
        if not gpu.engine and gpu.info is not None and gpu.info.mig != PARENT:
            label = gpu.info.name or f"{gpu.info.vendor or 'GPU'} {gpu.info.pci_id or ''}".strip()
            names[f"{label} ({gpu.key})" if label in names else label] = gpu
    return names


def sleepers(machine: Machine, readings: Readings) -> tuple[str, ...]:
    """Return the names of the GPUs that are asleep."""
    asleep = {k for k, s in readings.gpus.items() if s.power_state is PowerState.ASLEEP}
    found = {gpu.key: name for name, gpu in named_gpus(machine).items() if gpu.key in asleep}
    return tuple(
        next((g.info.name for g in machine.gpus if g.key == key and g.info), None) or name
        for key, name in found.items()
    )


def probed_devices(
    machine: Machine, readings: Readings
) -> tuple[tuple[SearchDevice, ...], dict[str, str]]:
    """Return the GPUs as far as the probes know them, and why a free memory is not known.

    For a machine whose engine was not asked (a GPU sleeps, or it is a recording). Of a sleeping
    GPU with a known size all is free: it sleeps because nobody uses it.
    """
    devices: list[SearchDevice] = []
    unread: dict[str, str] = {}
    for name, gpu in named_gpus(machine).items():
        sample = readings.gpus.get(gpu.key)
        is_asleep = sample is not None and sample.power_state is PowerState.ASLEEP
        device = _probed(name, gpu, machine, sample)
        devices.append(device)
        is_read = sample is not None and sample.vram_free_bytes is not None
        is_shared = device.kind == GpuKind.INTEGRATED and device.total_bytes > 0
        if not (is_read or is_shared or (is_asleep and device.total_bytes > 0)):
            unread[name] = ASLEEP if is_asleep else UNREAD
    return tuple(devices), unread


def carve_out_bytes(gpu: Gpu, readings: Readings) -> int:
    """Return the free bytes of what only a GPU inside the processor can use; 0 = no such part."""
    sample = readings.gpus.get(gpu.key)
    own = gpu.info.vram_total_bytes if gpu.info is not None else None
    free = sample.vram_free_bytes if sample is not None else None
    return min(own or 0, own or 0 if free is None else free)


def holders(machine: Machine, readings: Readings, devices: tuple[str, ...]) -> list[Holder]:
    """Return the other programs that hold memory on ``devices``, the largest first.

    A program on a GPU inside the processor holds RAM, which is judged with the rest of it.
    """
    gpus = named_gpus(machine)
    found = []
    for name in devices:
        gpu = gpus.get(name)
        if gpu is None or kind_of(gpu) is GpuKind.INTEGRATED or gpu.key not in readings.gpus:
            continue
        for process in readings.gpus[gpu.key].processes or ():
            n_bytes = process.vram_bytes or 0
            if n_bytes >= _WORTH_CLOSING and process.pid != os.getpid():
                found.append(Holder(name, process, n_bytes))
    return sorted(found, key=lambda h: -h.n_bytes)


def _probed(name: str, gpu: Gpu, machine: Machine, sample: GpuSample | None) -> SearchDevice:
    info = gpu.info
    assert info is not None
    kind = kind_of(gpu)
    total = info.vram_total_bytes
    if kind is GpuKind.INTEGRATED and info.shared_total_bytes is not None:
        total = (total or 0) + info.shared_total_bytes
    free = sample.vram_free_bytes if sample is not None and kind is not GpuKind.INTEGRATED else None
    backend = "CUDA" if info.vendor == "nvidia" else "Vulkan"
    stand_in = EngineDevice(
        name=name, backend=backend, description=name, kind=kind, total_bytes=total, free_bytes=free
    )
    total, free = judged_memory(gpu, stand_in, machine.host) or (0, 0)
    if info.vram_budget_bytes is not None and kind is GpuKind.DISCRETE:
        free = min(free, info.vram_budget_bytes)  # what Windows gives one program
    return SearchDevice(
        id=name, kind=kind.value, backend=backend, total_bytes=total, free_bytes=free
    )
