"""A speed that lasts: work from the start at the draw that the cooler can carry away for good.

A device that begins at full speed and is held back once it is warm slows down by what its heat
costs. In balanced and quiet mode it is held back from the start instead, by what an earlier session
learnt, and then left alone: a step is taken when the draw is off by what makes 2.5 °C, not before.
The first time it begins with what nearly every cooler carries and comes up as it is seen to.
"""

import msgspec

from app.domain.record import Record
from app.power.cooling import COLD_FRAC, SOAKED_FRAC, Cooling
from app.power.knobs import Knobs
from app.power.sensing import Sensed

FIRST_LOOK_S = 5.0
"""Work seen before the first step: the draw of this model is not known earlier."""

LOOK_S = 30.0
NEAR_C, NEAR_AGAIN_C, FAR_C = 1.0, 1.5, 2.5
"""Aim this near at first and after a step; step again when this far off."""

SURE_FRAC = 0.95
EARLY_S, EARLY_FRAC, LATER_FRAC = 45.0, 0.65, 0.85
"""Of what a cooler seems to carry away in the first minute, or after three, so much is sure."""

LOOK_AHEAD_S, CLOSE_S, CLOSE_C, FAR_OFF_C = 60.0, 30.0, -3.0, -10.0
"""So soon before so near the target, a device is no longer a cool one; further off it is."""

ASSUMED_RISE_C = 130.0
"""Above the room at full draw without any slowdown: hardly a cooler is made as small as that."""

NEW_S, NEW_FRAC = 420.0, 0.17
"""Until then full mode may still come down, and rather too far: later that would be a fall."""

FASTER_FAN_FRAC_C = 0.01
"""Fewer degrees per watt at each degree that full mode is still below its target: fans turn up."""

NEAR_FULL_C = 2.0
"""Full mode steps down at so much above its target: half of what is left to the firmware."""

CLIMB_AFTER_S, CLIMB_LOOK_S = 180.0, 60.0
CAUTIOUS_S = 1800.0
"""Work at one setting after which it has come up as far as it can."""

HOT_C = 3.0
ADOPT_C, ADOPT_HELD_C, ADOPT_WARM_C = 0.5, 1.0, -1.5
CALM_C_S, CALM_S, SETTLE_S = 0.01, 180.0, 90.0
SPEED_S = 30.0
WORSE_FRAC = 0.05

replace = msgspec.structs.replace


class Steady(Record, frozen=True, kw_only=True):
    """How the speed that lasts stands against the one of a cool device.

    Attributes:
        is_held: Whether the draw is as wanted, so that small errors are left alone.
        was_held: Whether it ever was.
        first_w: What the cooler carried away when it was first known for sure.
        burst: Speed with nothing held back.
        speed: Running mean of the speed since a knob was turned.
        speed_s: Seconds of that.
        pct: Speed that lasts as a percentage of ``burst``; ``None`` = not known (yet).
        is_needed: Whether a device that nothing is to be held back of was seen to need it.
    """

    is_held: bool = False
    was_held: bool = False
    first_w: float | None = None
    burst: float | None = None
    speed: float | None = None
    speed_s: float = 0.0
    pct: int | None = None
    is_needed: bool = False

    def turned(self) -> "Steady":
        """Return this after a knob was turned."""
        return replace(self, speed=None, speed_s=0.0, pct=None)


def is_close(sensed: Sensed) -> bool:
    """Whether a device is near its target, or soon will be."""
    error = sensed.error_c
    if error is None or error < FAR_OFF_C:
        return False
    return error + CLOSE_S * max(0.0, sensed.slope_c_s) >= CLOSE_C


def need(steady: Steady, cooling: Cooling, sensed: Sensed) -> Steady:
    """Return the state with whether full mode has to hold a speed: where it did before, or warm."""
    was_held = cooling.start is not None and bool(cooling.start.knobs.touched())
    is_seen = cooling.c_per_w is not None or cooling.fitted(EARLY_S) is not None
    is_warm = is_seen and cooling.busy_s >= EARLY_S and is_close(sensed)
    return replace(steady, is_needed=steady.is_needed or was_held or is_warm)


