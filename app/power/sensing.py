"""How hot a device is against its targets: smoothed, checked for plausibility, with its trend."""

import math

import msgspec

from app.domain.record import Record
from app.power.records import THERMAL, Reading

SMOOTHING_S = 12.0
SLOPE_SMOOTHING_S = 30.0
POWER_SMOOTHING_S = 10.0
CLOCK_DECAY_S = 60.0
MISSING_MAX = 3
"""Readings without a temperature that are bridged; one more and the device counts as unseen."""

COARSE_C, COARSE_STEPS = 2.0, 2
"""A sensor that tells no less apart says where it stands at each change only; between them it is
followed so much more slowly that a step takes minutes, not seconds."""

PLAUSIBLE_C = (1.0, 130.0)
JUMP_C = 30.0
"""No chip moves this far between two readings; a start of load reaches 20 °C."""

STUCK_S = 120.0
STUCK_POWER_FRAC = 0.4
HEAT_SMOOTHING_S = 90.0
"""The draw changed by this much for two minutes and the temperature by nothing: it is stuck. The
draw is followed as a heat sink does: half of it right after a fast beginning may leave the
temperature where it is."""


class Sensed(Record, frozen=True, kw_only=True):
    """What is known of the temperature.

    Attributes:
        core_c: Smoothed core temperature; ``None`` = not seen yet.
        memory_c: Smoothed memory temperature; ``None`` = not readable.
        power_w: Smoothed draw.
        heat_w: Draw smoothed as a heat sink does.
        clock_mhz: Highest core clock of the last minute or so: prefill's dips do not count.
        error_c: Largest excess over its target of any sensor (negative = cooler).
        slope_c_s: Trend of ``error_c``, °C per second.
        is_slowed: Whether the firmware slows the device down for its heat now.
        missing: Readings in a row without a usable core temperature.
        was_seen: Whether there ever was one.
        is_stuck: Whether the sensor does not follow the load.
        suspect_c: A reading too far from the one before, awaiting confirmation.
        suspects: How many in a row agree with it.
        raw_c: Last accepted core reading.
        is_still: Whether it was the same as the reading before.
        step_c: Smallest change of it after it was still: what the sensor can tell apart.
        steps: How many such changes there were.
        same_since_s: Until when ``raw_c`` and the draw still went together.
        same_power_w: ``heat_w`` when ``raw_c`` last changed.
    """

    core_c: float | None = None
    memory_c: float | None = None
    power_w: float | None = None
    heat_w: float | None = None
    clock_mhz: float | None = None
    error_c: float | None = None
    slope_c_s: float = 0.0
    is_slowed: bool = False
    missing: int = 0
    was_seen: bool = False
    is_stuck: bool = False
    suspect_c: float | None = None
    suspects: int = 0
    raw_c: float | None = None
    is_still: bool = False
    step_c: float = math.inf
    steps: int = 0
    same_since_s: float = 0.0
    same_power_w: float | None = None

    @property
    def coarse_c(self) -> float | None:
        """What a coarse sensor tells apart, °C; ``None`` = it is no coarse one (or not known)."""
        is_coarse = self.steps >= COARSE_STEPS and self.step_c >= COARSE_C
        return self.step_c if is_coarse else None

    @property
    def is_blind(self) -> bool:
        """Whether there is no temperature to go by."""
        return self.core_c is None or self.missing > MISSING_MAX or self.is_stuck


