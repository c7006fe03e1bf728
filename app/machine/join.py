"""Joins what probes and engine say of the same GPU.

Pure. Orders differ between NVML, CUDA, Vulkan and the kernel, so devices are matched by
identity, never by index: PCI address first, then a name that fits one card only.
"""

from collections.abc import Iterable, Sequence

import msgspec

from app.domain.machine import EngineDevice, EngineInfo, Gpu, GpuInfo, GpuKind, HostInfo, Machine
from app.machine.devices import TOTAL_SLACK, best_first, flagged, rank_of
from app.machine.merge import merge_infos
from app.machine.names import names_fit, pci_of, words_of

INSTANCE = "instance"
"""``GpuInfo.mig`` of a part of a split card."""


def join_machine(
    host: HostInfo, infos: Iterable[GpuInfo], engine: EngineInfo | None = None
) -> Machine:
    """Return the machine with each physical GPU once.

    Args:
        host: What the host is.
        infos: What every probe says, the more precise probe first.
        engine: The llama.cpp build and its devices; ``None`` while it has not been asked.
    """
    devices = [flagged(device) for device in engine.devices] if engine is not None else []
    gpus = _join(merge_infos(infos), devices)
    if engine is not None:
        engine = msgspec.structs.replace(engine, devices=tuple(devices))
    ordered = sorted(gpus, key=rank_of)
    return Machine(host=host, gpus=tuple(ordered), engine=engine)


def aliases(machine: Machine) -> dict[str, str]:
    """Return every name a probe may use for a GPU → the GPU's key (for ``Telemetry``)."""
    names: dict[str, str] = {}
    for gpu in machine.gpus:
        info = gpu.info
        if info is not None:
            # The parts of a split card share the card's address, which is the whole card's name.
            address = None if info.mig == INSTANCE else info.pci_id
            luid = f"luid:{info.luid}" if info.luid else None
            known = (info.uuid, address, info.vulkan_uuid, luid)
            names.update({name: gpu.key for name in known if name is not None})
        for device in gpu.engine:
            names[device.name] = gpu.key
    return names


def _join(infos: list[GpuInfo], devices: Sequence[EngineDevice]) -> list[Gpu]:
    matched: dict[int, list[EngineDevice]] = {i: [] for i in range(len(infos))}
    own: list[Gpu] = []
    for device in devices:
        where, reason = _match(device, infos, devices)
        if where is not None:
            matched[where].append(device)
        else:
            own.append(_own(device, reason, own))
    joined = [
        Gpu(
            key=info.key,
            info=info,
            engine=best_first(matched[i], info.kind),
            unmatched="ambiguous_name" if _is_a_twin(info, infos) else None,
        )
        for i, info in enumerate(infos)
    ]
    return joined + _by_address(own)


def _is_a_twin(info: GpuInfo, infos: list[GpuInfo]) -> bool:
    """Whether a card without address or number is one of several that another probe names so."""
    if info.pci_id is not None or info.uuid is not None or not info.name:
        return False
    words = words_of(info.name)
    return any(i.probe != info.probe and words_of(i.name or "") == words for i in infos)


def _match(
    device: EngineDevice, infos: list[GpuInfo], devices: Sequence[EngineDevice]
) -> tuple[int | None, str | None]:
    """Return which GPU a device is, or why none."""
    if device.kind in {GpuKind.SOFTWARE, GpuKind.REMOTE} or not infos:
        return None, None
    address = pci_of(device.pci_id)
    if address is not None:
        by_pci = [i for i, info in enumerate(infos) if pci_of(info.pci_id) == address]
        if any(infos[i].mig is not None for i in by_pci):
            return _instance(device, by_pci, infos)
        # An address that no probe knows is a card that the probes cannot see.
        known = by_pci or [i for i, info in enumerate(infos) if info.pci_id is None]
        if by_pci or not known:
            return (by_pci[0], None) if by_pci else (None, "no_probe_sees_it")
    fits = [i for i, info in enumerate(infos) if names_fit(info, device)]
    twins = [d for d in devices if d.backend == device.backend and _fits_any(d, infos, fits)]
    if not fits:
        return None, "no_probe_sees_it"
    return (fits[0], None) if len(fits) == 1 and len(twins) == 1 else (None, "ambiguous_name")


def _instance(
    device: EngineDevice, same_card: list[int], infos: list[GpuInfo]
) -> tuple[int | None, str | None]:
    """Return which part of a split card a device is: a program sees one part, by its size."""
    parts = [i for i in same_card if infos[i].mig == INSTANCE]
    if len(parts) > 1 and device.total_bytes is not None:
        parts = [i for i in parts if _close(infos[i].vram_total_bytes, device.total_bytes)]
    return (parts[0], None) if len(parts) == 1 else (None, "ambiguous_instance")


def _close(one: int | None, other: int) -> bool:
    return one is not None and max(one, other) <= min(one, other) * TOTAL_SLACK


def _own(device: EngineDevice, reason: str | None, others: list[Gpu]) -> Gpu:
    """Return a GPU that only the engine sees."""
    key = pci_of(device.pci_id) or f"{device.backend}:{device.endpoint or device.description}"
    taken = {gpu.key for gpu in others}
    if key in taken and pci_of(device.pci_id) is None:
        # One server may offer several devices under one address.
        key = f"{key}:{device.name}"
    return Gpu(key=key, engine=(device,), unmatched=reason)


def _by_address(gpus: list[Gpu]) -> list[Gpu]:
    """Join the names that several backends give to a card no probe sees."""
    joined: dict[str, Gpu] = {}
    for gpu in gpus:
        first = joined.get(gpu.key)
        if first is not None:
            engine = best_first([*first.engine, *gpu.engine], gpu.engine[0].kind)
            joined[gpu.key] = msgspec.structs.replace(first, engine=engine)
        else:
            joined[gpu.key] = gpu
    return list(joined.values())


def _fits_any(device: EngineDevice, infos: list[GpuInfo], which: list[int]) -> bool:
    return any(names_fit(infos[i], device) for i in which)
