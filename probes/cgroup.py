"""What a container or session may use of the machine (Linux control groups)."""

from probes.reading import Absence, whole_number
from probes.tree import Tree

ROOT = "/sys/fs/cgroup"
UNLIMITED = 1 << 60
"""Version 1 writes a number near 2⁶³ for "no limit"."""


def cpu_quota(tree: Tree) -> float | None:
    """Return how many processors' worth of time this process gets; ``None`` = unlimited."""
    quotas = []
    for folder in _folders(tree, "cpu"):
        text = tree.text(f"{folder}/cpu.max")
        if isinstance(text, Absence):
            quota = whole_number(tree.text(f"{folder}/cpu.cfs_quota_us"))
            period = whole_number(tree.text(f"{folder}/cpu.cfs_period_us"))
        else:
            parts = [whole_number(word) for word in text.split()]
            quota, period = (*parts, Absence.NO_DATA, Absence.NO_DATA)[:2]
        if isinstance(quota, int) and isinstance(period, int) and quota > 0 and period > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def memory_limit(tree: Tree, ram_bytes: int | None) -> int | None:
    """Return the memory this process may use when that is less than the machine's."""
    bound = UNLIMITED if ram_bytes is None else ram_bytes
    limits = [
        value
        for folder in _folders(tree, "memory")
        for file in ("memory.max", "memory.limit_in_bytes")
        if isinstance(value := whole_number(tree.text(f"{folder}/{file}")), int)
    ]
    return min((v for v in limits if 0 < v < bound), default=None)


def memory_used(tree: Tree) -> int | None:
    """Return what the group holds, without file pages that the kernel gives back on demand."""
    for folder in _folders(tree, "memory"):
        for file in ("memory.current", "memory.usage_in_bytes"):
            used = whole_number(tree.text(f"{folder}/{file}"))
            if isinstance(used, int):
                return max(0, used - _file_pages(tree.text(f"{folder}/memory.stat")))
    return None


def _file_pages(stat: str) -> int:
    pairs = (line.split(" ") for line in stat.splitlines())
    values = {p[0]: p[1] for p in pairs if len(p) == 2}
    text = values.get("total_inactive_file", values.get("inactive_file", "0"))
    return int(text) if text.isdigit() else 0


def _folders(tree: Tree, controller: str) -> list[str]:
    """Return this process's groups of a controller, innermost first, up to the root."""
    lines = tree.text("/proc/self/cgroup")
    found: list[str] = []
    for line in [] if isinstance(lines, Absence) else lines.splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controller in controllers.split(","):
            base = f"{ROOT}/{controller}"
        elif number == "0" and not controllers:
            base = ROOT
        else:
            continue
        parts = [part for part in path.split("/") if part]
        found += [f"{base}/{'/'.join(parts[:n])}".rstrip("/") for n in range(len(parts), -1, -1)]
    return found
