"""A Windows in a few records, for tests of what decides on them."""

from typing import Any

from probes.windows.facts import AdapterFacts, PerformanceFacts, RegistryValue
from probes.windows.recording import RecordedWindows, WindowsRecording
from probes.windows.settings import GRAPHICS, POWER, PREFERENCES

GIB = 1 << 30
LUID = "00000000:0000d3f1"
INSTANCE = "luid_0x00000000_0x0000D3F1_phys_0"
RADEON = AdapterFacts(
    description="AMD Radeon RX 7600",
    vendor_id=0x1002,
    device_id=0x7480,
    luid=LUID,
    dedicated_bytes=8 * GIB,
    shared_bytes=16 * GIB,
    n_outputs=1,
    address=(3, 0, 0),
)
RENDERER = AdapterFacts(
    description="Microsoft Basic Render Driver",
    vendor_id=0x1414,
    device_id=0x8C,
    luid="00000000:0000ffff",
    flags=2,
)


def counters(**values: float) -> dict[str, dict[str, float]]:
    """Counters of the one adapter; names are the last words of the counters."""
    return {
        r"\GPU Engine(*)\Utilization Percentage": {
            f"pid_10_{INSTANCE}_eng_0_engtype_3D": values.get("busy", 5.0),
            f"pid_11_{INSTANCE}_eng_0_engtype_3D": values.get("busy2", 0.0),
            f"pid_11_{INSTANCE}_eng_4_engtype_Compute_0": values.get("compute", 0.0),
        },
        r"\GPU Adapter Memory(*)\Dedicated Usage": {INSTANCE: values.get("dedicated", GIB)},
        r"\GPU Adapter Memory(*)\Shared Usage": {INSTANCE: values.get("shared", 0.0)},
        r"\GPU Process Memory(*)\Dedicated Usage": {f"pid_11_{INSTANCE}": values.get("mine", 9.0)},
        r"\GPU Process Memory(*)\Shared Usage": {f"pid_11_{INSTANCE}": values.get("spill", 0.0)},
    }


def dword(number: int) -> RegistryValue:
    """A ``REG_DWORD``."""
    return RegistryValue(kind=4, number=number)


def text(value: str) -> RegistryValue:
    """A ``REG_SZ``."""
    return RegistryValue(kind=1, text=value)


def windows(
    *adapters: AdapterFacts,
    graphics: dict[str, RegistryValue] | None = None,
    preferences: dict[str, RegistryValue] | None = None,
    power: dict[str, RegistryValue] | None = None,
    **fields: Any,
) -> RecordedWindows:
    """A Windows with these adapters and registry values."""
    registry = {GRAPHICS: graphics or {}, PREFERENCES: preferences or {}, POWER: power or {}}
    values: dict[str, Any] = {
        "counters": counters(),
        "performance": {LUID: PerformanceFacts(temperature_dc=512, memory_hz=2_250_000_000)},
    }
    return RecordedWindows(
        WindowsRecording(
            adapters=adapters or (RADEON, RENDERER), registry=registry, **(values | fields)
        )
    )
