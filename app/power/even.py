"""Even speed in full mode without rights: what the firmware will take is not given first.

Where no hardware can be turned, full mode leaves a hot device to its firmware, whose slowdown costs
less speed than pauses that cool as much; but it comes after a fast beginning. Where that fall would
be more than 3 %, light pauses take the beginning down to what lasts, and go as the firmware steps
in: the speed that lasts is the firmware's own. Work that ends before it is warm is not held, unless
an earlier session was seen to slow down.
"""

import math

import msgspec

from app.domain.record import Record
from app.domain.sweep import Reason
from app.power.cooling import SOAKED_FRAC, Cooling, Lasting
from app.power.knobs import Knobs
from app.power.records import THERMAL, Reading, SetDuty
from app.power.sensing import Sensed, usable

FIRST_LOOK_S, LEARN_S = 5.0, 90.0
"""Work seen before the beginning is held: where it is known what lasts, and where it is not."""

WARM_C, HOT_C, SLOWDOWN_C, LOOK_AHEAD_S = -8.0, 2.5, 4.0, 60.0
"""Against the target of full mode: no longer cool, in the firmware's hands, where that begins."""

HELD_MAX_FRAC = 0.97
"""The beginning is held only where what lasts is less than this share of it."""

LOOK_S, MEAN_S = 60.0, 300.0
"""A firmware that swings takes about a minute; it is looked at no sooner."""

EARLY_FRAC = 0.7
"""Of what a cooler seems to carry away in the first minutes, so much is sure."""

HOLD_S = 600.0
"""Work after which the pauses end whatever was expected; what is still cool then is 4 % faster."""

STEP_FRAC, NEAR_FRAC, UP_MAX = 0.03, 0.01, 1.1
"""A firmware that has just stepped in lets go again a few times, so pauses end in steps as well."""

BETTER_MIN, LIKE_MIN = 1.2, 0.95
"""So much more must be carried away before it counts (a firmware may keep to one low clock), and
with so much a device that kept its speed keeps it again."""

COMING_FRAC, OTHER_ROOM_FRAC = 0.88, 0.98
"""Where less is carried away than this, such a device meets its slowdown, if only after an hour;
what lasts then was never seen, so it is taken a little lower."""

LATE_S, CASE_FRAC = 240.0, 0.17
"""From then on little but the case is cold still, and so much of the rise is what it may add."""

LASTING_S = 600.0

replace = msgspec.structs.replace


class Even(Record, frozen=True, kw_only=True):
    """How the beginning stands against what lasts; speeds are those of the work, without pauses.

    Attributes:
        burst: Speed while the device is cool.
        burst_w: Draw that goes with it.
        was_hot: Whether the firmware has slowed it down.
        aim: Speed to hold the beginning at, pauses included; ``None`` = nothing was held.
        work_s: Seconds of work.
        speed: Running mean since a knob was turned.
        speed_s: Seconds of that.
        lasting: What lasts, as seen with nothing held back.
    """

    burst: float | None = None
    burst_w: float | None = None
    was_hot: bool = False
    aim: float | None = None
    work_s: float = 0.0
    speed: float | None = None
    speed_s: float = 0.0
    lasting: Lasting | None = None

    def turned(self) -> "Even":
        """Return this after a knob was turned."""
        return replace(self, speed=None, speed_s=0.0)

    def is_holding(self, knobs: Knobs) -> bool:
        """Whether the pauses that there are, are for the beginning."""
        return self.aim is not None and knobs.duty < 1.0


def watch(even: Even, sensed: Sensed, knobs: Knobs, reading: Reading, dt_s: float) -> Even:
    """Return the state after one more reading of a device at work.

    Args:
        even: The state so far.
        sensed: Temperatures against the target of full mode.
        knobs: What is set: pauses, if anything.
        reading: The machine now.
        dt_s: Seconds since the reading before.
    """
    is_hot = bool(THERMAL & set(reading.throttle or ())) or (sensed.error_c or 0.0) > HOT_C
    even = replace(even, was_hot=even.was_hot or is_hot, work_s=even.work_s + dt_s)
    speed = reading.speed
    if speed is None or speed <= 0 or dt_s <= 0:
        return even
    seen_s = even.speed_s + dt_s
    weight = max(dt_s / seen_s, min(1.0, dt_s / MEAN_S))
    before = speed if even.speed is None else even.speed
    even = replace(even, speed=before + weight * (speed - before), speed_s=seen_s)
    power_w = usable(reading.power_w)
    if even.was_hot or power_w is None:
        return even
    full_w = power_w / knobs.duty
    before_w = full_w if even.burst_w is None else even.burst_w
    return replace(even, burst=even.speed, burst_w=before_w + weight * (full_w - before_w))