def excess_of(cooling: Cooling, sensed: Sensed, target_c: float) -> float | None:
    """Return how far above the target this draw would end, °C; ``None`` = not known.

    Args:
        cooling: What is known of the cooler.
        sensed: Temperatures now.
        target_c: Target temperature of the core.
    """
    carried = cooling.carried_w(target_c)
    if carried is None or cooling.work_w is None or cooling.c_per_w is None:
        return None
    excess = cooling.c_per_w * (cooling.work_w - carried)
    error = sensed.error_c or 0.0
    return max(excess, error) if error > HOT_C and sensed.slope_c_s > -CALM_C_S else excess


def adopt(
    cooling: Cooling, steady: Steady, sensed: Sensed, target_c: float, limit_w: float | None
) -> Cooling:
    """Return the cooler with what is seen of it taken over, where that can be trusted.

    Warming up shows too little (the fan is slow still, the case cool), so more degrees per watt are
    believed once it is too warm, fewer once it is warm through. Nothing known yet, much is assumed,
    and fewer are believed as they are seen.

    Args:
        cooling: What is known.
        steady: Whether a draw was found.
        sensed: Temperatures now.
        target_c: Target temperature of the core.
        limit_w: Power limit in force; ``None`` = unknown.
    """
    fitted, error = cooling.fitted(), sensed.error_c
    early = cooling.fitted(EARLY_S)
    if cooling.c_per_w is None and early is not None and is_close(sensed):
        sure = EARLY_FRAC if cooling.seen_s < CLIMB_AFTER_S else LATER_FRAC
        return replace(cooling, c_per_w=early / sure, is_cautious=True)
    if cooling.c_per_w is None and cooling.work_w and cooling.work_s >= FIRST_LOOK_S:
        assumed = ASSUMED_RISE_C / max(cooling.work_w, limit_w or 0.0)
        return replace(cooling, c_per_w=assumed, is_cautious=True)
    if fitted is None or error is None or cooling.room_c is None or cooling.c_per_w is None:
        return cooling
    if cooling.is_cautious:
        rise_c = target_c - cooling.room_c
        if steady.is_needed and (cooling.seen_s < NEW_S or error <= ADOPT_C):
            return _feel_out(cooling, rise_c + error + LOOK_AHEAD_S * sensed.slope_c_s, error)
        return _come_up(cooling, fitted, error, rise_c)
    off_c = (fitted / cooling.c_per_w - 1.0) * (target_c - cooling.room_c)
    is_seen = cooling.work_s >= SETTLE_S or error > HOT_C
    warm_c = ADOPT_HELD_C if steady.was_held else ADOPT_WARM_C
    is_worse = off_c > ADOPT_C and error >= warm_c and is_seen
    is_calm = cooling.work_s >= CALM_S and abs(sensed.slope_c_s) < CALM_C_S
    is_better = off_c < -ADOPT_C and is_calm and cooling.soaked_frac >= SOAKED_FRAC
    return replace(cooling, c_per_w=fitted) if is_worse or is_better else cooling


def _feel_out(cooling: Cooling, rise_c: float, error_c: float) -> Cooling:
    """Go by a minute at one draw, with what the case still takes up: full mode begins fast.

    In its first ten minutes it may come down; later only up, for that would be a fall.
    """
    look_s = CLIMB_LOOK_S if is_climbing(cooling) else LOOK_S
    if cooling.work_s < look_s or not cooling.work_w:
        return cooling
    is_new = cooling.seen_s < NEW_S
    seen = rise_c * _when_warm(cooling, NEW_FRAC if is_new else COLD_FRAC) / cooling.work_w
    if not is_new:
        seen = min(seen * (1.0 - FASTER_FAN_FRAC_C * max(0.0, -error_c)), cooling.c_per_w or seen)
    return replace(cooling, c_per_w=seen, is_cautious=not _is_warm(cooling))


