"""What this machine is and does now. Readings that cannot be had are ``None``."""

from enum import StrEnum
from typing import Protocol

from app.domain.errors import ErrorInfo
from app.domain.record import Record


class GpuKind(StrEnum):
    """How a device relates to the machine."""

    DISCRETE = "discrete"
    INTEGRATED = "integrated"
    SOFTWARE = "software"
    REMOTE = "remote"
    UNKNOWN = "unknown"


class PowerState(StrEnum):
    """Whether the device is awake; reading most values would wake a sleeping one."""

    AWAKE = "awake"
    ASLEEP = "asleep"
    UNKNOWN = "unknown"


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
    ram_speed_mt_s: int | None = None
    ram_modules: int | None = None
    ram_slots: int | None = None
    page_cache_bytes: int | None = None
    power_mode: str | None = None
    gpu_mode: str | None = None
    windows: WindowsSettings | None = None
    missing: dict[str, str] = {}


class GpuInfo(Record, frozen=True, kw_only=True):
    """One GPU as one probe identifies it; constant while the driver stays loaded.

    Attributes:
        probe: Name of the probe that says so (``nvml``, ``drm``, …).
        uuid: GPU or MIG UUID.
        pci_id: ``domain:bus:device.function``, lower case, four-digit domain.
        vulkan_uuid: Vulkan device UUID.
        name: Marketing name.
        vendor: ``nvidia``, ``amd``, ``intel`` or other.
        kind: Discrete or integrated.
        driver: Kernel or vendor driver and its version.
        cuda_version: CUDA level of the driver, e.g. ``13.0``.
        vram_total_bytes: Dedicated memory.
        shared_total_bytes: System memory the device may use (GTT, shared).
        unified_memory: Whether device memory is system memory.
        drives_display: Whether a display hangs on it.
        boot_vga: Whether firmware showed the boot screen on it.
        pcie_gen_max: Highest link generation of card and slot.
        pcie_width_max: Highest link width.
        power_limit_min_w: Lowest settable limit.
        power_limit_max_w: Highest settable limit.
        power_limit_default_w: Vendor's default.
        power_limit_settable: Whether a limit can be set at all (rights aside).
        temp_slowdown_c: Temperature at which the firmware slows the device down.
        node: Kernel device node, e.g. ``card1``.
        luid: Windows' name for the adapter, ``high:low`` in hex; another one at each boot.
        driver_model: Windows driver model: ``wddm``, ``tcc`` or ``mcdm``.
        compute_capability: CUDA compute capability, e.g. ``8.9``.
        vram_budget_bytes: What the operating system lets one program use (Windows).
        bar_bytes: Part of the dedicated memory that the processor can address.
        resizable_bar: Whether that is all of it.
        external: Whether it hangs on a cable (eGPU).
        may_sleep: Whether the kernel suspends it when nobody uses it.
        d3cold_allowed: Whether it may lose power entirely then.
        mig: ``parent`` (split, usable only through its parts) or ``instance`` (one part).
        pcie_gen_device_max: Highest link generation of the card itself.
        numa_node: Memory node it hangs on.
        compute_timeout_ms: Time after which the kernel driver resets a compute job (Linux).
        n_cores: Shader cores.
        memory_bus_bits: Width of the memory interface.
        ecc: Whether memory is error-corrected (it costs some of it).
        compute_timeout_source: ``default``, ``set`` (module parameter) or ``driver`` (its file).
        missing: Reason per absent field, by field name.
    """

    probe: str
    uuid: str | None = None
    pci_id: str | None = None
    vulkan_uuid: str | None = None
    name: str | None = None
    vendor: str | None = None
    kind: GpuKind = GpuKind.UNKNOWN
    driver: str | None = None
    cuda_version: str | None = None
    vram_total_bytes: int | None = None
    shared_total_bytes: int | None = None
    unified_memory: bool | None = None
    drives_display: bool | None = None
    boot_vga: bool | None = None
    pcie_gen_max: int | None = None
    pcie_width_max: int | None = None
    power_limit_min_w: float | None = None
    power_limit_max_w: float | None = None
    power_limit_default_w: float | None = None
    power_limit_settable: bool | None = None
    temp_slowdown_c: float | None = None
    node: str | None = None
    luid: str | None = None
    driver_model: str | None = None
    compute_capability: str | None = None
    vram_budget_bytes: int | None = None
    bar_bytes: int | None = None
    resizable_bar: bool | None = None
    external: bool | None = None
    may_sleep: bool | None = None
    d3cold_allowed: bool | None = None
    mig: str | None = None
    pcie_gen_device_max: int | None = None
    numa_node: int | None = None
    compute_timeout_ms: int | None = None
    compute_timeout_source: str | None = None
    n_cores: int | None = None
    memory_bus_bits: int | None = None
    ecc: bool | None = None
    missing: dict[str, str] = {}

    @property
    def key(self) -> str:
        """Identity: UUID, PCI address, Vulkan UUID, Windows' LUID, else the probe's own word."""
        return (
            self.uuid
            or self.pci_id
            or self.vulkan_uuid
            or (f"luid:{self.luid}" if self.luid else None)
            or f"{self.probe}:{self.node or self.name or 'unnamed'}"
        )


