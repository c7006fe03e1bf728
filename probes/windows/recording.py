"""A recording of what Windows said, and the door that plays it."""

import re

import msgspec

from app.domain.machine import DriverReset
from app.domain.record import Record
from probes.reading import Absence, reason_of
from probes.smbios import CHASSIS, MEMORY_DEVICE, structures
from probes.windows.facts import (
    AdapterFacts,
    CacheFacts,
    CoreFacts,
    Counters,
    DeviceFacts,
    PerformanceFacts,
    RegistryValue,
    Windows,
)
from probes.windows.settings import GRAPHICS, POWER, PREFERENCES

KEYS = (GRAPHICS, POWER, PREFERENCES)
DRIVE = re.compile(r"^.*[\\/]")
"""Folders of programs name their user."""
SERIAL = re.compile(r"(\\)[^\\]+$")
"""The last part of a device's instance id may be a serial number."""


class WindowsRecording(Record, frozen=True, kw_only=True):
    """Everything the door answers, without what identifies the owner.

    Attributes:
        adapters: DXGI adapters, or the reason of their absence.
        performance: Sensors by LUID.
        devices: Display devices.
        registry: Key → name → value, for the keys that are looked at.
        counters: Performance counters.
        resets: Driver resets in the event log.
        cores: Physical cores.
        caches: Caches that hold data.
        n_nodes: Memory nodes.
        features: Instruction sets.
        firmware: SMBIOS memory structures, hexadecimal, without texts.
    """

    adapters: tuple[AdapterFacts, ...] | str = ()
    performance: dict[str, PerformanceFacts] = {}
    devices: tuple[DeviceFacts, ...] | str = ()
    registry: dict[str, dict[str, RegistryValue]] = {}
    counters: Counters | str = {}
    resets: tuple[DriverReset, ...] | str = ()
    cores: tuple[CoreFacts, ...] | str = ()
    caches: tuple[CacheFacts, ...] | str = Absence.NO_DATA.value
    n_nodes: int | str = Absence.NO_DATA.value
    features: tuple[str, ...] | str = ()
    firmware: str | None = None


def take(windows: Windows) -> WindowsRecording:
    """Return everything that ``windows`` says now."""
    windows.counters()  # rates are made of two readings
    adapters, devices = windows.adapters(), windows.devices()
    seen = () if isinstance(adapters, Absence) else adapters
    firmware = windows.firmware()
    return WindowsRecording(
        adapters=adapters,
        performance={
            a.luid: found
            for a in seen
            if not isinstance(found := windows.performance(a.luid), Absence)
        },
        devices=devices if isinstance(devices, Absence) else tuple(map(anonymous, devices)),
        registry={key: _values(windows, key) for key in KEYS},
        counters=windows.counters(),
        resets=windows.resets(),
        cores=windows.cores(),
        caches=windows.caches(),
        n_nodes=windows.n_nodes(),
        features=windows.features(),
        firmware=None if isinstance(firmware, Absence) else memory_structures(firmware).hex(),
    )


def anonymous(device: DeviceFacts) -> DeviceFacts:
    """Return a device without the part of its name that may be a serial number."""
    name = SERIAL.sub(r"\1X", device.instance_id)
    return msgspec.structs.replace(device, instance_id=name)


def memory_structures(table: bytes) -> bytes:
    """Return enclosure and memory modules of a firmware table without texts (serial numbers)."""
    kept = [data for kind, data in structures(table) if kind in {CHASSIS, MEMORY_DEVICE}]
    return b"".join(data + b"\0\0" for data in kept)


def _values(windows: Windows, key: str) -> dict[str, RegistryValue]:
    found = {}
    for name in windows.value_names(key):
        value = windows.value(key, name)
        if not isinstance(value, Absence):
            found[DRIVE.sub("", name) if key == PREFERENCES else name] = value
    return found


class RecordedWindows:
    """Answers from a recording; without one, as a system that is not Windows."""

    def __init__(self, recording: WindowsRecording | None) -> None:
        """Answer from ``recording``."""
        self._recording = recording or WindowsRecording(
            **dict.fromkeys(
                (
                    *("adapters", "devices", "counters", "resets"),
                    *("cores", "caches", "n_nodes", "features"),
                ),
                Absence.NOT_APPLICABLE.value,
            )  # type: ignore[arg-type]
        )

    def adapters(self) -> tuple[AdapterFacts, ...] | Absence:
        """Return the graphics adapters in DXGI order."""
        found = self._recording.adapters
        return reason_of(found) if isinstance(found, str) else found

    def performance(self, luid: str) -> PerformanceFacts | Absence:
        """Return an adapter's sensors."""
        return self._recording.performance.get(luid, Absence.NOT_SUPPORTED)

    def devices(self) -> tuple[DeviceFacts, ...] | Absence:
        """Return the display devices."""
        found = self._recording.devices
        return reason_of(found) if isinstance(found, str) else found

    def value(self, key: str, name: str) -> RegistryValue | Absence:
        """Return a registry value."""
        values = self._recording.registry.get(key, {})
        # The registry takes no note of case.
        spelt = next((known for known in values if known.lower() == name.lower()), name)
        return values.get(spelt, Absence.NO_DATA)

    def value_names(self, key: str) -> tuple[str, ...]:
        """Return the names of a key's values."""
        return tuple(self._recording.registry.get(key, {}))

    def counters(self) -> Counters | Absence:
        """Return the performance counters as recorded."""
        found = self._recording.counters
        return reason_of(found) if isinstance(found, str) else found

    def resets(self) -> tuple[DriverReset, ...] | Absence:
        """Return the driver resets in the event log."""
        found = self._recording.resets
        return reason_of(found) if isinstance(found, str) else found

    def cores(self) -> tuple[CoreFacts, ...] | Absence:
        """Return the physical cores."""
        found = self._recording.cores
        return reason_of(found) if isinstance(found, str) else found

    def caches(self) -> tuple[CacheFacts, ...] | Absence:
        """Return the caches that hold data."""
        found = self._recording.caches
        return reason_of(found) if isinstance(found, str) else found

    def n_nodes(self) -> int | Absence:
        """Return the number of memory nodes."""
        found = self._recording.n_nodes
        return reason_of(found) if isinstance(found, str) else found

    def features(self) -> tuple[str, ...] | Absence:
        """Return the processor's instruction sets."""
        found = self._recording.features
        return reason_of(found) if isinstance(found, str) else found

    def firmware(self) -> bytes | Absence:
        """Return the memory structures of the firmware table."""
        try:
            return bytes.fromhex(self._recording.firmware or "") or Absence.NO_DATA
        except ValueError:
            return Absence.NO_DATA

    def close(self) -> None:
        """Nothing is held."""