def _when_warm(cooling: Cooling, cold_frac: float = COLD_FRAC) -> float:
    """Return how much more degrees per watt there will be once the case is warm."""
    return 1.0 + cold_frac * max(0.0, 1.0 - cooling.soaked_frac)


def _is_warm(cooling: Cooling) -> bool:
    return cooling.soaked_frac >= SOAKED_FRAC or cooling.work_s >= CAUTIOUS_S


def _come_up(cooling: Cooling, fitted: float, error_c: float, rise_c: float) -> Cooling:
    """Believe in as much as is seen, less what the case still takes up, until it is warm."""
    c_per_w = cooling.c_per_w or fitted
    if error_c > ADOPT_C and fitted > c_per_w:
        return replace(cooling, c_per_w=fitted, is_cautious=False)
    if not is_climbing(cooling) or not cooling.work_w:
        return cooling
    likely = fitted * _when_warm(cooling)
    if likely > c_per_w:  # it waits, and does not turn back, while that is not hot
        likely = min(likely, max(c_per_w, rise_c / cooling.work_w))
    return replace(cooling, c_per_w=likely, is_cautious=not _is_warm(cooling))


def is_sure(cooling: Cooling) -> bool:
    """Whether it is warm through, so that what was learnt holds for good."""
    return cooling.soaked_frac >= SURE_FRAC


def is_climbing(cooling: Cooling) -> bool:
    """Whether it has begun cautiously and now comes up as the cooler is seen to carry more."""
    return cooling.is_cautious and cooling.seen_s >= CLIMB_AFTER_S


def is_due(steady: Steady, cooling: Cooling) -> bool:
    """Whether enough was seen of the draw since the last step."""
    if is_climbing(cooling):
        return cooling.work_s >= CLIMB_LOOK_S
    return cooling.work_s >= (LOOK_S if steady.was_held else FIRST_LOOK_S)


def is_off(steady: Steady, cooling: Cooling, excess_c: float) -> bool:
    """Whether the draw is to be corrected; once more when all of it is warm for the first time."""
    if cooling.is_cautious:
        return abs(excess_c) > NEAR_C
    if steady.is_needed and excess_c > NEAR_FULL_C:
        return True  # the firmware is near
    is_final = steady.first_w is not None or not is_sure(cooling)
    near_c = NEAR_AGAIN_C if steady.was_held else NEAR_C
    return abs(excess_c) > (FAR_C if steady.is_held and is_final else near_c)


def held(steady: Steady, cooling: Cooling, target_c: float) -> Steady:
    """Return the state once the draw is as wanted (or cannot come nearer)."""
    if cooling.is_cautious:
        return steady
    first_w = steady.first_w
    if first_w is None and is_sure(cooling):
        first_w = cooling.carried_w(target_c)
    return replace(steady, is_held=True, was_held=True, first_w=first_w)


def follow_speed(steady: Steady, speed: float | None, knobs: Knobs, dt_s: float) -> Steady:
    """Return the state after one more decode speed (pauses excluded; ``None`` = none)."""
    if speed is None or speed <= 0 or dt_s <= 0:
        return steady
    seen_s = steady.speed_s + dt_s
    before = speed if steady.speed is None else steady.speed
    mean = before + min(1.0, max(dt_s / seen_s, dt_s / SPEED_S)) * (speed - before)
    steady = replace(steady, speed=mean, speed_s=seen_s)
    if not knobs.touched_hardware():
        # Pauses are not in the speed, so only hardware can hide what the device could do.
        steady = replace(steady, burst=mean)
    if steady.is_held and steady.pct is None and seen_s >= SPEED_S and steady.burst:
        steady = replace(steady, pct=min(100, round(100 * mean * knobs.duty / steady.burst)))
    return steady
