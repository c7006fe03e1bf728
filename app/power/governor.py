"""The governor: (state, reading, clock) → (state, actions). Pure; once a second while in use.

A target temperature relative to where the device's own firmware steps in. Where a speed that lasts
is wanted, the draw is held from the start at what the cooler carries away at that temperature
(`steady`); in full mode nothing is held back before it is warm, and then in steps in proportion to
the excess that is coming, or, with nothing to set, the beginning is held at what lasts (`even`).
The hardware is changed at most every 20 s, never above what was found, never below the floor, and
never against somebody else: a limit that another hand moves is left alone from then on.
"""

import msgspec

from app.domain.machine import PowerSource
from app.domain.sweep import Reason
from app.power import even
from app.power.cooling import observe
from app.power.holding import hold
from app.power.kept import keep
from app.power.notes import notes_of
from app.power.ownership import check
from app.power.records import (
    Action,
    Forget,
    GovernedDevice,
    Knob,
    Reading,
    Restore,
    SetDuty,
    Wish,
)
from app.power.sensing import Sensed, sense, usable
from app.power.state import GovernorState
from app.power.steady import HOT_C, adopt, excess_of, follow_speed, is_due, need
from app.power.steps import (
    lower,
    raise_,
    share_up,
)
from app.power.targets import paces, targets
from app.power.trend import Trend, follow
from app.power.turning import Decision, above_cap, act, cap, count_over, give_back, may_turn

replace = msgspec.structs.replace

UPPER_C, LOWER_C = 1.0, -2.5
"""Excess above which to back off, and below which to recover; between them nothing happens."""

LOOK_AHEAD_S = 60.0
BUSY_S, OLD_S = 120.0, 1800.0
GAP_S = 30.0
IDLE_S = 600.0
EMERGENCY = {"hw_thermal", "hw_power_brake"}
EMERGENCY_C = 5.0
DUTY_EMERGENCY = 0.2
DUTY_BLIND = 0.5
SHIFT_C, ALARMS_MAX = 5.0, 3
PEAK_C, PEAK_MAX_C = 1.0, 8.0
"""What the target is lowered by each time that the peaks of prefill reach the slowdown."""


def govern(
    device: GovernedDevice, wish: Wish, state: GovernorState, reading: Reading, now_s: float
) -> Decision:
    """Return the new state and what to do now.

    Args:
        device: What may be done.
        wish: What the user asked for.
        state: The state so far; ``GovernorState()`` at the start.
        reading: The machine now.
        now_s: Seconds on any steady clock; a step back is survived.
    """
    reading = completed(state, reading)
    dt_s = 0.0 if state.t_s is None else now_s - state.t_s
    if dt_s < 0:
        # Everything timed starts anew, so the rate limit holds whatever the clock did.
        state = replace(state, changed_s=now_s, idle_since_s=None, over_since_s=None)
    state = replace(state, t_s=now_s)
    if reading.lost:
        return _forget(state)
    if dt_s > GAP_S:
        # After a suspend driver and helper have put things back; what we saw no longer holds.
        state = replace(state, sensed=Sensed(), trend=Trend(), watch=state.watch.rebased())
        state = replace(state, cooling=state.cooling.rested(dt_s))
        return give_back(state, state.knobs.touched(), "resumed", now_s)
    changed = _situation_changed(state, reading)
    state = replace(state, source=reading.source, profile=reading.profile)
    if changed:
        state = replace(state, trend=Trend(), watch=state.watch.rebased())
        return give_back(state, state.knobs.touched_hardware(), "situation_changed", now_s)
    return _controlled(device, wish, state, reading, now_s, max(0.0, dt_s))


def completed(state: GovernorState, reading: Reading) -> Reading:
    """Return ``reading``; power source and profile stay as they were where they cannot be read."""
    is_known = reading.source is not PowerSource.UNKNOWN
    source = reading.source if is_known else state.source
    return replace(reading, source=source, profile=reading.profile or state.profile)


def settle(state: GovernorState, knob: Knob, why_not: str | None) -> GovernorState:
    """Return the state after the helper's answer.

    Args:
        state: The state that asked.
        knob: What was to be turned.
        why_not: Code of the refusal, ``None`` when it is applied and read back.
    """
    if why_not is None:
        return state
    watch = state.watch.withhold(knob, why_not)
    return replace(state, watch=watch, knobs=state.knobs.without(knob))


def release(state: GovernorState, code: str = "ended") -> Decision:
    """Return what puts everything back: at the end of use, or when the user asks."""
    return give_back(state, state.knobs.touched(), code, state.t_s or 0.0)


