"""What the host is and does now. Readings that cannot be had are ``None``."""

from enum import StrEnum

from app.domain.record import Record


class PowerSource(StrEnum):
    """Where the machine's power comes from."""

    AC = "ac"
    BATTERY = "battery"
    UNKNOWN = "unknown"


class TimeoutValue(Record, frozen=True, kw_only=True):
    """One of the registry values by which Windows decides that a GPU hangs. Only ever read.

    Attributes:
        name: Value name, e.g. ``TdrDelay``.
        found: What the registry holds, as text; ``None`` = absent (the normal case).
        effective: What Windows uses; the default where the value is absent or not a DWORD.
        source: ``default``, ``registry`` or ``wrong_type``.
        unit: ``s`` or empty.
    """

    name: str
    found: str | None = None
    effective: int
    source: str = "default"
    unit: str = ""


class DriverReset(Record, frozen=True, kw_only=True):
    """An entry of the system's log that says a graphics driver was reset or failed.

    Attributes:
        provider: Who wrote it, e.g. ``Display`` or ``nvlddmkm``.
        event_id: Number of the event.
        time_utc: When, as the system wrote it.
    """

    provider: str
    event_id: int
    time_utc: str | None = None


class WindowsSettings(Record, frozen=True, kw_only=True):
    """Windows settings that matter to long GPU work. Only ever read.

    Attributes:
        timeouts: Timeout detection (TDR) values, as found or default.
        tcc_timeout: Whether someone wrote a ``TccTimeout`` value, which Windows does not know.
        gpu_scheduling: Hardware scheduling (HAGS): ``on``, ``off`` or ``default``.
        gpu_preferences: Program path → ``auto``, ``power_saving`` or ``high_performance``.
        resets: Driver resets in the event log, newest first; ``None`` = not readable.
    """

    timeouts: tuple[TimeoutValue, ...] = ()
    tcc_timeout: bool = False
    gpu_scheduling: str | None = None
    gpu_preferences: dict[str, str] = {}
    resets: tuple[DriverReset, ...] | None = None

    def timeout(self, name: str) -> int | None:
        """Return the effective value of a timeout setting."""
        return next((t.effective for t in self.timeouts if t.name == name), None)


class HostInfo(Record, frozen=True, kw_only=True):
    """CPU, RAM and the operating system.

    Attributes:
        os: ``linux`` or ``windows`` (or another ``sys.platform`` family).
        os_version: Kernel or build.
        cpu_name: Marketing name.
        cores_physical: Physical cores this process may use.
        cores_logical: Logical cores this process may use.
        cores_performance: P-cores on hybrid CPUs, ``None`` where all are alike or unknown.
        ram_bytes: Installed (or cgroup-limited) memory.
        ram_available_bytes: Available now.
        swap_bytes: Swap size.
        power_source: AC or battery.
        battery_pct: Charge, 0–100.
        is_laptop: Whether it is a portable machine.
        virtualization: ``wsl2``, ``container``, ``vm`` or ``None``.
        cores_efficiency: E-cores on hybrid CPUs.
        threads_per_core: 2 with simultaneous multithreading, else 1.
        numa_nodes: Memory nodes.
        cpu_features: Instruction sets ggml has kernels for, e.g. ``avx2``.
        l3_bytes: Third-level cache, all parts together.
        ram_type: Kind of memory, e.g. ``DDR5``.
        ram_speed_mt_s: Configured speed of the memory modules, 10⁶ transfers per second.
        ram_modules: Populated memory slots.
        ram_slots: Memory slots.
        page_cache_bytes: Files kept in RAM (given back on demand).
        power_mode: ``saver``, ``balanced``, ``performance`` or the system's own word.
        gpu_mode: What a switching tool set: ``integrated``, ``hybrid``, ``nvidia``…
        windows: Windows only.
        missing: Reason per absent field, by field name.
    """

    os: str
    os_version: str | None = None
    cpu_name: str | None = None
    cores_physical: int | None = None
    cores_logical: int | None = None
    cores_performance: int | None = None
    ram_bytes: int | None = None
    ram_available_bytes: int | None = None
    swap_bytes: int | None = None
    power_source: PowerSource = PowerSource.UNKNOWN
    battery_pct: float | None = None
    is_laptop: bool | None = None
    virtualization: str | None = None
    cores_efficiency: int | None = None
    threads_per_core: int | None = None
    numa_nodes: int | None = None
    cpu_features: tuple[str, ...] | None = None
    l3_bytes: int | None = None
    ram_type: str | None = None
    ram_speed_mt_s: int | None = None
    ram_modules: int | None = None
    ram_slots: int | None = None
    page_cache_bytes: int | None = None
    power_mode: str | None = None
    gpu_mode: str | None = None
    windows: WindowsSettings | None = None
    missing: dict[str, str] = {}


class HostSample(Record, frozen=True, kw_only=True):
    """One moment of CPU and RAM; ``power_mode`` as in ``HostInfo``."""

    t_ns: int
    cpu_busy_pct: float | None = None
    ram_available_bytes: int | None = None
    swap_used_bytes: int | None = None
    cpu_temp_c: float | None = None
    power_source: PowerSource = PowerSource.UNKNOWN
    power_mode: str | None = None
