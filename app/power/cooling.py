"""What the cooler carries away: degrees per watt once it is warm, learnt while it works.

Chip, heat sink and case (or a laptop's body) warm up at their own pace, so the temperature follows
three running means of the draw. Case and body go on for half an hour: a device that seems settled
after five minutes is not, which is why a pace chosen then is slower an hour later.
"""

import math

import msgspec

from app.domain.record import Record
from app.power.knobs import Knobs

QUICK_S, SLOW_S = 12.0, 1200.0
QUICK_FRAC, SLOW_FRAC = 0.2, 0.15
"""Shares of the rise in the chip (as fast as our smoothing) and in case or body."""

SINK_S = (15.0, 25.0, 40.0, 60.0, 90.0, 130.0, 190.0, 280.0)
"""Time constants of the heat sink that are tried side by side."""

FORGET_S = 240.0
"""What was seen longer ago than this counts little: fans turn up and rooms warm up."""

STEP_S = 5.0
"""How often it is looked at; in between the draw is only averaged."""

WORK_S = 120.0
SEEN_MIN_S = 60.0
WARM_MIN_C = 8.0
"""Too little above the room to tell degrees per watt."""

ROOM_MAX_C, ROOM_C = 40.0, 20.0
"""A device that is warmer than the first at first has worked before (or stops its fan), no room is:
then the second is assumed, a cool one, so that what is learnt from it carries too little away."""

SOAKED_FRAC = 0.85
"""How far case or body must have followed the draw until nothing much is missing."""

COLD_FRAC = 0.13
"""What a case that is still cool may hide at most, as a share of degrees per watt."""

LONG_IDLE_S = 1800.0
COLD_AGE_S = 3600.0
SAME_C = 2.0
"""Targets this near are the same one."""

SLOWER_FAN_FRAC_C = 0.03
"""More degrees per watt at each degree that the device is kept cooler: fans turn down with it."""

Sums = tuple[float, float, float]
replace = msgspec.structs.replace


class Lasting(Record, frozen=True, kw_only=True):
    """What the firmware leaves of the first speed where nothing else can hold a device back.

    Attributes:
        frac: Speed of the warm device as a share of the cool one's.
        carried_frac: What the cooler carried away then as a share of the draw at full speed.
    """

    frac: float
    carried_frac: float


class Known(Record, frozen=True, kw_only=True):
    """What an earlier session learnt of a device at one temperature.

    Attributes:
        target_c: Temperature kept then.
        c_per_w: Rise above ``room_c`` per watt drawn, when warm through.
        room_c: Temperature without any draw.
        soak_w: Running mean of the draw that case or body have followed.
        at_s: When, seconds since 1970.
        profile: The system's power profile, which may turn the fan.
        knobs: What held the temperature then.
        draw_w: The draw that this gave.
        is_cautious: Whether more may be carried away than was seen so far.
        lasting: What lasts in full mode without rights.
    """

    target_c: float
    c_per_w: float
    room_c: float
    soak_w: float = 0.0
    at_s: float = 0.0
    profile: str | None = None
    knobs: Knobs = Knobs()
    draw_w: float | None = None
    is_cautious: bool = False
    lasting: Lasting | None = None


class Start(Record, frozen=True, kw_only=True):
    """What held the temperature before, and the draw that this gave."""

    knobs: Knobs
    draw_w: float


class Cooling(Record, frozen=True, kw_only=True):
    """What is seen of the cooler in this session.

    Attributes:
        room_c: Temperature without any draw; ``None`` = not seen yet.
        c_per_w: Rise per watt to go by; ``None`` = not known yet.
        soak_w: Running mean of the draw over the time of case or body.
        quick_w: The same over the chip's time.
        sink_w: The same for each time constant of the heat sink.
        sums: Sums of squares and products of each of them with the rise, older ones fading.
        seen_s: Seconds of work seen.
        idle_s: Seconds without work until now.
        busy_s: Seconds of work without a pause until now.
        work_w: Mean draw while it works, since a knob was last turned.
        work_s: Seconds of that.
        wait_s: Seconds since it was last looked at.
        wait_j: Energy drawn in them.
        start: What to begin with, until that is done.
        is_cautious: Whether ``c_per_w`` was assumed, and comes down as more is seen.
        lasting: What lasted in full mode without rights, in an earlier session or before a rest.
    """

    room_c: float | None = None
    c_per_w: float | None = None
    soak_w: float = 0.0
    quick_w: float = 0.0
    sink_w: tuple[float, ...] = (0.0,) * len(SINK_S)
    sums: tuple[Sums, ...] = ((0.0, 0.0, 0.0),) * len(SINK_S)
    seen_s: float = 0.0
    idle_s: float = 0.0
    busy_s: float = 0.0
    work_w: float | None = None
    work_s: float = 0.0
    wait_s: float = 0.0
    wait_j: float = 0.0
    start: Start | None = None
    is_cautious: bool = False
    lasting: Lasting | None = None

    def rested(self, gap_s: float) -> "Cooling":
        """Return this after the machine slept for ``gap_s``: chip and sink are cold."""
        soak_w = self.soak_w * math.exp(-gap_s / SLOW_S)
        return replace(
            self, soak_w=soak_w, quick_w=0.0, sink_w=Cooling().sink_w, wait_s=0.0, wait_j=0.0
        )

    def turned(self) -> "Cooling":
        """Return this after a knob was turned: another draw is to be expected."""
        return replace(self, work_w=None, work_s=0.0)

    def carried_w(self, target_c: float) -> float | None:
        """Return the draw that keeps ``target_c`` for good, W; ``None`` = not known."""
        if self.c_per_w is None or self.room_c is None or target_c - self.room_c < WARM_MIN_C:
            return None
        return (target_c - self.room_c) / self.c_per_w

    def fitted(self, seen_min_s: float = SEEN_MIN_S) -> float | None:
        """Return the rise per watt that fits best what was seen, ``None`` while it is too early."""
        if self.seen_s < seen_min_s:
            return None
        errors = [yy - xy * xy / xx if xx > 0 else math.inf for xx, xy, yy in self.sums]
        xx, xy, _ = self.sums[errors.index(min(errors))]
        return xy / xx if xx > 0 and xy > 0 else None

    @property
    def soaked_frac(self) -> float:
        """How far case or body have followed the present draw, 0 to 1 (more after a higher one)."""
        return self.soak_w / self.work_w if self.work_w else 0.0