OWN_ENGINE = "RigTune engine"
"""Name of a program on a GPU that RigTune itself started."""


class GpuProcess(Record, frozen=True, kw_only=True):
    """A program that holds memory on a GPU: dedicated memory, and (Windows) system memory."""

    pid: int
    name: str | None = None
    vram_bytes: int | None = None
    shared_bytes: int | None = None


class GpuSample(Record, frozen=True, kw_only=True):
    """One moment of one GPU.

    Attributes:
        key: ``GpuInfo.key``.
        t_ns: ``time.perf_counter_ns()`` at reading.
        power_state: Awake or asleep; when asleep nothing else was read.
        busy_pct: Share of time with work present (not compute used), 0–100.
        mem_busy_pct: Memory controller busy time, 0–100.
        vram_used_bytes: Dedicated memory in use.
        vram_free_bytes: Dedicated memory free.
        shared_used_bytes: System memory in use by the device.
        temp_c: Core temperature.
        temp_memory_c: Memory temperature.
        temp_margin_c: Degrees left until the firmware slows the device down.
        power_w: Draw.
        power_limit_w: Enforced limit.
        clock_mhz: Core clock.
        clock_memory_mhz: Memory clock.
        energy_j: Energy since the driver was loaded; the difference over time is the fairest draw.
        fan_pct: Fan speed.
        adapter: What feeds the card: ``ac``, ``battery`` or ``undersized`` (a weak adapter).
        throttle: Reasons that slow the device now; ``None`` = unknown, empty = none.
        pcie_gen: Link generation now.
        pcie_width: Link width now.
        pcie_rx_bytes_s: Bytes per second into the device.
        pcie_tx_bytes_s: Bytes per second out of the device.
        processes: Who holds memory; ``None`` = unknown.
        missing: Reason per absent field.
    """

    key: str
    t_ns: int
    power_state: PowerState = PowerState.UNKNOWN
    busy_pct: float | None = None
    mem_busy_pct: float | None = None
    vram_used_bytes: int | None = None
    vram_free_bytes: int | None = None
    shared_used_bytes: int | None = None
    temp_c: float | None = None
    temp_memory_c: float | None = None
    temp_margin_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    clock_mhz: float | None = None
    clock_memory_mhz: float | None = None
    energy_j: float | None = None
    fan_pct: float | None = None
    adapter: str | None = None
    throttle: tuple[str, ...] | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    pcie_rx_bytes_s: float | None = None
    pcie_tx_bytes_s: float | None = None
    processes: tuple[GpuProcess, ...] | None = None
    missing: dict[str, str] = {}

    @property
    def n_throttle(self) -> int | None:
        """How many reasons slow the device now; ``None`` = unknown."""
        return None if self.throttle is None else len(self.throttle)


class HostSample(Record, frozen=True, kw_only=True):
    """One moment of CPU and RAM; ``power_mode`` as in ``HostInfo``."""

    t_ns: int
    cpu_busy_pct: float | None = None
    ram_available_bytes: int | None = None
    swap_used_bytes: int | None = None
    cpu_temp_c: float | None = None
    power_source: PowerSource = PowerSource.UNKNOWN
    power_mode: str | None = None


