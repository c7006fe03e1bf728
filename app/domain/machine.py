"""What this machine is: host, GPUs joined, engine, and what reads them; the door to all of it."""

from typing import Protocol

from app.domain.errors import ErrorInfo
from app.domain.gpu import (
    MAX_MEMORY_BYTES,
    OWN_ENGINE,
    STALE,
    GpuInfo,
    GpuKind,
    GpuProcess,
    GpuSample,
    PowerState,
)
from app.domain.host import (
    DriverReset,
    HostInfo,
    HostSample,
    PowerSource,
    TimeoutValue,
    WindowsSettings,
)
from app.domain.record import Record

# Host and GPU records have files of their own; everybody takes them from here.
__all__ = [
    "MAX_MEMORY_BYTES",
    "OWN_ENGINE",
    "STALE",
    "DriverReset",
    "EngineDevice",
    "EngineInfo",
    "Gpu",
    "GpuInfo",
    "GpuKind",
    "GpuProbe",
    "GpuProcess",
    "GpuSample",
    "HostInfo",
    "HostProbe",
    "HostSample",
    "Machine",
    "PowerSource",
    "PowerState",
    "ProbeSet",
    "ProbeUnavailable",
    "TimeoutValue",
    "WindowsSettings",
]


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
        unmatched: Why probes and engine, or two probes, could not be joined, if they could not.
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
