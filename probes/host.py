"""CPU, RAM and power source of this machine, as far as this process may use them."""

import re
import time
from collections.abc import Callable

from app.domain.machine import HostInfo, HostSample, PowerSource
from probes import cgroup, chassis
from probes.reading import Absence, whole_number
from probes.system import System, SystemFacts
from probes.tree import Tree

CPU_FOLDER = "/sys/devices/system/cpu"
POWER_NS = 5_000_000_000
CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
MAX_CPUS = 4096
CPU_INFO_BYTES = 1024
"""Enough for the name of the first processor; the file repeats itself for each."""


class HostProbe:
    """The machine around the GPUs."""

    def __init__(
        self,
        tree: Tree,
        system: System,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """Read from ``tree`` (Linux) and ``system`` (everywhere)."""
        self._tree, self._system, self._clock_ns = tree, system, clock_ns
        self._power = PowerSource.UNKNOWN
        self._power_due_ns = 0
        self._sensor: str | Absence | None = Absence.NO_DATA

    def identify(self) -> HostInfo:
        """Return what the host is, with the availability of now."""
        tree, facts = self._tree, self._system.facts()
        cpus = facts.allowed_cpus
        cores = physical_cores(tree, cpus) or facts.cores_physical
        quota = cgroup.cpu_quota(tree)
        limit = cgroup.memory_limit(tree, facts.ram_bytes)
        values: dict[str, object] = {
            "os_version": facts.os_version,
            "cpu_name": cpu_name(tree) or facts.cpu_name,
            "cores_physical": _capped(cores, quota),
            "cores_logical": _capped(len(cpus) or None, quota),
            "cores_performance": _capped(performance_cores(tree, cpus), quota),
            "ram_bytes": facts.ram_bytes if limit is None else limit,
            "ram_available_bytes": available(tree, facts, limit),
            "swap_bytes": facts.swap_bytes,
            "battery_pct": _percent(chassis.battery_pct(tree), facts.battery_pct),
            "is_laptop": chassis.is_laptop(tree, facts),
            "virtualization": chassis.virtualization(tree),
        }
        reasons = {"cores_performance", "battery_pct", "virtualization"}
        missing = {
            name: (Absence.NOT_APPLICABLE if name in reasons else Absence.NO_DATA).value
            for name, value in values.items()
            if value is None
        }
        known = {name: value for name, value in values.items() if value is not None}
        source = chassis.power_source(tree, facts)
        return HostInfo(os=facts.os, power_source=source, missing=missing, **known)  # type: ignore[arg-type]

    def sample(self) -> HostSample:
        """Return one reading."""
        now, tree, load = self._clock_ns(), self._tree, self._system.load()
        if now >= self._power_due_ns:
            # Firmware answers battery questions slowly, so not every second.
            self._power_due_ns = now + POWER_NS
            self._power = chassis.power_source(tree, self._system.facts())
        limit = cgroup.memory_limit(tree, None)
        return HostSample(
            t_ns=now,
            cpu_busy_pct=_percent(None, load.cpu_busy_pct),
            ram_available_bytes=available(tree, load, limit),
            swap_used_bytes=load.swap_used_bytes,
            cpu_temp_c=self._cpu_temp(),
            power_source=self._power,
        )

    def set_trial(self, *, active: bool) -> None:  # noqa: ARG002 - the same at both ends
        """Read the power source anew at both ends of a trial."""
        self._power_due_ns = 0

    def close(self) -> None:
        """Nothing is held open."""

    def _cpu_temp(self) -> float | None:
        if isinstance(self._sensor, Absence):
            self._sensor = cpu_sensor(self._tree)
        if self._sensor is None:
            return None
        value = whole_number(self._tree.text(self._sensor))
        celsius = value / 1000 if isinstance(value, int) else 0.0
        return celsius if 1 <= celsius <= 150 else None


def cpu_sensor(tree: Tree) -> str | None:
    """Return the file of the processor's temperature.

    psutil reads every sensor of the machine, a sleeping GPU's included, which would wake it;
    so only the folder of a processor driver is opened.
    """
    for entry in tree.names("/sys/class/hwmon"):
        folder = f"/sys/class/hwmon/{entry}"
        if tree.text(f"{folder}/name") in CPU_SENSORS:
            return f"{folder}/temp1_input"
    return None


def cpu_name(tree: Tree) -> str | None:
    """Return the processor's marketing name (Linux)."""
    text = tree.text("/proc/cpuinfo", CPU_INFO_BYTES)
    match = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def physical_cores(tree: Tree, cpus: tuple[int, ...]) -> int | None:
    """Return how many physical cores the logical processors ``cpus`` belong to (Linux)."""
    cores = set()
    for cpu in cpus[:MAX_CPUS]:
        folder = f"{CPU_FOLDER}/cpu{cpu}/topology"
        core = tree.text(f"{folder}/core_id")
        if isinstance(core, Absence):
            return None
        cores.add((tree.text(f"{folder}/physical_package_id"), core))
    return len(cores) or None


def performance_cores(tree: Tree, cpus: tuple[int, ...]) -> int | None:
    """Return how many usable P-cores a hybrid Intel processor has (Linux ≥ 5.13)."""
    fast = cpu_list(tree.text("/sys/devices/cpu_core/cpus"))
    slow = cpu_list(tree.text("/sys/devices/cpu_atom/cpus"))
    usable = tuple(sorted(fast & set(cpus)))
    return physical_cores(tree, usable) if fast and slow and usable else None


def cpu_list(text: str) -> set[int]:
    """Return the numbers in a kernel list such as ``0-7,16``."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last or first).isdigit():
            cpus.update(range(int(first), min(int(last or first), MAX_CPUS) + 1))
    return cpus


def available(tree: Tree, facts: SystemFacts, limit: int | None) -> int | None:
    """Return the memory available to this process: the machine's, or the rest of its group's."""
    free = facts.ram_available_bytes
    used = cgroup.memory_used(tree) if limit is not None else None
    if limit is None or used is None or free is None:
        return free
    return max(0, min(free, limit - used))


def _capped(count: int | None, quota: float | None) -> int | None:
    return count if count is None or quota is None else max(1, min(count, int(quota)))


def _percent(first: float | None, second: float | None) -> float | None:
    for value in (first, second):
        if value is not None and 0 <= value <= 100:
            return float(value)
    return None
