"""The engine's devices as a search sees them: each card once, with the memory free now."""

from app.domain.machine import EngineDevice
from app.domain.sweep import SearchDevice
from app.rig.footprint import FreeNow


def offered(
    devices: tuple[EngineDevice, ...], names: tuple[str, ...] | None, free_now: FreeNow | None
) -> tuple[SearchDevice, ...]:
    """Return the devices named, or each card once: the engine lists it per backend.

    Args:
        devices: As the engine lists them.
        names: Which of them to use; ``None`` = every card.
        free_now: Free bytes of a device by probe, where they are read; else as the engine said.
    """
    return tuple(_searched(device, free_now) for device in _wanted(devices, names))


def _searched(device: EngineDevice, free_now: FreeNow | None) -> SearchDevice:
    free = free_now(device.name) if free_now else None
    return SearchDevice(
        id=device.name,
        kind=device.kind,
        backend=device.backend,
        total_bytes=device.total_bytes or 0,
        free_bytes=free if free is not None else device.free_bytes or 0,
    )


def _wanted(devices: tuple[EngineDevice, ...], names: tuple[str, ...] | None) -> list[EngineDevice]:
    if names is not None:
        return [d for d in devices if d.name in names]
    chosen: dict[str, EngineDevice] = {}
    for device in devices:
        chosen.setdefault(device.pci_id or device.name, device)
    return list(chosen.values())
