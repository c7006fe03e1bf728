"""CPU, RAM and power source of this machine, as far as this process may use them."""

import time
from collections.abc import Callable
from typing import Any

from app.domain.machine import HostInfo, HostSample, PowerSource
from probes import cgroup, chassis, cpu, modes, ram
from probes.reading import HOST_RANGES, Absence, host_number, whole_number
from probes.system import System, SystemFacts
from probes.tree import Tree
from probes.windows import hardware, settings
from probes.windows.facts import Windows
from probes.windows.recording import RecordedWindows

MEMINFO_BYTES = 4096
POWER_NS = 5_000_000_000
CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
OPTIONAL = {
    *("cores_performance", "cores_efficiency", "battery_pct", "virtualization", "gpu_mode"),
    "windows",
}
"""Fields that are absent because they do not apply, not because they could not be read."""


class HostProbe:
    """The machine around the GPUs."""

    def __init__(
        self,
        tree: Tree,
        system: System,
        windows: Windows | None = None,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """Read from ``tree`` (Linux), ``windows`` and ``system`` (everywhere)."""
        self._tree, self._system, self._clock_ns = tree, system, clock_ns
        self._windows = windows or RecordedWindows(None)
        self._power = PowerSource.UNKNOWN
        self._mode: str | None = None
        self._power_due_ns = 0
        self._sensor: str | Absence | None = Absence.NO_DATA

    def identify(self) -> HostInfo:
        """Return what the host is, with the availability of now."""
        tree, facts = self._tree, self._system.facts()
        cpus = facts.allowed_cpus
        cores = cpu.physical_cores(tree, cpus) or facts.cores_physical
        quota = cgroup.cpu_quota(tree)
        limit = cgroup.memory_limit(tree, facts.ram_bytes)
        source = chassis.power_source(tree, facts)
        values: dict[str, object] = {
            "os_version": facts.os_version,
            "cpu_name": cpu.cpu_name(tree) or facts.cpu_name,
            "cores_physical": _capped(cores, quota),
            "cores_logical": _capped(len(cpus) or None, quota),
            "ram_bytes": facts.ram_bytes if limit is None else limit,
            "ram_available_bytes": available(tree, facts, limit),
            "swap_bytes": facts.swap_bytes,
            "battery_pct": _percent(chassis.battery_pct(tree), facts.battery_pct),
            "is_laptop": chassis.is_laptop(tree, facts, self._windows.firmware()),
            "virtualization": chassis.virtualization(tree),
            "page_cache_bytes": page_cache(tree),
            "gpu_mode": modes.gpu_mode(tree),
        }
        values |= self._hardware(facts, on_battery=source is PowerSource.BATTERY)
        for name in ("cores_performance", "cores_efficiency"):
            values[name] = _capped(values[name], quota)
        for name in HOST_RANGES:
            whole = values["ram_bytes"] if name == "ram_available_bytes" else None
            values[name] = host_number(name, values[name], whole)
        untrue = {name: v.value for name, v in values.items() if isinstance(v, Absence)}
        values |= dict.fromkeys(untrue)
        missing = {
            name: (Absence.NOT_APPLICABLE if name in OPTIONAL else Absence.NO_DATA).value
            for name, value in values.items()
            if value is None
        } | untrue
        known = {name: value for name, value in values.items() if value is not None}
        return HostInfo(os=facts.os, power_source=source, missing=missing, **known)  # type: ignore[arg-type]

    def _hardware(self, facts: SystemFacts, *, on_battery: bool) -> dict[str, Any]:
        """Return processor, memory modules and modes, by the system's own way."""
        if facts.os == "windows":
            return hardware.windows_hardware(
                self._windows, facts.allowed_cpus, on_battery=on_battery
            )
        tree, cpus = self._tree, facts.allowed_cpus
        fast, slow = cpu.fast_and_slow(tree, cpus)
        return {
            "cores_performance": fast,
            "cores_efficiency": slow,
            "threads_per_core": cpu.threads_per_core(tree),
            "numa_nodes": cpu.numa_nodes(tree),
            "cpu_features": cpu.features(tree),
            "l3_bytes": cpu.l3_bytes(tree, cpus),
            "power_mode": modes.power_mode(tree),
            "windows": None,
            **ram.linux_modules(tree),
        }

    def sample(self) -> HostSample:
        """Return one reading."""
        now, tree, load = self._clock_ns(), self._tree, self._system.load()
        if now >= self._power_due_ns:
            # Firmware answers battery questions slowly, so not every second.
            self._power_due_ns = now + POWER_NS
            facts = self._system.facts()
            self._power = chassis.power_source(tree, facts)
            self._mode = self._power_mode(facts, on_battery=self._power is PowerSource.BATTERY)
        limit = cgroup.memory_limit(tree, None)
        return HostSample(
            t_ns=now,
            cpu_busy_pct=_percent(None, load.cpu_busy_pct),
            ram_available_bytes=_true("ram_available_bytes", available(tree, load, limit)),
            swap_used_bytes=_true("swap_bytes", load.swap_used_bytes),
            cpu_temp_c=self._cpu_temp(),
            power_source=self._power,
            power_mode=self._mode,
        )

    def set_trial(self, *, active: bool) -> None:  # noqa: ARG002 - the same at both ends
        """Read the power source anew at both ends of a trial."""
        self._power_due_ns = 0

    def close(self) -> None:
        """Nothing is held open."""

    def _power_mode(self, facts: SystemFacts, *, on_battery: bool) -> str | None:
        if facts.os != "windows":
            return modes.power_mode(self._tree)
        mode = settings.power_mode(self._windows, on_battery=on_battery)
        return None if isinstance(mode, Absence) else mode

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


def page_cache(tree: Tree) -> int | None:
    """Return the RAM that holds files, which the kernel gives back on demand (Linux)."""
    for line in str(tree.text("/proc/meminfo", MEMINFO_BYTES)).splitlines():
        name, _, value = line.partition(":")
        if name == "Cached":
            kib = whole_number(value.removesuffix("kB"))
            return kib * 1024 if isinstance(kib, int) else None
    return None


def available(tree: Tree, facts: SystemFacts, limit: int | None) -> int | None:
    """Return the memory available to this process: the machine's, or the rest of its group's."""
    free = facts.ram_available_bytes
    used = cgroup.memory_used(tree) if limit is not None else None
    if limit is None or used is None or free is None:
        return free
    return max(0, min(free, limit - used))


def _capped(count: Any, quota: float | None) -> Any:
    return count if count is None or quota is None else max(1, min(count, int(quota)))


def _percent(first: float | None, second: float | None) -> float | None:
    for value in (first, second):
        if value is not None and 0 <= value <= 100:
            return float(value)
    return None


def _true(name: str, value: int | None) -> int | None:
    found = host_number(name, value)
    return None if isinstance(found, Absence) else found
