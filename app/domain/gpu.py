"""What a GPU is and does now, as one probe sees it. Readings that cannot be had are ``None``."""

from enum import StrEnum

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
        memory_gb_s: What it can move at its highest clock, 10⁹ bytes per second.
        ecc: Whether memory is error-corrected (it costs some of it).
        clock_max_mhz: Highest core clock the card offers; a laptop's firmware may allow less.
        temp_shutdown_c: Temperature at which the card switches itself off.
        n_fans: Fans the driver knows; a laptop's belong to its own controller.
        persistence: Whether the driver stays loaded with nobody using the card (Linux).
        n_nvlinks: Links to other cards that are up.
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
    clock_max_mhz: float | None = None
    temp_shutdown_c: float | None = None
    n_fans: int | None = None
    persistence: bool | None = None
    n_nvlinks: int | None = None
    n_cores: int | None = None
    memory_bus_bits: int | None = None
    memory_gb_s: float | None = None
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


MAX_MEMORY_BYTES = 1 << 43
"""8 TiB: above any device, below the sentinels drivers use for "unknown"."""
STALE = "stale"
"""Reason of a reading that did not come in time; an older one is not shown for it."""
OWN_ENGINE = "RigTune engine"
"""Name of a program on a GPU that RigTune itself started."""


class GpuProcess(Record, frozen=True, kw_only=True):
    """A program that holds memory on a GPU.

    Attributes:
        pid: Process.
        name: Program.
        vram_bytes: Dedicated memory.
        shared_bytes: System memory (Windows).
        busy_pct: Share of the GPU's time it took lately, 0–100.
    """

    pid: int
    name: str | None = None
    vram_bytes: int | None = None
    shared_bytes: int | None = None
    busy_pct: float | None = None


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
        fan_pct: Fan speed, of several the fastest.
        fan_rpm: Turns per minute of the first fan.
        memory_errors: Memory errors since the driver was loaded that could not be corrected.
        adapter: What feeds the card: ``ac``, ``battery`` or ``undersized`` (a weak adapter).
        power_mizer: Driver's power management: ``adaptive``, ``maximum``, ``auto``, ``consistent``.
        limited_pct: Share of the time since the reading before in which each reason held clocks
            back, 0–100; ``throttle`` only says which do at this moment.
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
    fan_rpm: float | None = None
    memory_errors: int | None = None
    adapter: str | None = None
    power_mizer: str | None = None
    limited_pct: dict[str, float] | None = None
    throttle: tuple[str, ...] | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    pcie_rx_bytes_s: float | None = None
    pcie_tx_bytes_s: float | None = None
    processes: tuple[GpuProcess, ...] | None = None
    missing: dict[str, str] = {}

    @classmethod
    def unread(cls, key: str, t_ns: int, reason: str) -> "GpuSample":
        """Return a sample of which nothing is known, for one and the same reason."""
        known = {"key", "t_ns", "power_state", "missing"}
        missing = {name: reason for name in cls.__struct_fields__ if name not in known}
        return cls(key=key, t_ns=t_ns, missing=missing)

    @property
    def n_throttle(self) -> int | None:
        """How many reasons slow the device now; ``None`` = unknown."""
        return None if self.throttle is None else len(self.throttle)

    @property
    def limited_most_pct(self) -> float | None:
        """Share of the time under the most frequent reason, 0–100; ``None`` = unknown."""
        return None if not self.limited_pct else max(self.limited_pct.values())