def at_target(known: Known, target_c: float) -> Known:
    """Return what was learnt at another target for this one.

    A fan that turns down as the device gets cooler carries less away per degree: below the target
    it was learnt at, a figure is an assumption to come up from.

    Args:
        known: What was learnt.
        target_c: Target temperature of now.
    """
    cooler_c = known.target_c - target_c
    if cooler_c <= SAME_C:
        return known
    c_per_w = known.c_per_w * (1.0 + SLOWER_FAN_FRAC_C * cooler_c)
    return replace(known, target_c=target_c, c_per_w=c_per_w, draw_w=None, is_cautious=True)


def recall(known: Known | None, now_s: float) -> Cooling:
    """Return where to begin with what an earlier session learnt.

    Args:
        known: What was learnt (at the target of now); ``None`` = nothing.
        now_s: Seconds since 1970.
    """
    if known is None:
        return Cooling()
    age_s = max(0.0, now_s - known.at_s)
    # A device used within the hour is still warm: its temperature says nothing of the room.
    room = known.room_c if age_s < COLD_AGE_S else None
    soak = known.soak_w * math.exp(-age_s / SLOW_S)
    start = None if known.draw_w is None else Start(knobs=known.knobs, draw_w=known.draw_w)
    return Cooling(
        room_c=room, c_per_w=known.c_per_w, soak_w=soak, start=start,
        is_cautious=known.is_cautious, lasting=known.lasting,
    )  # fmt: skip


def observe(
    cooling: Cooling,
    temp_c: float,
    power_w: float | None,
    dt_s: float,
    *,
    active: bool,
    is_ours: bool = True,
) -> Cooling:
    """Return what is known after one more reading.

    Args:
        cooling: What was known.
        temp_c: Temperature of the sensor that counts (smoothed).
        power_w: Draw; ``None`` = not readable, then nothing is learnt.
        dt_s: Seconds since the reading before.
        active: Whether the engine works.
        is_ours: Whether nothing but our knobs holds it back; what the firmware leaves of the draw
            says nothing of what they give.
    """
    room, idle_s = cooling.room_c, 0.0 if active else cooling.idle_s + dt_s
    busy_s = cooling.busy_s + dt_s if active else 0.0
    if room is None or temp_c < room or idle_s > LONG_IDLE_S:
        room = temp_c if temp_c <= ROOM_MAX_C else ROOM_C
    if power_w is None or dt_s <= 0:
        return replace(cooling, room_c=room, idle_s=idle_s, busy_s=busy_s)
    work_w, work_s = cooling.work_w, cooling.work_s
    if active and is_ours:
        work_s += dt_s
        before = power_w if work_w is None else work_w
        work_w = before + max(dt_s / work_s, min(1.0, dt_s / WORK_S)) * (power_w - before)
    cooling = replace(
        cooling, room_c=room, idle_s=idle_s, busy_s=busy_s, work_w=work_w, work_s=work_s,
        wait_s=cooling.wait_s + dt_s, wait_j=cooling.wait_j + dt_s * power_w,
    )  # fmt: skip
    return cooling if cooling.wait_s < STEP_S else _look(cooling, temp_c - room, active=active)


def _look(cooling: Cooling, rise_c: float, *, active: bool) -> Cooling:
    """Let each running mean follow what was drawn; while it works, see which one fits the rise."""
    dt_s = cooling.wait_s
    mean_w = cooling.wait_j / dt_s
    quick_w = _follow(cooling.quick_w, mean_w, dt_s, QUICK_S)
    soak_w = _follow(cooling.soak_w, mean_w, dt_s, SLOW_S)
    sink_w = tuple(_follow(w, mean_w, dt_s, s) for w, s in zip(cooling.sink_w, SINK_S, strict=True))
    cooling = replace(
        cooling, quick_w=quick_w, soak_w=soak_w, sink_w=sink_w, wait_s=0.0, wait_j=0.0
    )
    if not active:
        return cooling
    keep, base = math.exp(-dt_s / FORGET_S), QUICK_FRAC * quick_w + SLOW_FRAC * soak_w
    sums = []
    for (xx, xy, yy), w in zip(cooling.sums, sink_w, strict=True):
        x = base + (1 - QUICK_FRAC - SLOW_FRAC) * w
        sums.append(
            (keep * xx + x * x * dt_s, keep * xy + x * rise_c * dt_s, keep * yy + rise_c**2 * dt_s)
        )
    return replace(cooling, sums=tuple(sums), seen_s=cooling.seen_s + dt_s)


def _follow(mean: float, value: float, dt_s: float, constant_s: float) -> float:
    return mean + (1.0 - math.exp(-dt_s / constant_s)) * (value - mean)
