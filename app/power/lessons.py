"""What a cap sweep teaches of the cooler, so that a speed that lasts begins with it.

The sweep holds one draw after another until its temperature has settled: just what the governor
finds out in its first hour with a device.
"""

from app.power.caps import CapPoint
from app.power.capsweep import CapSample
from app.power.cooling import COLD_FRAC, SOAKED_FRAC, Cooling, Known, observe
from app.power.knobs import Knobs
from app.power.records import Knob
from app.power.sensing import usable

MARGIN = 1.04
"""The fan was still as fast as the limit before needed it, so a little too much is carried away."""


class Lessons:
    """Follows the samples of one cap sweep. Not thread-safe."""

    def __init__(self, idle_c: float | None) -> None:
        """Begin.

        Args:
            idle_c: Temperature before anything ran; ``None`` = not readable.
        """
        self._cooling = Cooling()
        self._t_s: float | None = None
        if idle_c is not None:
            self._cooling = observe(self._cooling, idle_c, None, 0.0, active=False)

    def see(self, sample: CapSample) -> None:
        """Take one more sample."""
        dt_s = 0.0 if self._t_s is None else max(0.0, sample.t_s - self._t_s)
        self._t_s = sample.t_s
        temp_c, power_w = usable(sample.temp_c), usable(sample.power_w)
        if temp_c is not None:
            self._cooling = observe(self._cooling, temp_c, power_w, dt_s, active=True)

    def known(self, point: CapPoint, knob: Knob, profile: str | None, at_s: float) -> Known | None:
        """Return what the limit (or pace) just measured has shown, ``None`` = nothing.

        Args:
            point: What it gave.
            knob: Whether ``cap_w`` is a limit or a share of the time.
            profile: The system's power profile.
            at_s: Seconds since 1970.
        """
        cooling, self._cooling = self._cooling, self._cooling.turned()
        fitted, draw_w = cooling.fitted(), usable(point.power_w)
        if fitted is None or cooling.room_c is None or draw_w is None or point.temp_c is None:
            return None
        soaked = min(1.0, cooling.soaked_frac)
        knobs = Knobs(duty=point.cap_w)
        if knob is Knob.POWER_LIMIT:
            knobs = Knobs(limit_w=min(point.cap_w, draw_w))  # a limit above the draw does nothing
        return Known(
            target_c=point.temp_c,
            c_per_w=MARGIN * fitted * (1.0 + COLD_FRAC * (1.0 - soaked)),
            room_c=cooling.room_c,
            soak_w=cooling.soak_w,
            at_s=at_s,
            profile=profile,
            knobs=knobs,
            # what the firmware held back was not held by the knob
            draw_w=None if point.throttled else draw_w,
            is_cautious=soaked < SOAKED_FRAC,
        )
