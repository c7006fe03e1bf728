"""What the ``i915`` and ``xe`` drivers say in sysfs."""

from dataclasses import dataclass

from app.domain.machine import GpuKind
from probes import hwmon
from probes.pci import PciGpu, bar_bytes, link
from probes.reading import Absence, scaled, whole_number
from probes.tree import Tree

INTEGRATED_SLOT = "0000:00:02."
"""Where every GPU inside an Intel processor sits; further functions are its virtual parts."""

VRAM_BAR = 2
"""The memory window onto an Arc card's own memory."""
SMALL_BAR_BYTES = 256 << 20

THROTTLE_FILES = {
    "pl1": "sw_power_cap",
    "pl2": "sw_power_cap",
    "pl4": "sw_power_cap",
    "thermal": "hw_thermal",
    "prochot": "hw_thermal",
    "ratl": "sw_thermal",
    "vr_thermalert": "hw_thermal",
    "vr_tdc": "board_limit",
}
"""Suffix of the driver's reason file → our name."""


@dataclass
class Counters:
    """The last reading of the counters that rates are made of."""

    t_ns: int | None = None
    energy_uj: int | None = None
    idle_ms: int | None = None


def kind(gpu: PciGpu) -> GpuKind:
    """Return whether the GPU is a card or part of the processor."""
    inside = gpu.pci_id.startswith(INTEGRATED_SLOT)
    return GpuKind.INTEGRATED if inside else GpuKind.DISCRETE


def identity(tree: Tree, gpu: PciGpu, kind_: GpuKind) -> dict[str, object]:
    """Return the constant facts of an awake GPU."""
    folder = _hwmon(tree, gpu)
    integrated = kind_ is GpuKind.INTEGRATED
    generation, width = _link(tree, gpu, "max")
    bar = Absence.NOT_APPLICABLE if integrated else bar_bytes(tree, gpu, VRAM_BAR)
    vram = tree.text(f"{gpu.path}/tile0/physical_vram_size_bytes")
    return {
        "name": Absence.NO_DATA,
        "vram_total_bytes": Absence.NOT_APPLICABLE if integrated else whole_number(vram, 0),
        "unified_memory": integrated,
        "pcie_gen_max": generation,
        "pcie_width_max": width,
        # 0 stands for "unknown".
        "power_limit_default_w": hwmon.sensor(
            tree, folder, "power1_rated_max", "power2_rated_max", factor=hwmon.MICRO
        ),
        # The kernel has no lower bound, and 0 would switch the limit off.
        "power_limit_settable": not isinstance(_limit(tree, folder), Absence),
        "temp_slowdown_c": hwmon.sensor(
            tree, folder, "temp2_crit", "temp1_crit", factor=hwmon.MILLI
        ),
        "bar_bytes": bar,
        "resizable_bar": bar if isinstance(bar, Absence) else bar > SMALL_BAR_BYTES,
        **compute_timeout(tree, gpu),
    }


def reading(tree: Tree, gpu: PciGpu, last: Counters) -> dict[str, object]:
    """Return the raw readings of an awake GPU; rates need ``last``, which is brought up to date."""
    folder = _hwmon(tree, gpu)
    now = Counters(t_ns=tree.time_ns(), energy_uj=_energy(tree, folder), idle_ms=_idle(tree, gpu))
    values: dict[str, object] = {
        "busy_pct": _busy(last, now),
        "power_w": _power(last, now),
        "energy_j": Absence.NO_DATA
        if now.energy_uj is None
        else scaled(now.energy_uj, hwmon.MICRO),
        "power_limit_w": _limit(tree, folder),
        "temp_c": hwmon.sensor(tree, folder, "temp2_input", "temp1_input", factor=hwmon.MILLI),
        "temp_memory_c": hwmon.sensor(tree, folder, "temp3_input", factor=hwmon.MILLI),
        "clock_mhz": _clock(tree, gpu),
        "throttle": _throttle(tree, gpu),
    }
    last.t_ns, last.energy_uj, last.idle_ms = now.t_ns, now.energy_uj, now.idle_ms
    return values


def slow_reading(tree: Tree, gpu: PciGpu) -> dict[str, object]:
    """Return what changes slowly: fan (``xe`` since Linux 6.16) and link."""
    generation, width = _link(tree, gpu, "current")
    fan = hwmon.sensor(tree, _hwmon(tree, gpu), "fan1_input")
    return {"fan_rpm": fan, "pcie_gen": generation, "pcie_width": width}


