"""Holds the draw at what the cooler carries away for good: balanced, quiet, or a user's target."""

import msgspec

from app.domain.sweep import Reason
from app.power.cooling import Known
from app.power.knobs import Knobs
from app.power.records import Action, GovernedDevice, Knob, SetDuty, Wish
from app.power.state import GovernorState
from app.power.steady import held, is_climbing, is_due, is_off
from app.power.steps import DOWN_FRAC, FIRST_FRAC, UP_FRAC, begin, capped_w, lower_far, raise_
from app.power.turning import Decision, above_cap, act, act_all, cap, count_over, may_turn

CLIMB_FRAC = 0.20
"""Furthest step up while it is still being learnt what the cooler carries away."""

AGAIN_GAIN = 0.6
"""Share of an error taken back once a steady speed was found: as little as keeps the target."""

replace = msgspec.structs.replace


def hold(
    device: GovernedDevice,
    wish: Wish,
    state: GovernorState,
    offered: tuple[Knob, ...],
    excess_c: float,
    now: tuple[float, float],
) -> Decision:
    """Keep the draw at what the cooler carries away for good.

    Args:
        device: Ranges.
        wish: What the user asked for.
        state: After the reading.
        offered: Knobs that may be used.
        excess_c: How far above the target this draw would end.
        now: Time, and target temperature of the core.
    """
    (now_s, target_c), knobs = now, state.knobs
    direction = -1 if excess_c > 0 else 1
    waits = state.cooling.start is not None and not may_turn(state, now_s, -1)
    if waits or not is_due(state.steady, state.cooling):
        return state, ()
    if above_cap(device, wish, knobs, offered) and may_turn(state, now_s, -1):
        return act(state, cap(device, wish), now_s)
    if begun := _begin(device, wish, state, offered, target_c):
        return act_all(state, begun, now_s)
    state = replace(state, cooling=replace(state.cooling, start=None))
    if swap := _hand_over(device, wish, state, offered, (now_s, target_c)):
        return act_all(state, swap, now_s)
    if not is_off(state.steady, state.cooling, excess_c):
        state = replace(state, over_since_s=None)
        return replace(state, steady=held(state.steady, state.cooling, target_c)), ()
    if not may_turn(state, now_s, direction) or (direction > 0 and state.sensed.is_slowed):
        return state, ()
    cooling, error = state.cooling, state.sensed.error_c or 0.0
    is_early = cooling.is_cautious and not is_climbing(cooling) and error <= 0.0
    if is_early and Knob.PACING in offered:
        offered = (Knob.PACING,)  # whether somebody else moves the limit shows first
    elif is_early and direction > 0:
        return state, ()  # full mode has just come down
    return _step(device, wish, state, offered, excess_c, now)


def relearn(state: GovernorState, known: Known) -> GovernorState:
    """Return the state that goes by what was learnt at a target that is new in this session."""
    cooling = replace(state.cooling, c_per_w=known.c_per_w, is_cautious=known.is_cautious)
    steady = replace(state.steady, is_held=False, was_held=False, first_w=None)
    return replace(state, cooling=cooling, steady=steady)


def _step(
    device: GovernedDevice,
    wish: Wish,
    state: GovernorState,
    offered: tuple[Knob, ...],
    excess_c: float,
    now: tuple[float, float],
) -> Decision:
    """Take one step as large as the error; none left = as near as it gets."""
    (now_s, target_c), direction = now, -1 if excess_c > 0 else 1
    rise_c = (state.cooling.c_per_w or 0.0) * (state.cooling.work_w or 0.0)
    share = max(DOWN_FRAC[0], abs(excess_c) / max(1.0, rise_c))
    if state.steady.was_held:
        share = min(DOWN_FRAC[1] if direction < 0 else UP_FRAC[1], AGAIN_GAIN * share)
    elif is_climbing(state.cooling) and direction > 0:
        share = min(CLIMB_FRAC, share)
    actions: tuple[Action, ...]
    if direction < 0:
        sensed = replace(state.sensed, power_w=state.cooling.work_w)
        actions = lower_far(device, state.knobs, offered, sensed, excess_c, min(FIRST_FRAC, share))
        error = sensed.error_c or 0.0
        state = count_over(state, error, now_s, nothing_left=not actions)
    else:
        state = replace(state, over_since_s=None)
        faster = raise_(device, wish, state.knobs, -excess_c, min(FIRST_FRAC, share))
        actions = () if faster is None else (faster,)
    if not actions:
        return replace(state, steady=held(state.steady, state.cooling, target_c)), ()
    return act_all(replace(state, steady=replace(state.steady, is_held=False)), actions, now_s)


def _is_free(device: GovernedDevice, wish: Wish, knobs: Knobs) -> bool:
    """Whether hardware is as it was found, but for the user's cap."""
    cap_w = capped_w(device, wish)
    is_at_cap = knobs.limit_w is None or knobs.limit_w == cap_w > (device.floor_w or 0.0)
    return is_at_cap and knobs.clock_mhz is None


def _hand_over(
    device: GovernedDevice,
    wish: Wish,
    state: GovernorState,
    offered: tuple[Knob, ...],
    now: tuple[float, float],
) -> tuple[Action, ...]:
    """Return the hardware's share of what pauses held back until now; empty = there is none."""
    (now_s, target_c), duty, work_w = now, state.knobs.duty, state.cooling.work_w
    carried = state.cooling.carried_w(target_c)
    is_free = is_climbing(state.cooling) and _is_free(device, wish, state.knobs)
    if not is_free or not may_turn(state, now_s, 1):
        return ()
    if offered == (Knob.PACING,) or duty >= 1.0 or work_w is None or carried is None:
        return ()
    share = 1.0 - min(carried, work_w * (1.0 + CLIMB_FRAC)) * duty / work_w
    sensed, reason = replace(state.sensed, power_w=work_w / duty), Reason(code="limit_for_pauses")
    actions = lower_far(device, Knobs(), offered, sensed, 0.0, share) if share > 0 else ()
    if not any(isinstance(a, SetDuty) for a in actions):
        actions = (*actions, SetDuty(duty=1.0, reason=reason))
    return tuple(replace(a, reason=reason) for a in actions)


def _begin(
    device: GovernedDevice,
    wish: Wish,
    state: GovernorState,
    offered: tuple[Knob, ...],
    target_c: float,
) -> tuple[Action, ...]:
    start, carried = state.cooling.start, state.cooling.carried_w(target_c)
    if start is None or carried is None or start.draw_w <= 0 or state.knobs.touched():
        return ()
    return begin(device, wish, offered, start.knobs, carried / start.draw_w)
