"""The processor as Linux describes it: cores, fast and slow ones, caches, instruction sets."""

import re

from probes.reading import Absence, whole_number
from probes.tree import Tree

CPU_FOLDER = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"
MAX_CPUS = 4096
CPU_INFO_BYTES = 16 * 1024
"""Enough for the first processor; the file repeats itself for each."""
FEATURES = {
    **{n: n for n in ("avx", "avx2", "fma", "f16c", "bmi2", "avx512f", "avx512_vnni")},
    **{n: n for n in ("avx_vnni", "amx_int8", "i8mm", "sve", "sve2")},
    "asimd": "neon",
    "asimddp": "dotprod",
}
"""The kernel's flag → the name ggml uses; those that ggml has kernels for."""
NODE = re.compile(r"node\d+")
SCALE = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu_name(tree: Tree) -> str | None:
    """Return the processor's marketing name."""
    text = tree.text("/proc/cpuinfo", CPU_INFO_BYTES)
    match = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def features(tree: Tree) -> tuple[str, ...] | None:
    """Return the instruction sets; ``None`` when the kernel's list is not there or cut short."""
    text = tree.text("/proc/cpuinfo", CPU_INFO_BYTES)
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    if match is None or (match.end() == len(text) and len(text) >= CPU_INFO_BYTES - 1):
        return None
    flags = set(match[1].split())
    return tuple(name for flag, name in FEATURES.items() if flag in flags)


def physical_cores(tree: Tree, cpus: tuple[int, ...]) -> int | None:
    """Return how many physical cores the logical processors ``cpus`` belong to."""
    cores = set()
    for cpu in cpus[:MAX_CPUS]:
        folder = f"{CPU_FOLDER}/cpu{cpu}/topology"
        core = tree.text(f"{folder}/core_id")
        if isinstance(core, Absence):
            return None
        cores.add((tree.text(f"{folder}/physical_package_id"), core))
    return len(cores) or None


def fast_and_slow(tree: Tree, cpus: tuple[int, ...]) -> tuple[int | None, int | None]:
    """Return how many usable P- and E-cores there are; ``None`` where all are alike.

    Intel's kinds have files of their own (Linux ≥ 5.13), ARM's differ in capacity.
    """
    fast = cpu_list(tree.text("/sys/devices/cpu_core/cpus"))
    slow = cpu_list(tree.text("/sys/devices/cpu_atom/cpus"))
    if not fast or not slow:
        capacity = {
            cpu: whole_number(tree.text(f"{CPU_FOLDER}/cpu{cpu}/cpu_capacity"))
            for cpu in cpus[:MAX_CPUS]
        }
        known = {cpu: c for cpu, c in capacity.items() if isinstance(c, int)}
        fast = {cpu for cpu, c in known.items() if c == max(known.values())}
        slow = set(known) - fast
    here = set(cpus)
    if not fast & here or not slow:
        return None, None
    return (
        physical_cores(tree, tuple(sorted(fast & here))),
        physical_cores(tree, tuple(sorted(slow & here))) or 0,
    )


def threads_per_core(tree: Tree) -> int | None:
    """Return 2 where cores run two threads each now, else 1."""
    return {"1": 2, "0": 1}.get(str(tree.text(f"{CPU_FOLDER}/smt/active")))


def numa_nodes(tree: Tree) -> int | None:
    """Return the number of memory nodes."""
    return sum(NODE.fullmatch(name) is not None for name in tree.names(NODES)) or None


def l3_bytes(tree: Tree, cpus: tuple[int, ...]) -> int | None:
    """Return the third-level cache of all usable processors together."""
    total, seen = 0, set[int]()
    for cpu in cpus[:MAX_CPUS]:
        if cpu in seen:
            continue
        folder = f"{CPU_FOLDER}/cpu{cpu}/cache/index3"
        text = str(tree.text(f"{folder}/size"))
        if not text[:-1].isdigit() or text[-1] not in SCALE:
            return total or None
        total += int(text[:-1]) * SCALE[text[-1]]
        seen |= cpu_list(tree.text(f"{folder}/shared_cpu_list")) | {cpu}
    return total or None


def cpu_list(text: str) -> set[int]:
    """Return the numbers in a kernel list such as ``0-7,16``."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last or first).isdigit():
            cpus.update(range(int(first), min(int(last or first), MAX_CPUS) + 1))
    return cpus
