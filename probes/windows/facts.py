"""What the Windows door hands over, as plain records: a recording holds the same.

Everything that decides something works on these, so it runs and is tested on any system; the
modules behind the door (``dxgi``, ``pdh``, ``devices``…) only fetch.
"""

from typing import Protocol

from app.domain.machine import DriverReset
from app.domain.record import Record
from probes.reading import Absence

DWORD = 4
"""``REG_DWORD``."""


class RegistryValue(Record, frozen=True, kw_only=True):
    """One registry value.

    Attributes:
        kind: ``REG_*`` number of its type.
        number: Its value when the type is a number.
        text: Its value otherwise, as text.
    """

    kind: int
    number: int | None = None
    text: str | None = None


class AdapterFacts(Record, frozen=True, kw_only=True):
    """A graphics adapter as DXGI and the kernel's graphics interface describe it.

    Attributes:
        description: Marketing name.
        vendor_id: PCI vendor.
        device_id: PCI device.
        luid: ``high:low``, eight hex digits each, lower case.
        dedicated_bytes: Dedicated video memory.
        shared_bytes: System memory it may use at most.
        flags: ``DXGI_ADAPTER_FLAG``: 1 remote, 2 software.
        n_outputs: Displays attached; ``None`` = not asked.
        budget_bytes: Dedicated memory Windows lets one program use now.
        address: Bus, device, function; ``None`` where the kernel did not say.
        hybrid: ``discrete`` or ``integrated`` on machines with both.
        hags_enabled: Whether hardware scheduling is in effect.
    """

    description: str
    vendor_id: int
    device_id: int
    luid: str
    dedicated_bytes: int = 0
    shared_bytes: int = 0
    flags: int = 0
    n_outputs: int | None = None
    budget_bytes: int | None = None
    address: tuple[int, int, int] | None = None
    hybrid: str | None = None
    hags_enabled: bool | None = None


class PerformanceFacts(Record, frozen=True, kw_only=True):
    """What the kernel's graphics interface measures of an adapter now; 0 = no such sensor.

    Attributes:
        temperature_dc: Temperature, tenths of a degree.
        memory_hz: Memory clock.
    """

    temperature_dc: int = 0
    memory_hz: int = 0


class DeviceFacts(Record, frozen=True, kw_only=True):
    r"""A display device of the plug-and-play manager.

    Attributes:
        instance_id: ``PCI\VEN_…``.
        driver_version: Version of its driver.
        bus: PCI bus number.
        address: Device number × 65536 + function.
        link_speed: PCIe generation now (as of the last enumeration).
        link_width: Lanes now.
        link_speed_max: Highest generation.
        link_width_max: Most lanes.
        problem: Code of a device that does not work, 0 when it does.
    """

    instance_id: str
    driver_version: str | None = None
    bus: int | None = None
    address: int | None = None
    link_speed: int | None = None
    link_width: int | None = None
    link_speed_max: int | None = None
    link_width_max: int | None = None
    problem: int | None = None


class CoreFacts(Record, frozen=True, kw_only=True):
    """A physical core: its efficiency class (higher = faster) and logical processors."""

    efficiency: int
    cpus: tuple[int, ...]


class CacheFacts(Record, frozen=True, kw_only=True):
    """A cache that holds data: its level (3 = third), bytes and logical processors."""

    level: int
    n_bytes: int
    cpus: tuple[int, ...]


Counters = dict[str, dict[str, float]]
"""Counter → instance → value; instances of the same name are added up."""


class Windows(Protocol):
    """What the probes need of Windows. Never raises, never writes."""

    def adapters(self) -> tuple[AdapterFacts, ...] | Absence:
        """Return the graphics adapters in DXGI order."""
        ...

    def performance(self, luid: str) -> PerformanceFacts | Absence:
        """Return an adapter's sensors; ask awake ones only."""
        ...

    def devices(self) -> tuple[DeviceFacts, ...] | Absence:
        """Return the display devices."""
        ...

    def value(self, key: str, name: str) -> RegistryValue | Absence:
        """Return a registry value; ``key`` starts with ``HKLM`` or ``HKCU``."""
        ...

    def value_names(self, key: str) -> tuple[str, ...]:
        """Return the names of a key's values; none when there is no such key."""
        ...

    def counters(self) -> Counters | Absence:
        """Return the GPU performance counters of now."""
        ...

    def resets(self) -> tuple[DriverReset, ...] | Absence:
        """Return the driver resets in the event log, newest first."""
        ...

    def cores(self) -> tuple[CoreFacts, ...] | Absence:
        """Return the physical cores."""
        ...

    def caches(self) -> tuple[CacheFacts, ...] | Absence:
        """Return the caches that hold data."""
        ...

    def n_nodes(self) -> int | Absence:
        """Return the number of memory nodes."""
        ...

    def features(self) -> tuple[str, ...] | Absence:
        """Return the processor's instruction sets that Windows names."""
        ...

    def firmware(self) -> bytes | Absence:
        """Return the SMBIOS structure table."""
        ...

    def close(self) -> None:
        """Release the performance counters."""
        ...
