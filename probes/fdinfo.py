"""Programs that hold memory on AMD and Intel GPUs, from the kernel's per-client figures.

Needs no rights for the user's own programs and wakes nothing (kernel, ``drm-usage-stats``).
"""

import re
from collections.abc import Iterable

from probes.pci import normal_pci_id

UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
VALUE = re.compile(r"(\d{1,19})\s*(KiB|MiB|GiB)?")
DEDICATED = re.compile(r"vram\d*|local\d*")
SHARED = re.compile(r"gtt|cpu|system\d*|stolen-system\d*")
KINDS = ("resident", "memory", "total")
"""Best first: what really lies there, its older name, what was asked for."""


def memory_by_program(
    clients: Iterable[tuple[int, str]], pci_id: str
) -> dict[int, tuple[int, int]]:
    """Return pid → (dedicated, shared) bytes on one GPU; a client shared by descriptors once."""
    found: dict[int, tuple[int, int]] = {}
    seen: set[str] = set()
    for pid, text in clients:
        parts = (line.partition(":") for line in text.splitlines())
        lines = {name.strip(): value.strip() for name, _, value in parts}
        if normal_pci_id(lines.get("drm-pdev")) != pci_id:
            continue
        client = lines.get("drm-client-id", "")
        if client in seen:
            continue
        seen.add(client)
        dedicated, shared = found.get(pid, (0, 0))
        found[pid] = (dedicated + _held(lines, DEDICATED), shared + _held(lines, SHARED))
    return {pid: used for pid, used in found.items() if any(used)}


def _held(lines: dict[str, str], regions: re.Pattern[str]) -> int:
    for kind in KINDS:
        prefix = f"drm-{kind}-"
        values = [
            _bytes(value)
            for name, value in lines.items()
            if name.startswith(prefix) and regions.fullmatch(name[len(prefix) :])
        ]
        if values:
            return sum(values)
    return 0


def _bytes(text: str) -> int:
    match = VALUE.fullmatch(text)
    return int(match[1]) * UNITS[match[2] or ""] if match else 0
