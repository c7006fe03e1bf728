"""Values of the governor: what it knows of a device, what it reads, what it wants done."""

from enum import StrEnum

from app.domain.machine import PowerSource
from app.domain.record import Record
from app.domain.sweep import Reason

THERMAL = {"sw_thermal", "hw_thermal", "hw_slowdown"}
"""Throttle reasons, by ``GpuSample``'s names, that say: too warm."""


class Mode(StrEnum):
    """How warm the device may get, relative to where its firmware slows it down."""

    QUIET = "quiet"
    BALANCED = "balanced"
    FULL = "full"


class Knob(StrEnum):
    """What can be turned, gentlest for the user first."""

    PACING = "pacing"
    POWER_LIMIT = "power_limit"
    CLOCKS = "clocks"


class GovernedDevice(Record, frozen=True, kw_only=True):
    """What the governor may do with one GPU; ``None`` = not offered.

    Attributes:
        key: ``GpuInfo.key``.
        slowdown_c: Temperature at which the firmware slows the device down.
        memory_slowdown_c: The same of its memory.
        floor_w: Lowest power limit to set.
        ceiling_w: The limit found, which is the highest to set.
        clock_floor_mhz: Lowest core clock to lock to.
        clock_ceiling_mhz: Highest core clock of the device.
    """

    key: str
    slowdown_c: float | None = None
    memory_slowdown_c: float | None = None
    floor_w: float | None = None
    ceiling_w: float | None = None
    clock_floor_mhz: float | None = None
    clock_ceiling_mhz: float | None = None

    def offers(self, knob: Knob) -> bool:
        """Whether ``knob`` has a range on this device; pacing always has."""
        if knob is Knob.POWER_LIMIT:
            return _is_range(self.floor_w, self.ceiling_w)
        if knob is Knob.CLOCKS:
            return _is_range(self.clock_floor_mhz, self.clock_ceiling_mhz)
        return True


class Wish(Record, frozen=True, kw_only=True):
    """What the user asks for.

    Attributes:
        mode: Sets the target temperature where none is given.
        target_c: Target temperature of the core.
        cap_w: Power limit to start from and not to exceed (a cap sweep's choice).
    """

    mode: Mode = Mode.BALANCED
    target_c: float | None = None
    cap_w: float | None = None


class Reading(Record, frozen=True, kw_only=True):
    """One moment as the governor sees it; ``None`` = unknown.

    Attributes:
        temp_c: Core (hottest spot) temperature.
        temp_memory_c: Memory temperature.
        power_w: Draw.
        power_limit_w: Enforced limit.
        clock_mhz: Core clock.
        throttle: Reasons that slow the device, by ``GpuSample``'s names.
        speed: Decode speed while working (pauses excluded), tok/s or as a share of what is
            expected at this context depth; only its trend is used.
        source: Mains or battery.
        profile: The system's power profile, as it calls it.
        active: Whether the engine works on the device.
        lost: Whether the device is gone.
    """

    temp_c: float | None = None
    temp_memory_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    clock_mhz: float | None = None
    throttle: tuple[str, ...] | None = None
    speed: float | None = None
    source: PowerSource = PowerSource.UNKNOWN
    profile: str | None = None
    active: bool = True
    lost: bool = False


class SetPowerLimit(Record, frozen=True, kw_only=True, tag="set_power_limit"):
    """Have the helper set the power limit."""

    watts: float
    reason: Reason


class LockClocks(Record, frozen=True, kw_only=True, tag="lock_clocks"):
    """Have the helper keep the core clock at or below ``high_mhz``."""

    high_mhz: float
    reason: Reason


class SetDuty(Record, frozen=True, kw_only=True, tag="set_duty"):
    """Have the engine's worker work this share of the time."""

    duty: float
    reason: Reason


class Restore(Record, frozen=True, kw_only=True, tag="restore"):
    """Put back what was found; the helper leaves a value that somebody else set since."""

    knob: Knob
    reason: Reason


class Forget(Record, frozen=True, kw_only=True, tag="forget"):
    """The device is gone: end the helper, write nothing."""

    reason: Reason


Action = SetPowerLimit | LockClocks | SetDuty | Restore | Forget


def _is_range(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and 0 < low < high
