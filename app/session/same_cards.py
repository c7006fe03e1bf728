"""A stored profile's devices on the machine of today: names may have moved, cards are known."""

from collections.abc import Mapping

import msgspec

from app.domain.machine import Machine
from app.domain.settings import Settings


def keys_of(settings: Settings, machine: Machine) -> dict[str, str]:
    """Return engine name → GPU key for the devices of ``settings``, to be stored with them."""
    return {
        device.name: gpu.key
        for gpu in machine.gpus
        for device in gpu.engine
        if device.name in settings.devices
    }


def on_same_cards(
    settings: Settings, keys: Mapping[str, str], machine: Machine
) -> tuple[Settings, tuple[str, ...]]:
    """Return ``settings`` with the names that its cards have now, and those that are gone.

    Another card, a moved one or another driver may shift the engine's numbers. A profile without
    keys keeps its names. Without any of its cards it is one for whatever card there is.

    Args:
        settings: As stored.
        keys: ``keys_of`` when they were measured.
        machine: As it is now, engine included.
    """
    now = {(g.key, _backend(d.name)): d.name for g in machine.gpus for d in g.engine}
    listed = {d.name for g in machine.gpus for d in g.engine}
    names, gone = [], []
    for name in settings.devices:
        key = keys.get(name)
        found = now.get((key, _backend(name))) if key is not None else name
        if found is None or found not in listed:
            gone.append(name)
        else:
            names.append(found)
    return msgspec.structs.replace(settings, devices=tuple(names)), tuple(gone)


def _backend(name: str) -> str:
    return name.rstrip("0123456789")
