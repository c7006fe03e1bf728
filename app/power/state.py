"""Everything the governor remembers from one reading to the next."""

import msgspec

from app.domain.machine import PowerSource
from app.domain.record import Record
from app.domain.sweep import Reason
from app.power.cooling import Cooling
from app.power.even import Even
from app.power.kept import Kept
from app.power.knobs import Knobs
from app.power.ownership import Watch
from app.power.sensing import Sensed
from app.power.steady import Steady
from app.power.trend import Trend


class GovernorState(Record, frozen=True, kw_only=True):
    """Everything the governor remembers.

    Attributes:
        t_s: Time of the last reading.
        knobs: What we have set.
        sensed: Temperatures.
        trend: Decode speed.
        cooling: What the cooler carries away.
        steady: How the speed that lasts stands.
        even: How the beginning stands against what lasts, in full mode without rights.
        kept: How the speed stands against the first ten minutes.
        watch: Who owns the limit.
        changed_s: When a knob was last turned.
        direction: Of that turn: −1 cooler, +1 faster.
        reversals: Turns against the turn before, since the last calm ten minutes.
        shift_c: Degrees the target was lowered for heat that no sensor shows.
        n_alarms: How often it was lowered for that.
        alarm: The last fall in speed that was noticed.
        idle_since_s: Since when nothing runs.
        over_since_s: Since when it is too hot with nothing left to turn.
        source: Power source of the last reading.
        profile: Power profile of the last reading.
        notes: What the user should know now.
        last: Why the last action was taken.
    """

    t_s: float | None = None
    knobs: Knobs = Knobs()
    sensed: Sensed = Sensed()
    trend: Trend = Trend()
    cooling: Cooling = Cooling()
    steady: Steady = Steady()
    even: Even = Even()
    kept: Kept = Kept()
    watch: Watch = Watch()
    changed_s: float | None = None
    direction: int = 0
    reversals: int = 0
    shift_c: float = 0.0
    n_alarms: int = 0
    alarm: Reason | None = None
    idle_since_s: float | None = None
    over_since_s: float | None = None
    source: PowerSource = PowerSource.UNKNOWN
    profile: str | None = None
    notes: tuple[Reason, ...] = ()
    last: Reason | None = None

    def rested(self) -> "GovernorState":
        """Return this with the even speed of full mode to begin anew, by what lasted so far."""
        lasting = self.even.lasting or self.cooling.lasting
        cooling = msgspec.structs.replace(self.cooling, lasting=lasting)
        return msgspec.structs.replace(self, cooling=cooling, even=Even())
