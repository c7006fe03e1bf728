"""The governor: (state, reading, clock) → (state, actions). Pure; once a second while in use.

A target temperature relative to where the device's own firmware steps in, two thresholds around
it, and steps in proportion to the excess that is coming (its trend looked ahead). The hardware is
changed at most every 20 s, never above what was found, never below the floor, and never against
somebody else: a limit that another hand moves is left alone from then on.
"""

import msgspec

from app.domain.machine import PowerSource
from app.domain.sweep import Reason
from app.power.notes import notes_of
from app.power.ownership import check
from app.power.records import (
    Action,
    Forget,
    GovernedDevice,
    Knob,
    Mode,
    Reading,
    Restore,
    SetDuty,
    SetPowerLimit,
    Wish,
)
from app.power.sensing import Sensed, sense, usable
from app.power.state import GovernorState
from app.power.steps import ROOM_C, Knobs, capped_w, lower, raise_
from app.power.targets import effective_mode, targets
from app.power.trend import Trend, follow

replace = msgspec.structs.replace

UPPER_C, LOWER_C = 1.0, -2.5
"""Excess above which to back off, and below which to recover; between them nothing happens."""

LOOK_AHEAD_S = 60.0
DOWN_WAIT_S, UP_WAIT_S = 20.0, 30.0
CALM_S = 600.0
GAP_S = 30.0
IDLE_S = 600.0
EMERGENCY = {"hw_thermal", "hw_power_brake"}
EMERGENCY_C = 5.0
DUTY_EMERGENCY = 0.2
DUTY_BLIND = 0.5
UNREACHABLE_C = 3.0
SHIFT_C, ALARMS_MAX = 5.0, 3


Decision = tuple[GovernorState, tuple[Action, ...]]


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
        return _give_back(state, state.knobs.touched(), "resumed", now_s)
    changed = _situation_changed(state, reading)
    state = replace(state, source=reading.source, profile=reading.profile or state.profile)
    if changed:
        state = replace(state, trend=Trend(), watch=state.watch.rebased())
        return _give_back(state, state.knobs.touched_hardware(), "situation_changed", now_s)
    return _controlled(device, wish, state, reading, now_s, max(0.0, dt_s))


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
    return _give_back(state, state.knobs.touched(), code, state.t_s or 0.0)


def _controlled(
    device: GovernedDevice,
    wish: Wish,
    state: GovernorState,
    reading: Reading,
    now_s: float,
    dt_s: float,
) -> Decision:
    core_c, memory_c = targets(device, wish, reading)
    aims = (core_c - state.shift_c, memory_c - state.shift_c)
    sensed = sense(state.sensed, reading, aims, now_s, dt_s)
    watch, foreign = check(state.watch, state.knobs, reading, now_s, state.changed_s)
    state = replace(state, sensed=sensed, watch=watch)
    if foreign is not None:
        return _act(
            state, Restore(knob=foreign, reason=Reason(code=watch.withheld[foreign])), now_s
        )
    if not reading.active:
        return _idle(state, now_s)
    state = _follow_speed(replace(state, idle_since_s=None), reading, now_s)
    if sensed.is_blind:
        state, actions = _blind(state, now_s)
    else:
        state, actions = _regulate(device, wish, state, reading, now_s)
    return replace(state, notes=notes_of(device, wish, state, reading, aims[0])), actions


def _regulate(
    device: GovernedDevice, wish: Wish, state: GovernorState, reading: Reading, now_s: float
) -> Decision:
    sensed, knobs = state.sensed, state.knobs
    error = sensed.error_c or 0.0
    coming = error + LOOK_AHEAD_S * sensed.slope_c_s
    if _is_emergency(device, sensed, reading) and knobs.duty > DUTY_EMERGENCY:
        # Our own work may stop at once; only hardware has to wait for its turn.
        reason = Reason(code="emergency", data={"temp_c": reading.temp_c})
        return _act(state, SetDuty(duty=DUTY_EMERGENCY, reason=reason), now_s)
    offered = _offered(device, wish, state, reading)
    action: Action | None = None
    if min(error, coming) > LOWER_C and max(error, coming) > UPPER_C:
        if not _may_turn(state, now_s, -1):
            return state, ()
        action = lower(device, knobs, offered, sensed, max(error, coming))
        state = _count_over(state, error, now_s, nothing_left=action is None)
    elif _above_cap(device, wish, knobs, offered) and _may_turn(state, now_s, -1):
        reason = Reason(code="capped", data={"watts": wish.cap_w})
        action = SetPowerLimit(watts=capped_w(device, wish), reason=reason)
    elif max(error, coming) < LOWER_C and _may_turn(state, now_s, 1):
        state = replace(state, over_since_s=None)
        action = raise_(device, wish, knobs, -max(error, coming), (sensed.core_c or 0) - ROOM_C)
    return (state, ()) if action is None else _act(state, action, now_s)