def sense(
    sensed: Sensed, reading: Reading, targets: tuple[float, float], now_s: float, dt_s: float
) -> Sensed:
    """Return what is known after one more reading.

    Args:
        sensed: What was known.
        reading: The new reading.
        targets: Target temperature of core and memory, °C.
        now_s: Time of the reading.
        dt_s: Seconds since the one before.
    """
    power = _smooth(sensed.power_w, usable(reading.power_w), dt_s, POWER_SMOOTHING_S)
    clock, peak = usable(reading.clock_mhz), sensed.clock_mhz
    if clock is None or peak is None or clock < peak:
        clock = _smooth(peak, clock, dt_s, CLOCK_DECAY_S)
    heat = _smooth(sensed.heat_w, usable(reading.power_w), dt_s, HEAT_SMOOTHING_S)
    is_slowed = bool(THERMAL & set(reading.throttle or ()))
    sensed = msgspec.structs.replace(
        sensed, power_w=power, heat_w=heat, clock_mhz=clock, is_slowed=is_slowed
    )
    before_c = sensed.raw_c
    sensed = _accept(sensed, reading.temp_c, now_s)
    if sensed.missing or sensed.raw_c is None:
        return sensed
    step_c = sensed.coarse_c or 1.0
    core = _smooth(_edge(before_c, sensed), sensed.raw_c, dt_s, step_c**2 * SMOOTHING_S)
    memory_raw = usable(reading.temp_memory_c, *PLAUSIBLE_C)
    memory = None
    if memory_raw is not None:
        memory = _smooth(sensed.memory_c, memory_raw, dt_s, SMOOTHING_S)
    error, slope = _excess(core, memory, targets), sensed.slope_c_s
    # Against the targets of now: one that the user has just moved is no trend.
    before = _excess(sensed.core_c, sensed.memory_c, targets)
    if error is not None and before is not None and dt_s > 0:
        slope = _smooth(slope, (error - before) / dt_s, dt_s, step_c * SLOPE_SMOOTHING_S) or 0.0
    return msgspec.structs.replace(
        sensed, core_c=core, memory_c=memory, error_c=error, slope_c_s=slope, was_seen=True
    )


def _edge(before_c: float | None, sensed: Sensed) -> float | None:
    """Return the core temperature to go on from: a coarse sensor is exact when it changes."""
    raw_c, step_c = sensed.raw_c, sensed.coarse_c
    if step_c is None or raw_c is None or before_c is None or raw_c == before_c:
        return sensed.core_c
    return raw_c - math.copysign(step_c / 2, raw_c - before_c)


def _excess(
    core_c: float | None, memory_c: float | None, targets: tuple[float, float]
) -> float | None:
    pairs = zip((core_c, memory_c), targets, strict=True)
    return max((value - target for value, target in pairs if value is not None), default=None)


def usable(value: float | None, low: float = 0.5, high: float = 1e5) -> float | None:
    """Return ``value`` if a sensor can mean it; drivers give 0 for what they do not know."""
    if value is None or not math.isfinite(value) or not low <= value <= high:
        return None
    return value


def _accept(sensed: Sensed, temp_c: float | None, now_s: float) -> Sensed:
    """Take the reading, or count it as missing when it cannot be true (yet)."""
    raw = usable(temp_c, *PLAUSIBLE_C)
    if raw is None:
        return msgspec.structs.replace(sensed, missing=sensed.missing + 1)
    if sensed.raw_c is None or abs(raw - sensed.raw_c) < JUMP_C:
        return _take(sensed, raw, now_s)
    agrees = sensed.suspect_c is not None and abs(raw - sensed.suspect_c) < JUMP_C / 2
    suspects = sensed.suspects + 1 if agrees else 1
    if suspects > MISSING_MAX:
        # It is the truth after all: start from it, without a slope from before.
        fresh = msgspec.structs.replace(sensed, core_c=None, error_c=None, slope_c_s=0.0)
        return _take(fresh, raw, now_s)
    return msgspec.structs.replace(
        sensed, suspect_c=raw, suspects=suspects, missing=sensed.missing + 1
    )


def _take(sensed: Sensed, raw_c: float, now_s: float) -> Sensed:
    is_still = raw_c == sensed.raw_c
    if sensed.is_still and not is_still and sensed.raw_c is not None:
        step_c = min(sensed.step_c, abs(raw_c - sensed.raw_c))
        sensed = msgspec.structs.replace(sensed, step_c=step_c, steps=sensed.steps + 1)
    is_stuck, since_s, power = sensed.is_stuck, sensed.same_since_s, sensed.same_power_w
    if raw_c != sensed.raw_c or power is None or now_s < since_s:
        is_stuck, since_s, power = False, now_s, sensed.heat_w
    elif sensed.heat_w is not None:
        moved = abs(sensed.heat_w - power) >= STUCK_POWER_FRAC * max(power, sensed.heat_w)
        since_s = since_s if moved else now_s
        is_stuck = is_stuck or now_s - since_s >= STUCK_S
    return msgspec.structs.replace(
        sensed,
        raw_c=raw_c,
        is_still=is_still,
        missing=0,
        suspect_c=None,
        suspects=0,
        is_stuck=is_stuck,
        same_since_s=since_s,
        same_power_w=power,
    )


def _smooth(old: float | None, new: float | None, dt_s: float, constant_s: float) -> float | None:
    if new is None or old is None:
        return old if new is None else new
    weight = 1.0 - math.exp(-max(0.0, dt_s) / constant_s)
    return old + weight * (new - old)
