"""Modes that change speed or hide a GPU: platform profile, MUX switch, PRIME tools (Linux)."""

import json

from probes.reading import Absence
from probes.tree import Tree

PROFILES = {
    "low-power": "saver",
    "quiet": "saver",
    "cool": "balanced",
    "balanced": "balanced",
    "balanced-performance": "balanced",
    "performance": "performance",
}
ASUS = "/sys/devices/platform/asus-nb-wmi"
PRIME = {"on-demand": "hybrid", "nvidia": "discrete", "intel": "integrated", "on": "discrete"}
SUPERGFX = {"integrated": "integrated", "hybrid": "hybrid", "asusmuxdgpu": "discrete"}
REMOVAL_RULES = (
    "/etc/udev/rules.d/50-remove-nvidia.rules",
    "/lib/udev/rules.d/50-remove-nvidia.rules",
)
"""Left by envycontrol's integrated mode, which takes the device off the bus."""


def power_mode(tree: Tree) -> str | None:
    """Return the platform profile as ``saver``, ``balanced``, ``performance`` or its own word."""
    text = tree.text("/sys/firmware/acpi/platform_profile")
    if isinstance(text, Absence) or not text.replace("-", "").isalpha():
        return None
    return PROFILES.get(text, text)


def gpu_mode(tree: Tree) -> str | None:
    """Return ``integrated``, ``hybrid`` or ``discrete`` as the machine's switch or tool says."""
    if tree.text(f"{ASUS}/dgpu_disable") == "1":
        return "integrated"
    if tree.text(f"{ASUS}/gpu_mux_mode") == "0":
        return "discrete"
    if any(not isinstance(tree.text(path), Absence) for path in REMOVAL_RULES):
        return "integrated"
    prime = tree.text("/etc/prime-discrete")
    if not isinstance(prime, Absence):
        return PRIME.get(prime)
    config = tree.text("/etc/supergfxd.conf")
    try:
        found = {} if isinstance(config, Absence) else json.loads(config)
    except ValueError:
        return None
    mode = found.get("mode") if isinstance(found, dict) else None
    return SUPERGFX.get(str(mode).lower())
