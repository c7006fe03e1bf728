"""Turning knobs: at most every 20 s, ever more slowly where it swings, and all undone again."""

import msgspec

from app.domain.sweep import Reason
from app.power.cooling import Start
from app.power.kept import Kept
from app.power.knobs import Knobs
from app.power.records import (
    Action,
    GovernedDevice,
    Knob,
    Restore,
    SetDuty,
    SetPowerLimit,
    Wish,
)
from app.power.state import GovernorState
from app.power.steps import capped_w
from app.power.trend import Trend

DOWN_WAIT_S, UP_WAIT_S = 20.0, 30.0
CALM_S = 600.0
UNREACHABLE_C = 2.5
"""What is promised is 3 °C; sensors in whole degrees may show half a degree less."""


replace = msgspec.structs.replace
Decision = tuple[GovernorState, tuple[Action, ...]]


def act(state: GovernorState, action: Action, now_s: float) -> Decision:
    """Return the state after ``action``, and the action."""
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
        # faster cannot make it slower, so a fall across a step up still counts
        trend=state.trend if direction > 0 else Trend(),
        cooling=state.cooling.turned(),
        steady=state.steady.turned(),
        even=state.even.turned(),
        last=action.reason,
    )
    return state, (action,)


def act_all(state: GovernorState, actions: tuple[Action, ...], now_s: float) -> Decision:
    """Return the state after ``actions``, which are one change of the machine, and them."""
    for action in actions:
        state, _ = act(state, action, now_s)
    return replace(state, cooling=replace(state.cooling, start=None)), actions


def may_turn(state: GovernorState, now_s: float, direction: int) -> bool:
    """Whether a turn is due; each reversal within ten minutes doubles the wait (to 16 times)."""
    if state.changed_s is None:
        return True
    wait_s = DOWN_WAIT_S if direction < 0 else UP_WAIT_S
    if state.direction * direction < 0:
        wait_s *= 2 ** min(4, max(0, state.reversals - 1))
    return now_s - state.changed_s >= wait_s


def give_back(state: GovernorState, knobs: tuple[Knob, ...], code: str, now_s: float) -> Decision:
    """Return what puts ``knobs`` back as they were found."""
    state = replace(state.rested(), kept=Kept())
    cooling, draw_w = state.cooling, state.cooling.work_w
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
    if state.steady.is_held and draw_w is not None:
        # What held it is begun with when the work goes on.
        cooling = replace(cooling, start=Start(knobs=state.knobs, draw_w=draw_w))
    state = replace(
        state,
        cooling=cooling.turned(),
        steady=replace(state.steady.turned(), is_held=False, was_held=False, is_needed=False),
    )
    return replace(state, knobs=left, changed_s=now_s, direction=0, last=reason), actions


def cap(device: GovernedDevice, wish: Wish) -> Action:
    """Return what sets the user's cap."""
    reason = Reason(code="capped", data={"watts": wish.cap_w})
    return SetPowerLimit(watts=capped_w(device, wish), reason=reason)


def above_cap(device: GovernedDevice, wish: Wish, knobs: Knobs, offered: tuple[Knob, ...]) -> bool:
    """Whether the limit in force is above the user's cap."""
    if wish.cap_w is None or Knob.POWER_LIMIT not in offered:
        return False
    return (knobs.limit_w or device.ceiling_w or 0.0) > capped_w(device, wish) + 0.5


def count_over(
    state: GovernorState, error_c: float, now_s: float, *, nothing_left: bool
) -> GovernorState:
    """Note since when it is too warm with nothing left to turn."""
    if not nothing_left or error_c <= UNREACHABLE_C:
        return replace(state, over_since_s=None)
    return replace(state, over_since_s=now_s if state.over_since_s is None else state.over_since_s)
