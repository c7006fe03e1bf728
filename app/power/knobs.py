"""What has been turned, and what an action makes of it."""

import msgspec

from app.domain.record import Record
from app.power.records import Action, Knob, LockClocks, Restore, SetDuty, SetPowerLimit


class Knobs(Record, frozen=True, kw_only=True):
    """What we have set; ``None`` (and duty 1) = as found.

    Attributes:
        limit_w: Power limit.
        clock_mhz: Highest core clock.
        duty: Share of the time to work.
    """

    limit_w: float | None = None
    clock_mhz: float | None = None
    duty: float = 1.0

    def without(self, knob: Knob) -> "Knobs":
        """Return these with ``knob`` as it was found."""
        if knob is Knob.POWER_LIMIT:
            return msgspec.structs.replace(self, limit_w=None)
        if knob is Knob.CLOCKS:
            return msgspec.structs.replace(self, clock_mhz=None)
        return msgspec.structs.replace(self, duty=1.0)

    def touched_hardware(self) -> tuple[Knob, ...]:
        """Return the hardware knobs that are not as they were found."""
        hardware = ((Knob.POWER_LIMIT, self.limit_w), (Knob.CLOCKS, self.clock_mhz))
        return tuple(knob for knob, value in hardware if value is not None)

    def touched(self) -> tuple[Knob, ...]:
        """Return every knob that is not as it was found."""
        return (*self.touched_hardware(), *((Knob.PACING,) if self.duty < 1.0 else ()))

    def direction(self, action: Action) -> int:
        """Return −1 when ``action`` holds back more than these, else 1."""
        match action:
            case SetPowerLimit(watts=watts):
                return -1 if self.limit_w is None or watts < self.limit_w else 1
            case LockClocks(high_mhz=mhz):
                return -1 if self.clock_mhz is None or mhz < self.clock_mhz else 1
            case SetDuty(duty=duty):
                return -1 if duty < self.duty else 1
            case _:
                return 1

    def after(self, action: Action) -> "Knobs":
        """Return these after ``action``."""
        match action:
            case SetPowerLimit(watts=watts):
                return msgspec.structs.replace(self, limit_w=watts)
            case LockClocks(high_mhz=mhz):
                return msgspec.structs.replace(self, clock_mhz=mhz)
            case SetDuty(duty=duty):
                return msgspec.structs.replace(self, duty=duty)
            case Restore(knob=knob):
                return self.without(knob)
            case _:
                return Knobs()