def _act(state: GovernorState, action: Action, now_s: float) -> Decision:
    direction = 1 if isinstance(action, Restore) else state.knobs.direction(action)
    is_calm = state.changed_s is None or now_s - state.changed_s > CALM_S
    reversals = 0 if is_calm else state.reversals
    if state.direction * direction < 0:
        reversals += 1
    state = replace(
        state,
        knobs=state.knobs.after(action),
        changed_s=now_s,
        direction=direction,
        reversals=reversals,
        trend=Trend(),
        last=action.reason,
    )
    return state, (action,)


def _may_turn(state: GovernorState, now_s: float, direction: int) -> bool:
    """Whether a turn is due; each reversal within ten minutes doubles the wait (to 16 times)."""
    if state.changed_s is None:
        return True
    wait_s = DOWN_WAIT_S if direction < 0 else UP_WAIT_S
    if state.direction * direction < 0:
        wait_s *= 2 ** min(4, max(0, state.reversals - 1))
    return now_s - state.changed_s >= wait_s


def _offered(
    device: GovernedDevice, wish: Wish, state: GovernorState, reading: Reading
) -> tuple[Knob, ...]:
    # On battery the firmware sets limits of its own.
    hardware = () if reading.source is PowerSource.BATTERY else (Knob.POWER_LIMIT, Knob.CLOCKS)
    free = tuple(k for k in hardware if device.offers(k) and k not in state.watch.withheld)
    # The firmware's own slowdown costs a decode less speed than pauses that cool as much: pacing
    # is for people who want it cooler, not for those who want it fast.
    is_full = wish.target_c is None and effective_mode(wish.mode, reading) is Mode.FULL
    return free if is_full else (*free, Knob.PACING)


def _above_cap(device: GovernedDevice, wish: Wish, knobs: Knobs, offered: tuple[Knob, ...]) -> bool:
    if wish.cap_w is None or Knob.POWER_LIMIT not in offered:
        return False
    return (knobs.limit_w or device.ceiling_w or 0.0) > capped_w(device, wish) + 0.5


def _is_emergency(device: GovernedDevice, sensed: Sensed, reading: Reading) -> bool:
    if EMERGENCY & set(reading.throttle or ()):
        return True
    limit, temp = usable(device.slowdown_c), sensed.raw_c
    return limit is not None and temp is not None and temp >= limit + EMERGENCY_C


def _blind(state: GovernorState, now_s: float) -> Decision:
    """Never guess: give the hardware back and, if a sensor failed us, work half the time."""
    if hardware := state.knobs.touched_hardware():
        return _give_back(state, hardware, "temperature_lost", now_s)
    if state.sensed.was_seen and state.knobs.duty > DUTY_BLIND:
        return _act(state, SetDuty(duty=DUTY_BLIND, reason=Reason(code="temperature_lost")), now_s)
    return state, ()


def _idle(state: GovernorState, now_s: float) -> Decision:
    since = now_s if state.idle_since_s is None else state.idle_since_s
    state = replace(state, idle_since_s=since, over_since_s=None)
    if now_s - since < IDLE_S:
        return state, ()
    return _give_back(state, state.knobs.touched(), "idle", now_s)


def _follow_speed(state: GovernorState, reading: Reading, now_s: float) -> GovernorState:
    trend = follow(state.trend, reading.speed, now_s)
    if not trend.is_falling:
        return replace(state, trend=trend)
    fall = Reason(code="speed_falling", data={"best": trend.best, "now": trend.last})
    state = replace(state, trend=Trend(), alarm=fall)
    if state.n_alarms >= ALARMS_MAX:
        return state
    # Heat that no sensor shows: keep the sensors we have below where they stand now.
    shift = state.shift_c + max(0.0, -(state.sensed.error_c or 0.0)) + SHIFT_C
    return replace(state, shift_c=shift, n_alarms=state.n_alarms + 1)


def _count_over(
    state: GovernorState, error_c: float, now_s: float, *, nothing_left: bool
) -> GovernorState:
    if not nothing_left or error_c <= UNREACHABLE_C:
        return replace(state, over_since_s=None)
    return replace(state, over_since_s=now_s if state.over_since_s is None else state.over_since_s)


def _situation_changed(state: GovernorState, reading: Reading) -> bool:
    known = PowerSource.UNKNOWN not in {state.source, reading.source}
    plugged = known and state.source is not reading.source
    profiles = {state.profile, reading.profile}
    return plugged or (None not in profiles and len(profiles) == 2)


def _give_back(state: GovernorState, knobs: tuple[Knob, ...], code: str, now_s: float) -> Decision:
    if not knobs:
        return state, ()
    reason = Reason(code=code)
    actions = tuple(
        SetDuty(duty=1.0, reason=reason) if k is Knob.PACING else Restore(knob=k, reason=reason)
        for k in knobs
    )
    left = state.knobs
    for knob in knobs:
        left = left.without(knob)
    return replace(state, knobs=left, changed_s=now_s, direction=0, last=reason), actions


def _forget(state: GovernorState) -> Decision:
    reason = Reason(code="device_lost")
    if state.last == reason:
        return state, ()
    lost = GovernorState(t_s=state.t_s, notes=(reason,), last=reason)
    return lost, (Forget(reason=reason),)
