"""The Windows this program runs on; on other systems everything is absent."""

from app.domain.machine import DriverReset
from probes.reading import Absence
from probes.windows import d3dkmt, devices, dxgi, events, pdh, processor, registry
from probes.windows.facts import (
    AdapterFacts,
    CacheFacts,
    CoreFacts,
    Counters,
    DeviceFacts,
    PerformanceFacts,
    RegistryValue,
)


class LiveWindows:
    """Asks the running system."""

    def __init__(self) -> None:
        """Touch nothing yet."""
        self._query = pdh.Query()

    def adapters(self) -> tuple[AdapterFacts, ...] | Absence:
        """Return the graphics adapters in DXGI order."""
        found = dxgi.adapters()
        if isinstance(found, Absence):
            return found
        return tuple(d3dkmt.completed(a) if a.luid else a for a in found)

    def performance(self, luid: str) -> PerformanceFacts | Absence:
        """Return an adapter's sensors; ask awake ones only."""
        return d3dkmt.performance(luid)

    def devices(self) -> tuple[DeviceFacts, ...] | Absence:
        """Return the display devices."""
        return devices.devices()

    def value(self, key: str, name: str) -> RegistryValue | Absence:
        """Return a registry value."""
        return registry.value(key, name)

    def value_names(self, key: str) -> tuple[str, ...]:
        """Return the names of a key's values."""
        return registry.value_names(key)

    def counters(self) -> Counters | Absence:
        """Return the GPU performance counters of now."""
        return self._query.read()

    def resets(self) -> tuple[DriverReset, ...] | Absence:
        """Return the driver resets in the event log, newest first."""
        return events.resets()

    def cores(self) -> tuple[CoreFacts, ...] | Absence:
        """Return the physical cores."""
        return processor.cores()

    def caches(self) -> tuple[CacheFacts, ...] | Absence:
        """Return the caches that hold data."""
        return processor.caches()

    def n_nodes(self) -> int | Absence:
        """Return the number of memory nodes."""
        return processor.n_nodes()

    def features(self) -> tuple[str, ...] | Absence:
        """Return the processor's instruction sets that Windows names."""
        return processor.features()

    def firmware(self) -> bytes | Absence:
        """Return the SMBIOS structure table."""
        return processor.firmware()

    def close(self) -> None:
        """Release the performance counters."""
        self._query.close()
