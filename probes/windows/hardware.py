"""What Windows says of the processor, the memory modules and the modes of the machine."""

from typing import Any

from probes.ram import modules
from probes.reading import Absence
from probes.windows import settings
from probes.windows.facts import CacheFacts, Windows


def windows_hardware(
    windows: Windows, cpus: tuple[int, ...], *, on_battery: bool
) -> dict[str, Any]:
    """Return processor, memory modules, modes and settings of Windows."""
    cores, features, adapters = windows.cores(), windows.features(), windows.adapters()
    found = () if isinstance(cores, Absence) else cores
    best = max((core.efficiency for core in found), default=0)
    fast = sum(core.efficiency == best for core in found)
    alike = fast == len(found)
    mode = settings.power_mode(windows, on_battery=on_battery)
    states = () if isinstance(adapters, Absence) else tuple(a.hags_enabled for a in adapters)
    hags = None if all(state is None for state in states) else any(states)
    return {
        "cores_performance": None if alike else fast,
        "cores_efficiency": None if alike else len(found) - fast,
        "threads_per_core": max((len(core.cpus) for core in found), default=None),
        "numa_nodes": windows.n_nodes() or None,
        "cpu_features": None if isinstance(features, Absence) else features,
        "l3_bytes": third_level(windows.caches(), cpus),
        "power_mode": None if isinstance(mode, Absence) else mode,
        "windows": settings.windows_settings(windows, hags=hags),
        **modules(windows.firmware()),
    }


def third_level(
    caches: tuple[CacheFacts, ...] | Absence, cpus: tuple[int, ...]
) -> int | Absence | None:
    """Return the third-level cache of all usable processors together (Windows)."""
    if isinstance(caches, Absence):
        return caches
    usable = set(cpus)
    return sum(c.n_bytes for c in caches if c.level == 3 and usable & set(c.cpus)) or None