def learn(even: Even, cooling: Cooling, knobs: Knobs, target_c: float) -> Even:
    """Return the state with what lasts, after ten minutes of a warm device not held back."""
    carried = _carried_frac(even, cooling, cooling.fitted(), target_c)
    is_warm = cooling.soaked_frac >= SOAKED_FRAC
    if knobs.duty < 1.0 or even.speed_s < LASTING_S or carried is None or not is_warm:
        return even
    if even.speed is None or even.burst is None:
        return even
    frac = min(1.0, even.speed / even.burst)
    return replace(even, lasting=Lasting(frac=frac, carried_frac=carried))


def turn(
    even: Even, cooling: Cooling, sensed: Sensed, knobs: Knobs, target_c: float
) -> tuple[Even, SetDuty | None]:
    """Return the state and the pace to take now, ``None`` = as it is.

    Args:
        even: After ``watch``.
        cooling: What is known of the cooler.
        sensed: Temperatures.
        knobs: What is set.
        target_c: Target temperature of full mode.
    """
    if even.is_holding(knobs):
        return even, _let_go(even, knobs)
    if even.aim is not None or knobs.duty < 1.0 or even.burst is None or even.speed is None:
        return even, None
    if even.work_s >= HOLD_S:
        return even, None  # the beginning is over: a pause would only be a fall of our own
    frac = _lasting_frac(even, cooling, sensed, target_c)
    if frac is None or frac >= HELD_MAX_FRAC:
        return even, None
    aim = frac * even.burst
    duty = round(aim / even.speed, 3)
    even = replace(even, aim=aim)
    if duty > 1.0 - NEAR_FRAC:  # the firmware was here first
        return even, None
    data: dict[str, str | int | float | None] = {"pct": round(100 * frac)}
    return even, SetDuty(duty=duty, reason=Reason(code="even", data=data))


def _let_go(even: Even, knobs: Knobs) -> SetDuty | None:
    """Pause no more than keeps the speed: less as the firmware slows down, and not for ever."""
    if even.aim is None or even.speed is None or even.speed_s < LOOK_S:
        return None
    missing = even.aim / (even.speed * knobs.duty)
    duty = knobs.duty * (min(UP_MAX, missing) if missing > 1.0 + NEAR_FRAC else 1.0)
    if even.work_s >= HOLD_S:
        duty = max(duty, knobs.duty + STEP_FRAC)
    if duty <= knobs.duty:
        return None
    return SetDuty(duty=min(1.0, round(duty, 3)), reason=Reason(code="even_over"))


def _lasting_frac(even: Even, cooling: Cooling, sensed: Sensed, target_c: float) -> float | None:
    """Return the share of the first speed that lasts, ``None`` = not known or not needed (yet).

    Speed falls less than the draw: more slowly than its square root where the clock falls.
    """
    c_per_w, known = cooling.c_per_w or cooling.fitted(), cooling.lasting
    carried = _carried_frac(even, cooling, c_per_w, target_c)
    if known is not None and known.frac < HELD_MAX_FRAC and even.work_s >= FIRST_LOOK_S:
        return _predicted(known, known.carried_frac if carried is None else carried)
    error = sensed.error_c or -math.inf
    if carried is None or error < WARM_C:
        return None
    ahead = cooling.busy_s >= LEARN_S and error + LOOK_AHEAD_S * sensed.slope_c_s >= SLOWDOWN_C
    if known is not None:
        # it kept its speed, in a room that may have been cooler
        is_like = carried >= LIKE_MIN * known.carried_frac
        is_hot = even.was_hot or ahead
        if is_like:
            return _predicted(known, carried) if is_hot else None
        if not is_hot:
            is_coming = carried < COMING_FRAC
            return OTHER_ROOM_FRAC * _predicted(known, carried) if is_coming else None
        return math.sqrt(min(1.0, EARLY_FRAC * carried))
    is_late = even.work_s >= LATE_S and _when_warm(error, cooling, target_c) >= SLOWDOWN_C
    if not (even.was_hot or ahead or is_late):
        return None
    return math.sqrt(min(1.0, EARLY_FRAC * carried))


def _when_warm(error_c: float, cooling: Cooling, target_c: float) -> float:
    """Return the error once the case has warmed up as well."""
    rise_c = target_c + error_c - (cooling.room_c or target_c)
    return error_c + CASE_FRAC * max(0.0, 1.0 - cooling.soaked_frac) * rise_c


def _predicted(known: Lasting, carried_frac: float) -> float:
    """Scale what lasted to other rooms and models; a little more carried away need not help."""
    then = known.carried_frac
    if known.frac >= HELD_MAX_FRAC:
        then = min(1.0, then)  # it may have had more to spare than it needed
    ratio = carried_frac / then
    if ratio > 1.0:
        ratio = max(1.0, ratio / BETTER_MIN)
    return 1.0 if carried_frac >= 1.0 else min(1.0, known.frac * math.sqrt(ratio))


def _carried_frac(
    even: Even, cooling: Cooling, c_per_w: float | None, target_c: float
) -> float | None:
    """Return what the cooler carries away as a share of the draw at full speed."""
    carried = replace(cooling, c_per_w=c_per_w).carried_w(target_c)
    return carried / even.burst_w if carried is not None and even.burst_w else None
