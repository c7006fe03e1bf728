"""What the user should know now, as codes with data."""

from app.domain.machine import PowerSource
from app.domain.sweep import Reason
from app.power.records import GovernedDevice, Reading
from app.power.sensing import usable
from app.power.state import GovernorState

UNREACHABLE_S = 180.0
"""How long it must be too warm with nothing left to turn before that is said."""


def notes_of(
    device: GovernedDevice, state: GovernorState, reading: Reading, target_c: float
) -> tuple[Reason, ...]:
    """Return the notes for the status line.

    Args:
        device: What may be done.
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
            code="target_unreachable",
            data={
                "temp_c": None if sensed.core_c is None else round(sensed.core_c, 1),
                "target_c": round(target_c, 1),
                "duty": state.knobs.duty,
                "limit_w": state.knobs.limit_w,
            },
        ),
    )
    sensor = "temperature_stuck" if sensed.is_stuck else "temperature_lost"
    flags = (
        (sensed.is_blind and sensed.was_seen, Reason(code=sensor)),
        (sensed.is_blind and not sensed.was_seen, Reason(code="no_temperature")),
        (sensed.memory_c is None, Reason(code="memory_temperature_not_readable")),
        (usable(device.slowdown_c) is None, Reason(code="slowdown_assumed")),
        (reading.source is PowerSource.BATTERY, Reason(code="on_battery")),
        unreachable,
    )
    alarm = () if state.alarm is None else (state.alarm,)
    return (*(note for is_set, note in flags if is_set), *withheld, *alarm)
