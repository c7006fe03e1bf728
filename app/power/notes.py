"""What the user should know now, as codes with data."""

from app.domain.machine import PowerSource
from app.domain.sweep import Reason
from app.power.records import GovernedDevice, Mode, Reading, Wish
from app.power.sensing import usable
from app.power.state import GovernorState
from app.power.targets import ASSUMED_SLOWDOWN_C, effective_mode

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
    over = state.over_since_s
    unreachable = (
        over is not None and state.t_s is not None and state.t_s - over >= UNREACHABLE_S,
        Reason(
            code=_why_over(wish, reading),
            data={
                "temp_c": None if sensed.core_c is None else round(sensed.core_c, 1),
                "target_c": round(target_c, 1),
                "duty": state.knobs.duty,
                "limit_w": state.knobs.limit_w,
            },
        ),
    )
    assumed = Reason(code="slowdown_assumed", data={"assumed_c": ASSUMED_SLOWDOWN_C})
    sensor = "temperature_stuck" if sensed.is_stuck else "temperature_lost"
    flags = (
        (sensed.is_blind and sensed.was_seen, Reason(code=sensor)),
        (sensed.is_blind and not sensed.was_seen, Reason(code="no_temperature")),
        (sensed.memory_c is None, Reason(code="memory_temperature_not_readable")),
        (
            usable(device.slowdown_c) is None,
            assumed,
        ),
        (reading.source is PowerSource.BATTERY, Reason(code="on_battery")),
        unreachable,
    )
    alarm = () if state.alarm is None else (state.alarm,)
    return (*(note for is_set, note in flags if is_set), *withheld, *alarm)


def _why_over(wish: Wish, reading: Reading) -> str:
    """Full mode does not pace, so there it is no failure that the firmware has to step in."""
    is_full = wish.target_c is None and effective_mode(wish.mode, reading) is Mode.FULL
    return "left_to_firmware" if is_full else "target_unreachable"
