"""Laptop or not, mains or battery, bare metal or not: from files that never wake a device."""

from app.domain.machine import PowerSource
from probes.reading import Absence, whole_number
from probes.smbios import chassis_type
from probes.system import SystemFacts
from probes.tree import Tree

SUPPLIES = "/sys/class/power_supply"
DMI = "/sys/class/dmi/id"
LAPTOP_CHASSIS = {8, 9, 10, 11, 14, 30, 31, 32}
"""SMBIOS table 17: portable, laptop, notebook, hand held, sub notebook, tablet, convertible,
detachable."""
DESKTOP_CHASSIS = {3, 4, 5, 6, 7, 13, 15, 16, 17, 23, 24, 25, 28, 29, 34, 35, 36}
VM_VENDORS = ("qemu", "vmware", "innotek", "virtualbox", "xen", "bochs", "amazon ec2", "google")


def power_source(tree: Tree, facts: SystemFacts) -> PowerSource:
    """Return where the power comes from; a machine without battery runs on the mains."""
    supplies = _supplies(tree)
    if supplies is None:
        if facts.plugged is None:
            # Windows always says whether there is a battery; elsewhere silence means nothing.
            return PowerSource.AC if facts.os == "windows" else PowerSource.UNKNOWN
        return PowerSource.AC if facts.plugged else PowerSource.BATTERY
    online = [tree.text(f"{s}/online") for s in supplies if not _is_battery(tree, s)]
    batteries = [s for s in supplies if _is_battery(tree, s)]
    if "1" in online or not batteries:
        return PowerSource.AC
    statuses = {str(tree.text(f"{s}/status")).lower() for s in batteries}
    if "discharging" in statuses:
        return PowerSource.BATTERY
    return (
        PowerSource.AC if statuses & {"charging", "full", "not charging"} else PowerSource.UNKNOWN
    )


def battery_pct(tree: Tree) -> float | None:
    """Return the charge of the first battery (Linux)."""
    for supply in _supplies(tree) or []:
        if _is_battery(tree, supply):
            value = whole_number(tree.text(f"{supply}/capacity"))
            return None if isinstance(value, Absence) else float(value)
    return None


def is_laptop(
    tree: Tree, facts: SystemFacts, table: bytes | Absence = Absence.NO_DATA
) -> bool | None:
    """Return whether the machine is portable: by its chassis, else by having a battery.

    A desktop's uninterruptible supply shows as a battery too, so the chassis counts first; where
    the kernel does not give it, the firmware's ``table`` does.
    """
    chassis: object = whole_number(tree.text(f"{DMI}/chassis_type"))
    if isinstance(chassis, Absence) and not isinstance(table, Absence):
        chassis = chassis_type(table)
    if chassis in LAPTOP_CHASSIS:
        return True
    if chassis in DESKTOP_CHASSIS:
        return False
    if battery_pct(tree) is not None or facts.battery_pct is not None:
        return True
    return None


def virtualization(tree: Tree) -> str | None:
    """Return ``wsl2``, ``container``, ``vm`` or ``None``."""
    if "microsoft" in str(tree.text("/proc/sys/kernel/osrelease")).lower():
        return "wsl2"
    marks = ("/run/.containerenv", "/.dockerenv", "/run/systemd/container")
    if any(tree.text(m) is not Absence.NOT_SUPPORTED for m in marks):
        return "container"
    groups = str(tree.text("/proc/1/cgroup"))
    if any(word in groups for word in ("docker", "kubepods", "lxc", "containerd")):
        return "container"
    vendor = str(tree.text(f"{DMI}/sys_vendor")).lower()
    product = str(tree.text(f"{DMI}/product_name")).lower()
    if vendor.startswith(VM_VENDORS) or "virtual machine" in product or "kvm" in product:
        return "vm"
    return None


def _supplies(tree: Tree) -> list[str] | None:
    """Return the folders of the machine's own supplies; ``None`` where there is no such list."""
    entries = tree.names(SUPPLIES)
    if not entries and not tree.names("/sys/class"):
        return None
    folders = [f"{SUPPLIES}/{entry}" for entry in entries]
    # A mouse's or headset's battery is not the machine's.
    return [f for f in folders if str(tree.text(f"{f}/scope")).lower() != "device"]


def _is_battery(tree: Tree, folder: str) -> bool:
    return tree.text(f"{folder}/type") == "Battery"
