"""How far to turn which knob: hardware first when cooling, pacing first when recovering."""

from app.domain.sweep import Reason
from app.power.knobs import Knobs
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
FIRST_FRAC = 0.8
"""Furthest first step of a speed that lasts, where what the cooler carries away is known."""

DUTY_FLOOR = 0.2
CLOCK_STEP_MHZ = 15.0
CLOCK_GAIN_HIGH, CLOCK_GAIN_LOW, FLAT_FRAC = 0.7, 1.3, 0.55
"""Draw falls faster than the clock where the voltage falls with it, and slower in the lower half of
the range, where the voltage is flat and a part of the draw stays."""

LONG_FRAC = 0.3
"""A step this long crosses both, so it is as long for the clock as for the draw."""


def lower(
    device: GovernedDevice,
    knobs: Knobs,
    offered: tuple[Knob, ...],
    sensed: Sensed,
    excess_c: float,
    share: float | None = None,
) -> Action | None:
    """Return one step cooler, or ``None`` when everything is at its floor.

    Args:
        device: Ranges.
        knobs: What is set.
        offered: Knobs that may be used, in order of preference.
        sensed: Temperature and draw.
        excess_c: How far above the target it is, or will soon be.
        share: Share of the draw to take back; ``None`` = in proportion to the excess.
    """
    if share is None:
        warmth = max(10.0, (sensed.core_c or ROOM_C) - ROOM_C)
        share = min(DOWN_FRAC[1], max(DOWN_FRAC[0], GAIN * excess_c / warmth))
    reason = Reason(code="too_warm", data={"excess_c": round(excess_c, 1)})
    for knob in offered:
        action = _lower_one(knob, device, knobs, sensed, share, reason)
        if action is not None:
            return action
    return None


def lower_far(
    device: GovernedDevice,
    knobs: Knobs,
    offered: tuple[Knob, ...],
    sensed: Sensed,
    excess_c: float,
    share: float,
) -> tuple[Action, ...]:
    """Return the same for a step so long that the hardware may not reach it: pauses do the rest."""
    action = lower(device, knobs, offered, sensed, excess_c, share)
    match action:
        case None:
            return ()
        case SetPowerLimit(watts=watts):
            reached = watts / (sensed.power_w or watts)
        case LockClocks(high_mhz=mhz):
            reached = mhz / (sensed.clock_mhz or mhz)
        case _:
            return (action,)
    duty = max(DUTY_FLOOR, round(knobs.duty * (1 - share) / reached, 3))
    if duty >= min(knobs.duty, 1 - DOWN_FRAC[1]) or Knob.PACING not in offered:
        return (action,)
    return action, SetDuty(duty=duty, reason=action.reason)


def raise_(
    device: GovernedDevice, wish: Wish, knobs: Knobs, spare_c: float, share: float
) -> Action | None:
    """Return one step faster, or ``None`` when nothing is held back.

    Args:
        device: Ranges.
        wish: A cap to stay below.
        knobs: What is set.
        spare_c: How far below the target it is, positive.
        share: Share of the draw to give back.
    """
    reason = Reason(code="cool_enough", data={"spare_c": round(spare_c, 1)})
    if knobs.duty < 1.0:
        return SetDuty(duty=min(1.0, round(knobs.duty * (1 + share) + 0.01, 3)), reason=reason)
    if knobs.clock_mhz is not None:
        gain = _clock_gain(device, knobs.clock_mhz)
        mhz = _grid(knobs.clock_mhz * (1 + gain * share) + CLOCK_STEP_MHZ)
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


def begin(
    device: GovernedDevice, wish: Wish, offered: tuple[Knob, ...], known: Knobs, ratio: float
) -> tuple[Action, ...]:
    """Return what holds the speed that lasts from the start; empty = to be found step by step.

    At most one of them turns hardware: the helper refuses a second change within five seconds.

    Args:
        device: Ranges.
        wish: A cap to stay below.
        offered: Knobs that may be used.
        known: What held the temperature in an earlier session.
        ratio: Draw that the cooler carries now against the one of then.
    """
    reason = Reason(code="as_before")
    paced = known.duty < 1.0
    hardware: Action | None = None
    if Knob.POWER_LIMIT in offered:
        if known.limit_w is not None:
            watts = float(round(known.limit_w * (1.0 if paced or known.clock_mhz else ratio)))
            watts = min(capped_w(device, wish), max(device.floor_w or 0.0, watts))
            hardware = SetPowerLimit(watts=watts, reason=reason)
    elif Knob.CLOCKS in offered and known.clock_mhz is not None:
        gain = 0.0 if paced else _clock_gain(device, known.clock_mhz)
        mhz = known.clock_mhz * (1.0 + gain * (ratio - 1.0))
        mhz = min(device.clock_ceiling_mhz or 0.0, max(device.clock_floor_mhz or 0.0, mhz))
        hardware = LockClocks(high_mhz=_grid(mhz), reason=reason)
    if hardware is None and offered != (Knob.PACING,):
        return ()
    duty = max(DUTY_FLOOR, min(1.0, round(known.duty * ratio, 3)))
    pace = SetDuty(duty=duty, reason=reason) if paced and duty < 1.0 else None
    return tuple(a for a in (hardware, pace) if a is not None)


def share_up(spare_c: float, sensed: Sensed) -> float:
    """Return the share of the draw to give back when there are ``spare_c`` to spare."""
    warmth = max(10.0, (sensed.core_c or 0.0) - ROOM_C)
    return min(UP_FRAC[1], max(UP_FRAC[0], GAIN * spare_c / warmth))


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
        gain = 1.0 if share > LONG_FRAC else _clock_gain(device, basis)
        mhz = max(device.clock_floor_mhz or 0.0, _grid(basis * (1 - gain * share)))
        return LockClocks(high_mhz=mhz, reason=reason) if mhz < now - 1.0 else None
    now = knobs.limit_w or device.ceiling_w or 0.0
    # A limit above the draw does nothing, so the step starts from the draw.
    basis = min(now, sensed.power_w or now)
    watts = max(device.floor_w or 0.0, float(round(basis * (1 - share))))
    return SetPowerLimit(watts=watts, reason=reason) if watts <= now - 1.0 else None


def _clock_gain(device: GovernedDevice, mhz: float) -> float:
    is_low = mhz <= FLAT_FRAC * (device.clock_ceiling_mhz or 0.0)
    return CLOCK_GAIN_LOW if is_low else CLOCK_GAIN_HIGH


def _grid(mhz: float) -> float:
    return CLOCK_STEP_MHZ * (mhz // CLOCK_STEP_MHZ)