def _hwmon(tree: Tree, gpu: PciGpu) -> str | None:
    return hwmon.folder_of(tree, gpu.path, ("xe", "i915"))


def _link(tree: Tree, gpu: PciGpu, which: str) -> tuple[object, object]:
    if kind(gpu) is GpuKind.INTEGRATED:
        return Absence.NOT_APPLICABLE, Absence.NOT_APPLICABLE
    return link(tree, gpu, which)


def compute_timeout(tree: Tree, gpu: PciGpu) -> dict[str, object]:
    """Return after which time the driver resets a compute job.

    ``xe`` ends a job that runs longer than ``job_timeout_ms``. ``i915`` ends one that does not
    let a heartbeat through within ``preempt_timeout_ms``; without heartbeats it ends none.
    """
    for engine in ("ccs", "rcs"):
        found = whole_number(tree.text(f"{gpu.path}/tile0/gt0/engines/{engine}/job_timeout_ms"))
        if isinstance(found, int):
            return {"compute_timeout_ms": found, "compute_timeout_source": "driver"}
    for engine in ("ccs0", "rcs0"):
        folder = f"{gpu.path}/drm/{gpu.card}/engine/{engine}"
        found = whole_number(tree.text(f"{folder}/preempt_timeout_ms"))
        beat = whole_number(tree.text(f"{folder}/heartbeat_interval_ms"))
        if isinstance(found, int):
            never = found == 0 or beat == 0
            limit = Absence.NOT_APPLICABLE if never else found
            return {"compute_timeout_ms": limit, "compute_timeout_source": "driver"}
    return {}


def _limit(tree: Tree, folder: str | None) -> object:
    files = ("power1_max", "power2_max", "power1_cap", "power2_cap")
    return hwmon.sensor(tree, folder, *files, factor=hwmon.MICRO)


def _energy(tree: Tree, folder: str | None) -> int | None:
    # The card's counter reads 0 on some boards while the package's counts.
    for file in ("energy1_input", "energy2_input"):
        value = hwmon.sensor(tree, folder, file)
        if isinstance(value, int | float) and value > 0:
            return int(value)
    return None


def _idle(tree: Tree, gpu: PciGpu) -> int | None:
    for path in (
        f"{gpu.path}/drm/{gpu.card}/gt/gt0/rc6_residency_ms",
        f"{gpu.path}/tile0/gt0/gtidle/idle_residency_ms",
    ):
        value = whole_number(tree.text(path))
        if not isinstance(value, Absence):
            return value
    return None


def _power(last: Counters, now: Counters) -> object:
    seconds = _elapsed_s(last, now)
    if seconds is None or last.energy_uj is None or now.energy_uj is None:
        return Absence.NO_DATA
    # A counter that stands still or steps back (wrap, resume) says nothing.
    spent = now.energy_uj - last.energy_uj
    return scaled(spent / seconds, hwmon.MICRO) if spent > 0 else Absence.NO_DATA


def _busy(last: Counters, now: Counters) -> object:
    seconds = _elapsed_s(last, now)
    if seconds is None or last.idle_ms is None or now.idle_ms is None:
        return Absence.NO_DATA
    idle_s = (now.idle_ms - last.idle_ms) * hwmon.MILLI
    # Residency is counted in ms and read a moment apart from the clock: rounding at the ends.
    return min(100.0, max(0.0, 100 * (1 - idle_s / seconds))) if idle_s >= 0 else Absence.NO_DATA


def _elapsed_s(last: Counters, now: Counters) -> float | None:
    if last.t_ns is None or now.t_ns is None or now.t_ns <= last.t_ns:
        return None
    return (now.t_ns - last.t_ns) / 1e9


def _clock(tree: Tree, gpu: PciGpu) -> object:
    value: object = Absence.NOT_SUPPORTED
    for path in (
        f"{gpu.path}/drm/{gpu.card}/gt_act_freq_mhz",
        f"{gpu.path}/tile0/gt0/freq0/act_freq",
    ):
        value = whole_number(tree.text(path))
        if not isinstance(value, Absence):
            break
    return value


def _throttle(tree: Tree, gpu: PciGpu) -> object:
    known, found = False, []
    for file, name in THROTTLE_FILES.items():
        for path in (
            f"{gpu.path}/drm/{gpu.card}/gt/gt0/throttle_reason_{file}",
            f"{gpu.path}/tile0/gt0/freq0/throttle/reason_{file}",
        ):
            value = tree.text(path)
            known |= not isinstance(value, Absence)
            if value == "1" and name not in found:
                found.append(name)
    return tuple(found) if known else Absence.NOT_SUPPORTED