def _controlled(
    device: GovernedDevice,
    wish: Wish,
    state: GovernorState,
    reading: Reading,
    now_s: float,
    dt_s: float,
) -> Decision:
    reading = replace(reading, speed=usable(reading.speed, 0.0))
    core_c, memory_c = targets(device, wish, reading)
    aims = (core_c - state.shift_c, memory_c - state.shift_c)
    sensed = sense(state.sensed, reading, aims, now_s, dt_s)
    watch, foreign = check(state.watch, state.knobs, reading, now_s, state.changed_s)
    state = replace(state, sensed=sensed, watch=watch)
    state = _observe(wish, state, reading, aims[0], dt_s)
    if foreign is not None:
        return act(state, Restore(knob=foreign, reason=Reason(code=watch.withheld[foreign])), now_s)
    if not reading.active:
        return _idle(state, now_s)
    state = _follow_speed(replace(state, idle_since_s=None), reading, now_s)
    steady = follow_speed(state.steady, reading.speed, state.knobs, dt_s)
    kept = keep(state.kept, reading.speed, state.knobs.duty, dt_s)
    state = replace(state, steady=steady, kept=kept)
    offered = _offered(device, wish, state, reading)
    state = state.rested() if offered else _watch_even(state, reading, core_c, dt_s)
    if sensed.is_blind:
        state, actions = _blind(state, now_s)
    else:
        state, actions = _regulate(device, wish, state, reading, offered, (now_s, aims[0]))
    return replace(state, notes=notes_of(device, wish, state, reading, aims[0])), actions


def _observe(
    wish: Wish, state: GovernorState, reading: Reading, target_c: float, dt_s: float
) -> GovernorState:
    """Follow the cooler: the sensor that is furthest above its target counts as the core."""
    if state.sensed.error_c is None or state.sensed.is_blind:
        return state
    temp_c, power_w = target_c + state.sensed.error_c, usable(reading.power_w)
    is_ours = not (state.sensed.is_slowed and state.knobs.touched_hardware())
    # a firmware that never lets go is no reason to wait where it is too warm
    is_ours = is_ours or _is_far_off(wish, state, reading)
    cooling = observe(state.cooling, temp_c, power_w, dt_s, active=reading.active, is_ours=is_ours)
    return replace(state, cooling=cooling)


def _is_far_off(wish: Wish, state: GovernorState, reading: Reading) -> bool:
    """Whether it is too warm all the time, not in peaks, where a temperature is to be kept."""
    return paces(wish, reading) and (state.sensed.error_c or 0.0) > HOT_C


def _watch_even(
    state: GovernorState, reading: Reading, target_c: float, dt_s: float
) -> GovernorState:
    seen = even.watch(state.even, state.sensed, state.knobs, reading, dt_s)
    return replace(state, even=even.learn(seen, state.cooling, state.knobs, target_c))


def _regulate(
    device: GovernedDevice,
    wish: Wish,
    state: GovernorState,
    reading: Reading,
    offered: tuple[Knob, ...],
    now: tuple[float, float],
) -> Decision:
    """Return what to do at ``now``: the time and the target temperature."""
    now_s, target_c = now
    if _is_emergency(device, state.sensed, reading) and state.knobs.duty > DUTY_EMERGENCY:
        # Our own work may stop at once; only hardware has to wait for its turn.
        reason = Reason(code="emergency", data={"temp_c": reading.temp_c})
        state = replace(state, even=even.Even(aim=0.0))  # it comes back as it cools down
        return act(state, SetDuty(duty=DUTY_EMERGENCY, reason=reason), now_s)
    if state.watch.strange:
        return state, ()  # a step now could overwrite somebody else's
    if offered and Knob.PACING not in offered:
        state = replace(state, steady=need(state.steady, state.cooling, state.sensed))
    if offered and (Knob.PACING in offered or state.steady.is_needed):
        limit_w = usable(reading.power_limit_w)
        cooling = adopt(state.cooling, state.steady, state.sensed, target_c, limit_w)
        state = replace(state, cooling=cooling)
        if not _is_far_off(wish, state, reading):
            state, target_c = _keep_off(device, state, target_c, now_s)
        excess = excess_of(state.cooling, state.sensed, target_c)
        if excess is not None:
            return hold(device, wish, state, offered, excess, (now_s, target_c))
    if not offered:
        held, pace = even.turn(
            state.even, state.cooling, state.sensed, state.knobs, target_c + state.shift_c
        )
        if pace is not None and may_turn(state, now_s, state.knobs.direction(pace)):
            return act(replace(state, even=held), pace, now_s)
        if state.even.is_holding(state.knobs):
            return state, ()
    return _follow_heat(device, wish, state, offered, now_s)


def _keep_off(
    device: GovernedDevice, state: GovernorState, target_c: float, now_s: float
) -> tuple[GovernorState, float]:
    """Keep further below a firmware that steps in all the same: prefill is hotter than the mean."""
    sensed, slowdown_c = state.sensed, usable(device.slowdown_c)
    is_peak = slowdown_c is not None and (sensed.raw_c or 0.0) >= slowdown_c
    is_ours = (sensed.is_slowed or is_peak) and state.knobs.touched_hardware()
    is_next = is_due(state.steady, state.cooling) and may_turn(state, now_s, -1)
    if not (is_ours and is_next and state.shift_c < PEAK_MAX_C):
        return state, target_c
    return replace(state, shift_c=state.shift_c + PEAK_C), target_c - PEAK_C


