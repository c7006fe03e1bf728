"""What the ``amdgpu`` driver says in sysfs. All files are readable without rights."""

from app.domain.machine import GpuKind
from probes import hwmon
from probes.pci import AMD_INTEGRATED_IDS, PciGpu, link
from probes.reading import Absence, scaled, whole_number
from probes.tree import Tree

NEW_TIMEOUT_MS, OLD_TIMEOUT_MS = 2_000, 60_000


def kind_by_id(gpu: PciGpu) -> GpuKind:
    """Return card or part of the processor by PCI id alone (all that a sleeping GPU tells)."""
    if not gpu.device_id:
        return GpuKind.UNKNOWN
    return GpuKind.INTEGRATED if gpu.device_id in AMD_INTEGRATED_IDS else GpuKind.DISCRETE


def kind(tree: Tree, gpu: PciGpu) -> GpuKind:
    """Return whether an awake GPU is a card or part of the processor.

    Neither PCI class nor ``boot_vga`` tells. The metrics table does: its format is 1.x for
    cards and 2.x or 3.x for processors (kernel, ``kgd_pp_interface.h``).
    """
    head = tree.head(f"{gpu.path}/gpu_metrics", 4)
    revision = 0 if isinstance(head, Absence) or len(head) < 4 else head[2]
    if revision in {2, 3}:
        return GpuKind.INTEGRATED
    return GpuKind.DISCRETE if revision == 1 else kind_by_id(gpu)


def identity(tree: Tree, gpu: PciGpu, kind_: GpuKind) -> dict[str, object]:
    """Return the constant facts of an awake GPU."""
    folder = hwmon.folder_of(tree, gpu.path, ("amdgpu",))
    integrated = kind_ is GpuKind.INTEGRATED
    total, visible = (_bytes(tree, gpu, f"mem_info_{what}_total") for what in ("vram", "vis_vram"))
    generation, width = _link(tree, gpu, "max", integrated=integrated)
    low = hwmon.sensor(tree, folder, "power1_cap_min", factor=hwmon.MICRO)
    high = hwmon.sensor(tree, folder, "power1_cap_max", factor=hwmon.MICRO)
    return {
        "name": tree.text(f"{gpu.path}/product_name"),
        # On a processor this is only the part of RAM that firmware carved out.
        "vram_total_bytes": total,
        "shared_total_bytes": _bytes(tree, gpu, "mem_info_gtt_total"),
        "unified_memory": integrated,
        "pcie_gen_max": generation,
        "pcie_width_max": width,
        "power_limit_min_w": low,
        "power_limit_max_w": high,
        "power_limit_default_w": hwmon.sensor(
            tree, folder, "power1_cap_default", factor=hwmon.MICRO
        ),
        # Some boards show a range of one value.
        "power_limit_settable": not (isinstance(low, Absence) or low == high),
        "temp_slowdown_c": hwmon.temperature(tree, folder, "junction", "edge", suffix="crit"),
        "bar_bytes": Absence.NOT_APPLICABLE if integrated else visible,
        "resizable_bar": Absence.NOT_APPLICABLE if integrated else all_visible(visible, total),
        **compute_timeout(tree),
    }


def all_visible(visible: int | Absence, total: int | Absence) -> bool | Absence:
    """Return whether the processor can address all of the card's memory (Resizable BAR)."""
    for size in (visible, total):
        if isinstance(size, Absence):
            return size
    return visible == total


def compute_timeout(tree: Tree) -> dict[str, object]:
    """Return after which time the driver resets a compute job, and whether someone set it.

    The module parameter lists graphics, compute, copy and video. One value alone is not for
    compute; 0 keeps the kernel's default, which fell from 60 s to 2 s with kernel 7 (llama.cpp
    issues 25664 and 27076); a negative one means never.
    """
    text = tree.text("/sys/module/amdgpu/parameters/lockup_timeout")
    parts = [] if isinstance(text, Absence) else text.split(",")
    found = whole_number(parts[1]) if len(parts) > 1 else 0
    if isinstance(found, int) and found != 0:
        limit = found if found > 0 else Absence.NOT_APPLICABLE
        return {"compute_timeout_ms": limit, "compute_timeout_source": "set"}
    release = str(tree.text("/proc/sys/kernel/osrelease")).partition(".")[0]
    if isinstance(text, Absence) or not release.isdigit():
        return {"compute_timeout_ms": text if isinstance(text, Absence) else Absence.NO_DATA}
    limit = NEW_TIMEOUT_MS if int(release) >= 7 else OLD_TIMEOUT_MS
    return {"compute_timeout_ms": limit, "compute_timeout_source": "default"}


def reading(tree: Tree, gpu: PciGpu) -> dict[str, object]:
    """Return the raw readings of an awake GPU."""
    folder = hwmon.folder_of(tree, gpu.path, ("amdgpu",))
    total, used = (_bytes(tree, gpu, f"mem_info_vram_{what}") for what in ("total", "used"))
    both = isinstance(total, int) and isinstance(used, int)
    values: dict[str, object] = {
        "busy_pct": _bytes(tree, gpu, "gpu_busy_percent"),
        "mem_busy_pct": _bytes(tree, gpu, "mem_busy_percent"),
        "vram_used_bytes": used,
        "vram_free_bytes": int(total) - int(used) if both else used,
        "shared_used_bytes": _bytes(tree, gpu, "mem_info_gtt_used"),
        # The hottest spot is what the firmware slows down by.
        "temp_c": hwmon.temperature(tree, folder, "junction", "edge"),
        "temp_memory_c": hwmon.temperature(tree, folder, "mem"),
        "power_w": hwmon.sensor(tree, folder, "power1_average", "power1_input", factor=hwmon.MICRO),
        "power_limit_w": hwmon.sensor(tree, folder, "power1_cap", factor=hwmon.MICRO),
        "clock_mhz": hwmon.sensor(tree, folder, "freq1_input", factor=hwmon.MICRO),
        "clock_memory_mhz": hwmon.sensor(tree, folder, "freq2_input", factor=hwmon.MICRO),
    }
    if Absence.NO_PERMISSION in values.values():
        # Newer kernels answer EPERM while the card sleeps: it fell asleep between the reads.
        return {
            name: Absence.ASLEEP if value is Absence.NO_PERMISSION else value
            for name, value in values.items()
        }
    return values


def slow_reading(tree: Tree, gpu: PciGpu) -> dict[str, object]:
    """Return what changes slowly: fan and link."""
    folder = hwmon.folder_of(tree, gpu.path, ("amdgpu",))
    generation, width = _link(
        tree, gpu, "current", integrated=kind(tree, gpu) is GpuKind.INTEGRATED
    )
    return {
        "fan_rpm": hwmon.sensor(tree, folder, "fan1_input"),
        "fan_pct": scaled(hwmon.sensor(tree, folder, "pwm1"), 100 / 255),
        "pcie_gen": generation,
        "pcie_width": width,
    }


def _link(tree: Tree, gpu: PciGpu, which: str, *, integrated: bool) -> tuple[object, object]:
    # Inside a processor the link is fictional (16 GT/s x16 is shown).
    if integrated:
        return Absence.NOT_APPLICABLE, Absence.NOT_APPLICABLE
    return link(tree, gpu, which)


def _bytes(tree: Tree, gpu: PciGpu, file: str) -> int | Absence:
    return whole_number(tree.text(f"{gpu.path}/{file}"))
