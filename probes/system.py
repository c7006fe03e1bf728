"""What the operating system says through psutil, as plain numbers that a recording can hold."""

import contextlib
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import psutil

from app.domain.machine import OWN_ENGINE
from app.domain.record import Record

T = TypeVar("T")
MIN_LOAD_NS = 100_000_000
"""Load over a shorter time is noise: the kernel counts in 10 ms ticks."""


class SystemFacts(Record, frozen=True, kw_only=True):
    """Numbers of the operating system; ``None`` where it has none.

    Attributes:
        os: ``linux``, ``windows``, ``darwin``…
        os_version: Kernel release or build.
        cpu_name: Processor as Python's ``platform`` names it.
        allowed_cpus: Logical processors this process may run on.
        cores_physical: Physical cores of the machine.
        ram_bytes: Installed memory.
        ram_available_bytes: Available without swapping.
        swap_bytes: Swap size.
        swap_used_bytes: Swap in use.
        cpu_busy_pct: Busy share of all processors since the last call.
        battery_pct: Charge.
        plugged: Whether power comes from the mains; ``None`` without battery.
    """

    os: str
    os_version: str | None = None
    cpu_name: str | None = None
    allowed_cpus: tuple[int, ...] = ()
    cores_physical: int | None = None
    ram_bytes: int | None = None
    ram_available_bytes: int | None = None
    swap_bytes: int | None = None
    swap_used_bytes: int | None = None
    cpu_busy_pct: float | None = None
    battery_pct: float | None = None
    plugged: bool | None = None


class System(Protocol):
    """Source of the numbers."""

    @property
    def os(self) -> str:
        """Return ``SystemFacts.os`` without reading anything."""
        ...

    def facts(self) -> SystemFacts:
        """Return all of them, as of now."""
        ...

    def load(self) -> SystemFacts:
        """Return only memory and processor load: what is cheap enough for every second."""
        ...

    def process_name(self, pid: int) -> str | None:
        """Return the program name of a process, ``None`` when it is hidden or gone."""
        ...


class LiveSystem:
    """The running operating system."""

    def __init__(self) -> None:
        """Start the measurement of processor load."""
        _reading(_busy_pct)
        self._busy: float | None = None
        self._busy_at_ns = time.perf_counter_ns()

    @property
    def os(self) -> str:
        """Return ``SystemFacts.os`` without reading anything."""
        return {"win32": "windows"}.get(sys.platform, sys.platform)

    def facts(self) -> SystemFacts:
        """Return all numbers, as of now."""
        load = self.load()
        battery = _reading(_battery)
        swap = _reading(psutil.swap_memory)
        memory = _reading(psutil.virtual_memory)
        return SystemFacts(
            os=self.os,
            os_version=(platform.version() if sys.platform == "win32" else platform.release()),
            cpu_name=_cpu_name() or None,
            allowed_cpus=_allowed_cpus(),
            cores_physical=_reading(lambda: psutil.cpu_count(logical=False)),
            ram_bytes=memory.total if memory else None,
            ram_available_bytes=load.ram_available_bytes,
            swap_bytes=swap.total if swap else None,
            swap_used_bytes=load.swap_used_bytes,
            cpu_busy_pct=load.cpu_busy_pct,
            battery_pct=battery.percent if battery else None,
            plugged=battery.power_plugged if battery else None,
        )

    def load(self) -> SystemFacts:
        """Return only memory and processor load."""
        now = time.perf_counter_ns()
        if now - self._busy_at_ns >= MIN_LOAD_NS:
            self._busy, self._busy_at_ns = _reading(_busy_pct), now
        memory = _reading(psutil.virtual_memory)
        swap = _reading(psutil.swap_memory)
        return SystemFacts(
            os=sys.platform,
            ram_available_bytes=memory.available if memory else None,
            swap_used_bytes=swap.used if swap else None,
            cpu_busy_pct=self._busy,
        )

    def process_name(self, pid: int) -> str | None:
        """Return the program name of a process, ``None`` when it is hidden or gone.

        What RigTune started is called by its purpose, not by its interpreter.
        """
        try:
            process = psutil.Process(pid)
            if os.getpid() in {pid, process.ppid()}:
                return OWN_ENGINE
            name = process.name()
        except psutil.Error:
            return None
        # Bytes that are no text would break every document that holds the name.
        return name.encode("utf-8", "replace").decode("utf-8")


def _allowed_cpus() -> tuple[int, ...]:
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 0))


def _cpu_name() -> str:
    name = ""
    if sys.platform == "win32":
        import winreg  # noqa: PLC0415 - exists on Windows only

        path = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
        with (
            contextlib.suppress(OSError),
            winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key,
        ):
            name = str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
    return name or platform.processor()


def _reading(read: Callable[[], T]) -> T | None:
    """Return what ``read`` gives, ``None`` where the system refuses it.

    Containers and chroots have no ``/sys`` or ``/proc``; Windows' performance counters break.
    """
    try:
        return read()
    except (OSError, RuntimeError, psutil.Error):
        return None


def _busy_pct() -> float:
    return psutil.cpu_percent(interval=None)


def _battery() -> Any:
    # psutil leaves the function out where the system has none.
    read = getattr(psutil, "sensors_battery", None)
    return read() if read is not None else None