def _follow_heat(
    device: GovernedDevice,
    wish: Wish,
    state: GovernorState,
    offered: tuple[Knob, ...],
    now_s: float,
) -> Decision:
    """Hold nothing back before it is warm (full mode, or where the draw cannot be read)."""
    sensed, knobs = state.sensed, state.knobs
    error = sensed.error_c or 0.0
    coming = error + LOOK_AHEAD_S * sensed.slope_c_s
    action: Action | None = None
    if above_cap(device, wish, knobs, offered) and may_turn(state, now_s, -1):
        action = cap(device, wish)
    elif min(error, coming) > LOWER_C and max(error, coming) > UPPER_C:
        if not may_turn(state, now_s, -1):
            return state, ()
        action = lower(device, knobs, offered, sensed, max(error, coming))
        state = count_over(state, error, now_s, nothing_left=action is None)
    elif max(error, coming) < LOWER_C and may_turn(state, now_s, 1) and _is_telling(state, now_s):
        state = replace(state, over_since_s=None)
        spare = -max(error, coming)
        action = raise_(device, wish, knobs, spare, share_up(spare, sensed))
    return (state, ()) if action is None else act(state, action, now_s)


def _offered(
    device: GovernedDevice, wish: Wish, state: GovernorState, reading: Reading
) -> tuple[Knob, ...]:
    # On battery the firmware sets limits of its own.
    hardware = () if reading.source is PowerSource.BATTERY else (Knob.POWER_LIMIT, Knob.CLOCKS)
    free = tuple(k for k in hardware if device.offers(k) and k not in state.watch.withheld)
    return (*free, Knob.PACING) if paces(wish, reading) else free


def _is_emergency(device: GovernedDevice, sensed: Sensed, reading: Reading) -> bool:
    if EMERGENCY & set(reading.throttle or ()):
        return True
    limit, temp = usable(device.slowdown_c), sensed.raw_c
    return limit is not None and temp is not None and temp >= limit + EMERGENCY_C


def _is_telling(state: GovernorState, now_s: float) -> bool:
    """Whether it is cool for want of heat, not for a pause that just was (or that was long ago)."""
    if state.sensed.is_slowed:
        return False
    is_old = state.changed_s is None or now_s - state.changed_s >= OLD_S
    return state.cooling.busy_s >= BUSY_S or is_old


def _blind(state: GovernorState, now_s: float) -> Decision:
    """Never guess: give the hardware back and, if a sensor failed us, work half the time."""
    if hardware := state.knobs.touched_hardware():
        return give_back(state, hardware, "temperature_lost", now_s)
    if state.sensed.was_seen and state.knobs.duty > DUTY_BLIND:
        return act(state, SetDuty(duty=DUTY_BLIND, reason=Reason(code="temperature_lost")), now_s)
    return state, ()


def _idle(state: GovernorState, now_s: float) -> Decision:
    since = now_s if state.idle_since_s is None else state.idle_since_s
    state = replace(state, idle_since_s=since, over_since_s=None)
    if now_s - since < IDLE_S:
        return state, ()
    return give_back(state, state.knobs.touched(), "idle", now_s)


def _follow_speed(state: GovernorState, reading: Reading, now_s: float) -> GovernorState:
    if state.sensed.is_slowed:  # the firmware's own slowdown hides nothing
        return replace(state, trend=Trend())
    trend = follow(state.trend, reading.speed, now_s)
    if not trend.is_falling or state.even.was_hot:
        return replace(state, trend=trend)
    fall = Reason(code="speed_falling", data={"best": trend.best, "now": trend.last})
    state = replace(state, trend=Trend(), alarm=fall)
    if state.n_alarms >= ALARMS_MAX:
        return state
    # Heat that no sensor shows: keep the sensors we have below where they stand now.
    shift = state.shift_c + max(0.0, -(state.sensed.error_c or 0.0)) + SHIFT_C
    return replace(state, shift_c=shift, n_alarms=state.n_alarms + 1)


def _situation_changed(state: GovernorState, reading: Reading) -> bool:
    known = PowerSource.UNKNOWN not in {state.source, reading.source}
    plugged = known and state.source is not reading.source
    profiles = {state.profile, reading.profile}
    return plugged or (None not in profiles and len(profiles) == 2)


def _forget(state: GovernorState) -> Decision:
    reason = Reason(code="device_lost")
    if state.last == reason:
        return state, ()
    lost = GovernorState(t_s=state.t_s, notes=(reason,), last=reason)
    # Its pace would go on for the devices that are left.
    pace = (SetDuty(duty=1.0, reason=reason),) if state.knobs.duty < 1.0 else ()
    return lost, (*pace, Forget(reason=reason))