class EngineDevice(Record, frozen=True, kw_only=True):
    """A device as the engine lists it.

    Attributes:
        name: Engine name, e.g. ``CUDA0``, ``Vulkan1``, ``RPC0``.
        backend: Backend that owns it, e.g. ``CUDA``, ``RPC``, ``CPU``.
        description: What the driver calls it.
        kind: Discrete, integrated, software or remote.
        total_bytes: Memory; 0 is reported as ``None``.
        free_bytes: Free memory when listed, never above ``total_bytes``.
        pci_id: ``domain:bus:device.function`` where the backend knows it.
        endpoint: Network address of a remote device.
    """

    name: str
    backend: str
    description: str
    kind: GpuKind
    total_bytes: int | None = None
    free_bytes: int | None = None
    pci_id: str | None = None
    endpoint: str | None = None


class EngineInfo(Record, frozen=True, kw_only=True):
    """The llama.cpp build in use.

    Attributes:
        version: Version of the binding.
        llama_version: ``llama_version()``.
        commit: llama.cpp commit of its sources, where known.
        backends: Loaded backends.
        devices: Every device but the CPU.
        supports_offload: Whether any layer can leave the CPU.
        directory: Folder of the user's own libraries; ``None`` = the build RigTune came with.
    """

    version: str
    llama_version: str
    commit: str | None = None
    backends: tuple[str, ...]
    devices: tuple[EngineDevice, ...]
    supports_offload: bool
    directory: str | None = None


class Gpu(Record, frozen=True, kw_only=True):
    """One physical GPU: every probe's and every backend's view of it, joined.

    Attributes:
        key: Stable identity (UUID, PCI address, Vulkan UUID or backend and endpoint).
        info: What the probes say, merged; ``None`` where only the engine sees the device.
        engine: The engine's names for it, best backend first.
        unmatched: Why probes and engine could not be joined, if they could not.
    """

    key: str
    info: GpuInfo | None = None
    engine: tuple[EngineDevice, ...] = ()
    unmatched: str | None = None


class Machine(Record, frozen=True, kw_only=True):
    """Host, GPUs and engine together.

    Attributes:
        host: CPU, RAM and system.
        gpus: Every GPU once, however many sources see it.
        engine: The llama.cpp build; ``None`` while it has not been asked.
        engine_problem: Why it does not answer, if it was asked.
        unavailable: Why a vendor's stack is not used, by probe name; normal on most machines.
    """

    host: HostInfo
    gpus: tuple[Gpu, ...] = ()
    engine: EngineInfo | None = None
    engine_problem: ErrorInfo | None = None
    unavailable: dict[str, str] = {}


class GpuProbe(Protocol):
    """Talks to one vendor's stack. Never raises for an absent reading.

    The constructor raises ``ProbeUnavailable`` when the stack is missing (a normal state).
    """

    name: str

    def identify(self) -> tuple[GpuInfo, ...]:
        """Return the GPUs this stack sees, without waking a sleeping one."""
        ...

    def sample(self) -> tuple[GpuSample, ...]:
        """Return one reading per GPU, without waking a sleeping one."""
        ...

    def close(self) -> None:
        """Release the vendor library."""
        ...


class HostProbe(Protocol):
    """Reads CPU, RAM and power source."""

    def identify(self) -> HostInfo:
        """Return what the host is, with the availability of now."""
        ...

    def sample(self) -> HostSample:
        """Return one reading."""
        ...


class ProbeSet(Protocol):
    """The probes a machine offers, and why the others are not there."""

    @property
    def host(self) -> HostProbe:
        """Reads CPU, RAM and power source."""
        ...

    @property
    def gpus(self) -> tuple[GpuProbe, ...]:
        """One probe per vendor stack found, the more precise first."""
        ...

    @property
    def unavailable(self) -> dict[str, str]:
        """Why a stack is not used, by probe name."""
        ...


class ProbeUnavailable(Exception):
    """The vendor stack of a probe is not on this machine (or cannot be used); says why."""
