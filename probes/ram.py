"""Memory modules: from the firmware's table where it may be read, else the little that is told."""

import re

from probes.reading import Absence
from probes.smbios import memory_modules
from probes.tree import Tree

DMI = "/sys/firmware/dmi/tables/DMI"
DMI_BYTES = 1 << 20
EDAC = "/sys/devices/system/edac/mc"


def linux_modules(tree: Tree) -> dict[str, object]:
    """Return kind, speed and number of the memory modules of a Linux machine."""
    return modules(tree.head(DMI, DMI_BYTES), memory_type(tree))


def modules(table: bytes | Absence, other_type: str | None = None) -> dict[str, object]:
    """Return kind, speed and number of the memory modules in a firmware table.

    Args:
        table: The table, or why it cannot be read (Linux: only with root's rights).
        other_type: Kind of memory by another source.
    """
    names = ("ram_speed_mt_s", "ram_modules", "ram_slots")
    if isinstance(table, Absence):
        return {**dict.fromkeys(names, table), "ram_type": other_type or table}
    found = memory_modules(table)
    if found is None:
        return {**dict.fromkeys(names), "ram_type": other_type}
    figures = (found.speed_mt_s, found.populated, found.slots)
    return {**dict(zip(names, figures, strict=True)), "ram_type": found.kind or other_type}


def memory_type(tree: Tree) -> str | None:
    """Return the kind of memory that an error-checking driver (EDAC) names, if one is loaded.

    It knows no speed, and its "DIMMs" are channels on some controllers, so they are not counted.
    """
    for folder in (f"{EDAC}/{name}" for name in tree.names(EDAC)):
        for entry in tree.names(folder):
            found = re.search(r"(LP)?DDR\d", str(tree.text(f"{folder}/{entry}/dimm_mem_type")))
            if found is not None:
                return found[0]
    return None
