"""What may be done with a GPU, from what probes and helper say of it."""

from collections.abc import Sequence
from typing import Any

from app.domain.errors import UsageProblem
from app.domain.machine import GpuInfo, GpuSample, HostSample, PowerSource
from app.power.protocol import Facts, Range, power_range
from app.power.records import GovernedDevice, Reading


def governed_device(info: GpuInfo, facts: Facts | None = None) -> GovernedDevice:
    """Return the ranges that the governor may use.

    Args:
        info: What the probes say.
        facts: What the opened helper read itself; ``None`` = no helper, so pacing only.
    """
    power = facts.power if facts else None
    clocks = facts.clocks if facts else None
    return GovernedDevice(
        key=info.key,
        slowdown_c=info.temp_slowdown_c,
        floor_w=power.low if power else None,
        ceiling_w=power.high if power else None,
        clock_floor_mhz=clocks.low if clocks else None,
        clock_ceiling_mhz=clocks.high if clocks else None,
    )


def expected_range(info: GpuInfo, limit_w: float | None) -> Range | str:
    """Return the range to expect before any helper is asked, or the code of why there is none.

    A range that is displayed does not mean that it can be set (laptops): only the helper's set and
    read back proves it.

    Args:
        info: What the probes say.
        limit_w: Enforced limit now.
    """
    if info.uuid is not None and info.uuid.startswith("MIG-"):
        return "mig"
    if info.pci_id is None:
        return "no_address"
    if info.power_limit_settable is False:
        return "not_adjustable"
    return power_range(
        info.power_limit_min_w, info.power_limit_max_w, info.power_limit_default_w, limit_w
    )


def check_cap(device: GovernedDevice, cap_w: float) -> None:
    """Refuse a cap that the device cannot have; it is never silently moved into the range.

    Raises:
        UsageProblem: It is outside the range, or no limit can be set here at all.
    """
    low, high = device.floor_w, device.ceiling_w
    if low is None or high is None:
        message = "The power limit of this device cannot be set."
        raise UsageProblem("limit_not_adjustable", message, "Pacing works on every device.")
    if not low <= cap_w <= high:
        message = f"A power limit of {cap_w:g} W is outside what this device allows."
        raise UsageProblem("cap_out_of_range", message, f"Choose {low:g} to {high:g} W.")


def reading_of(
    samples: Sequence[GpuSample],
    host: HostSample | None,
    *,
    active: bool,
    speed: float | None = None,
) -> Reading:
    """Return a moment of a GPU as the governor reads it.

    Args:
        samples: Fresh readings of the GPU, best probe first; empty = no probe answers.
        host: The machine.
        active: Whether the engine works on the GPU.
        speed: Decode speed without pauses, tok/s or share of the expected one.
    """
    return Reading(
        temp_c=_first(samples, "temp_c"),
        temp_memory_c=_first(samples, "temp_memory_c"),
        power_w=_first(samples, "power_w"),
        power_limit_w=_first(samples, "power_limit_w"),
        clock_mhz=_first(samples, "clock_mhz"),
        throttle=_first(samples, "throttle"),
        speed=speed,
        source=host.power_source if host else PowerSource.UNKNOWN,
        profile=host.power_mode if host else None,
        active=active,
        lost=any("lost" in sample.missing.values() for sample in samples),
    )


def _first(samples: Sequence[GpuSample], name: str) -> Any:
    return next((v for s in samples if (v := getattr(s, name)) is not None), None)
