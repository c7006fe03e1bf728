"""What the kernel says of a GPU inside an NVIDIA system on chip (Jetson), where NVML is silent."""

from probes.reading import Absence, scaled, whole_number
from probes.tree import Tree

ZONES = "/sys/class/thermal"
ZONE_TYPES = ("gpu-thermal", "GPU-therm", "tj-thermal")
"""The GPU's own sensor first, else the hottest spot of the chip; millidegrees."""
LOADS = ("/sys/devices/platform/gpu.0/load", "/sys/devices/gpu.0/load")
"""Busy time in tenths of a per cent."""


def reading(tree: Tree) -> dict[str, object]:
    """Return busy time and temperature, or why they are absent."""
    loads = [whole_number(tree.text(path)) for path in LOADS]
    load = next((value for value in loads if isinstance(value, int)), Absence.NOT_SUPPORTED)
    return {"busy_pct": scaled(load, 0.1), "temp_c": _temperature(tree)}


def _temperature(tree: Tree) -> object:
    zones = [f"{ZONES}/{n}" for n in tree.names(ZONES) if n.startswith("thermal_zone")]
    by_type = {str(tree.text(f"{zone}/type")): zone for zone in zones}
    for kind in ZONE_TYPES:
        if kind in by_type:
            return scaled(whole_number(tree.text(f"{by_type[kind]}/temp")), 0.001)
    return Absence.NOT_SUPPORTED
