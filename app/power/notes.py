"""What the user should know now, as codes with data."""

from app.domain.machine import PowerSource
from app.domain.sweep import Reason
from app.power.kept import FALL_FRAC
from app.power.records import THERMAL, GovernedDevice, Reading, Wish
from app.power.sensing import usable
from app.power.state import GovernorState
from app.power.steady import WORSE_FRAC
from app.power.targets import ASSUMED_SLOWDOWN_C, paces, targets
from app.power.turning import UNREACHABLE_C

UNREACHABLE_S = 180.0
"""How long it must be too warm with nothing left to turn before that is said."""


def notes_of(
    device: GovernedDevice, wish: Wish, state: GovernorState, reading: Reading, target_c: float
) -> tuple[Reason, ...]:
    """Return the notes for the status line.

    Args:
        device: What may be done.
        wish: What the user asked for.
        state: After the reading.
        reading: The machine now.
        target_c: Target temperature of the core.
    """
    sensed = state.sensed
    withheld = (
        Reason(code=why, data={"knob": str(knob)}) for knob, why in state.watch.withheld.items()
    )
    over = _over(device, wish, state, reading, target_c)
    assumed = Reason(code="slowdown_assumed", data={"assumed_c": ASSUMED_SLOWDOWN_C})
    sensor = "temperature_stuck" if sensed.is_stuck else "temperature_lost"
    flags = (
        (sensed.is_blind and sensed.was_seen, Reason(code=sensor)),
        (sensed.is_blind and not sensed.was_seen, Reason(code="no_temperature")),
        (sensed.memory_c is None, Reason(code="memory_temperature_not_readable")),
        (_memory_decides(device, wish, state, reading), Reason(code="memory_decides")),
        (usable(device.slowdown_c) is None, assumed),
        (reading.source is PowerSource.BATTERY, Reason(code="on_battery")),
    )
    alarm = () if state.alarm is None else (state.alarm,)
    lasting = (*_even(state), *_lasting(wish, state, reading, target_c), *_slower(state))
    return (*(note for is_set, note in flags if is_set), *lasting, *over, *withheld, *alarm)


def _memory_decides(
    device: GovernedDevice, wish: Wish, state: GovernorState, reading: Reading
) -> bool:
    """Whether the core is kept well below its target for the memory's sake."""
    sensed, (core_c, memory_c) = state.sensed, targets(device, wish, reading)
    if sensed.core_c is None or sensed.memory_c is None or not state.knobs.touched():
        return False
    return sensed.memory_c - memory_c > sensed.core_c - core_c + UNREACHABLE_C


def _even(state: GovernorState) -> tuple[Reason, ...]:
    """What full mode holds back of the beginning."""
    even = state.even
    if not even.is_holding(state.knobs) or not even.aim or not even.burst:
        return ()
    return (Reason(code="even", data={"pct": round(100 * even.aim / even.burst)}),)


def _lasting(
    wish: Wish, state: GovernorState, reading: Reading, target_c: float
) -> tuple[Reason, ...]:
    """What holding a speed that lasts costs, and why it could not be held."""
    cooling, steady, is_paced = state.cooling, state.steady, paces(wish, reading)
    if state.sensed.is_blind or not (is_paced or steady.is_needed):
        return ()
    if cooling.c_per_w is None or cooling.is_cautious:
        # Full mode does not begin low.
        is_said = is_paced and cooling.work_w is not None
        return (Reason(code="cooler_unknown"),) if is_said else ()
    notes = []
    if steady.pct is not None and steady.pct < 100:
        notes.append(Reason(code="steady", data={"pct": steady.pct}))
    carried = cooling.carried_w(target_c)
    if steady.first_w is None or state.shift_c:
        return tuple(notes)
    if carried is None or carried < steady.first_w * (1.0 - WORSE_FRAC):
        # Whole steps of 5 %, so that this is news only when it is.
        lost = 1.0 - (carried or 0.0) / steady.first_w
        data: dict[str, str | int | float | None] = {
            "pct": 5 * int(lost / 0.05),
            "first_w": round(steady.first_w),
        }
        notes.append(Reason(code="cooling_worse", data=data))
    return tuple(notes)


def _slower(state: GovernorState) -> tuple[Reason, ...]:
    """A fall that was promised not to be, in whole per cent, so that it is news only when it is."""
    lost = state.kept.lost_frac
    if lost <= FALL_FRAC:
        return ()
    return (Reason(code="slower", data={"pct": round(100 * lost)}),)


def _over(
    device: GovernedDevice, wish: Wish, state: GovernorState, reading: Reading, target_c: float
) -> tuple[Reason, ...]:
    """Too warm with nothing left to turn; in full mode, which does not pace, that is no failure."""
    since_s, core_c = state.over_since_s, state.sensed.core_c
    temp_c = None if core_c is None else round(core_c, 1)
    is_long = since_s is not None and state.t_s is not None and state.t_s - since_s >= UNREACHABLE_S
    if not paces(wish, reading):
        if not is_long and not THERMAL & set(reading.throttle or ()):
            return ()
        slowdown_c = usable(device.slowdown_c) or temp_c
        return (Reason(code="left_to_firmware", data={"temp_c": slowdown_c}),)
    if not is_long:
        return ()
    data: dict[str, str | int | float | None] = {
        "temp_c": temp_c,
        "target_c": round(target_c, 1),
        "duty": state.knobs.duty,
        "limit_w": state.knobs.limit_w,
    }
    return (Reason(code="target_unreachable", data=data),)
