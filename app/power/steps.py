"""How far to turn which knob: hardware first when cooling, pacing first when recovering."""

import msgspec

from app.domain.record import Record
from app.domain.sweep import Reason
from app.power.records import (
    Action,
    GovernedDevice,
    Knob,
    LockClocks,
    Restore,
    SetDuty,
    SetPowerLimit,
    Wish,
)
from app.power.sensing import Sensed

GAIN = 0.6
"""Share of the excess taken back per step; the rest comes with the steps that follow."""

ROOM_C = 25.0
"""Assumed temperature of the room, where draw and excess would both be nothing."""

DOWN_FRAC = (0.01, 0.10)
UP_FRAC = (0.01, 0.05)
DUTY_FLOOR = 0.2
CLOCK_STEP_MHZ = 15.0


class Knobs(Record, frozen=True, kw_only=True):
    """What we have set; ``None`` (and duty 1) = as found.

    Attributes:
        limit_w: Power limit.
        clock_mhz: Highest core clock.
        duty: Share of the time to work.
    """

    limit_w: float | None = None
    clock_mhz: float | None = None
    duty: float = 1.0

    def without(self, knob: Knob) -> "Knobs":
        """Return these with ``knob`` as it was found."""
        if knob is Knob.POWER_LIMIT:
            return msgspec.structs.replace(self, limit_w=None)
        if knob is Knob.CLOCKS:
            return msgspec.structs.replace(self, clock_mhz=None)
        return msgspec.structs.replace(self, duty=1.0)

    def touched_hardware(self) -> tuple[Knob, ...]:
        """Return the hardware knobs that are not as they were found."""
        hardware = ((Knob.POWER_LIMIT, self.limit_w), (Knob.CLOCKS, self.clock_mhz))
        return tuple(knob for knob, value in hardware if value is not None)

    def touched(self) -> tuple[Knob, ...]:
        """Return every knob that is not as it was found."""
        return (*self.touched_hardware(), *((Knob.PACING,) if self.duty < 1.0 else ()))

    def direction(self, action: Action) -> int:
        """Return −1 when ``action`` holds back more than these, else 1."""
        match action:
            case SetPowerLimit(watts=watts):
                return -1 if self.limit_w is None or watts < self.limit_w else 1
            case LockClocks(high_mhz=mhz):
                return -1 if self.clock_mhz is None or mhz < self.clock_mhz else 1
            case SetDuty(duty=duty):
                return -1 if duty < self.duty else 1
            case _:
                return 1

    def after(self, action: Action) -> "Knobs":
        """Return these after ``action``."""
        match action:
            case SetPowerLimit(watts=watts):
                return msgspec.structs.replace(self, limit_w=watts)
            case LockClocks(high_mhz=mhz):
                return msgspec.structs.replace(self, clock_mhz=mhz)
            case SetDuty(duty=duty):
                return msgspec.structs.replace(self, duty=duty)
            case Restore(knob=knob):
                return self.without(knob)
            case _:
                return Knobs()


def lower(
    device: GovernedDevice,
    knobs: Knobs,
    offered: tuple[Knob, ...],
    sensed: Sensed,
    excess_c: float,
) -> Action | None:
    """Return one step cooler, or ``None`` when everything is at its floor.

    Args:
        device: Ranges.
        knobs: What is set.
        offered: Knobs that may be used, in order of preference.
        sensed: Temperature and draw.
        excess_c: How far above the target it is, or will soon be.
    """
    warmth = max(10.0, (sensed.core_c or ROOM_C) - ROOM_C)
    share = min(DOWN_FRAC[1], max(DOWN_FRAC[0], GAIN * excess_c / warmth))
    reason = Reason(code="too_warm", data={"excess_c": round(excess_c, 1)})
    for knob in offered:
        action = _lower_one(knob, device, knobs, sensed, share, reason)
        if action is not None:
            return action
    return None


def raise_(
    device: GovernedDevice, wish: Wish, knobs: Knobs, spare_c: float, warmth_c: float
) -> Action | None:
    """Return one step faster, or ``None`` when nothing is held back.

    Args:
        device: Ranges.
        wish: A cap to stay below.
        knobs: What is set.
        spare_c: How far below the target it is, positive.
        warmth_c: How far above the room it is.
    """
    share = min(UP_FRAC[1], max(UP_FRAC[0], GAIN * spare_c / max(10.0, warmth_c)))
    reason = Reason(code="cool_enough", data={"spare_c": round(spare_c, 1)})
    if knobs.duty < 1.0:
        return SetDuty(duty=min(1.0, round(knobs.duty * (1 + share) + 0.01, 3)), reason=reason)
    if knobs.clock_mhz is not None:
        mhz = _grid(knobs.clock_mhz * (1 + share) + CLOCK_STEP_MHZ)
        if mhz >= (device.clock_ceiling_mhz or 0.0):
            return Restore(knob=Knob.CLOCKS, reason=reason)
        return LockClocks(high_mhz=mhz, reason=reason)
    if knobs.limit_w is None:
        return None
    cap = capped_w(device, wish)
    watts = min(cap, float(round(knobs.limit_w * (1 + share) + 0.5)))
    if watts >= (device.ceiling_w or 0.0):
        return Restore(knob=Knob.POWER_LIMIT, reason=reason)
    return SetPowerLimit(watts=watts, reason=reason) if watts > knobs.limit_w else None


def capped_w(device: GovernedDevice, wish: Wish) -> float:
    """Return the highest limit wanted: the one found, or the user's cap within the range."""
    ceiling, floor = device.ceiling_w or 0.0, device.floor_w or 0.0
    return ceiling if wish.cap_w is None else min(ceiling, max(floor, wish.cap_w))


def _lower_one(
    knob: Knob,
    device: GovernedDevice,
    knobs: Knobs,
    sensed: Sensed,
    share: float,
    reason: Reason,
) -> Action | None:
    if knob is Knob.PACING:
        duty = max(DUTY_FLOOR, round(knobs.duty * (1 - share), 3))
        return SetDuty(duty=duty, reason=reason) if duty < knobs.duty else None
    if knob is Knob.CLOCKS:
        now = knobs.clock_mhz or device.clock_ceiling_mhz or 0.0
        basis = min(now, sensed.clock_mhz or now)
        mhz = max(device.clock_floor_mhz or 0.0, _grid(basis * (1 - share)))
        return LockClocks(high_mhz=mhz, reason=reason) if mhz < now - 1.0 else None
    now = knobs.limit_w or device.ceiling_w or 0.0
    # A limit above the draw does nothing, so the step starts from the draw.
    basis = min(now, sensed.power_w or now)
    watts = max(device.floor_w or 0.0, float(round(basis * (1 - share))))
    return SetPowerLimit(watts=watts, reason=reason) if watts <= now - 1.0 else None


def _grid(mhz: float) -> float:
    return CLOCK_STEP_MHZ * (mhz // CLOCK_STEP_MHZ)
