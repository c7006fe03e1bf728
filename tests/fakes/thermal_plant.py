"""A simulated machine with heat: RC network, fan, firmware, power limit, speed. No real time.

``advance`` moves it by whole steps of a second; the same calls give the same numbers always.
"""

from collections.abc import Callable  # noqa: TC003
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from app.domain.machine import PowerSource
from app.power.records import GovernedDevice, Reading
from tests.fakes.thermal_cards import LAPTOP_4060, Card, Phase

Work = Literal["idle", "decode", "prefill"]

FAN_CURVE = ((40.0, 0.30), (60.0, 0.42), (72.0, 0.60), (84.0, 1.0))
FAN_SLEW_FRAC_S = 0.02
_SHARPNESS = 6


def watts(card: Card, phase: Phase, mhz: float) -> float:
    """Return the draw at core clock ``mhz``, W."""
    ratio = _volts(card, mhz) / _volts(card, card.f_max_mhz)
    return phase.static_w + phase.dynamic_w * mhz / card.f_max_mhz * ratio**2


def decode_speed(card: Card, mhz: float, bandwidth_frac: float = 1.0) -> float:
    """Return the decode speed, tok/s: bandwidth above the knee, clock below it."""
    bandwidth = card.decode_tok_s * bandwidth_frac
    compute = card.decode_tok_s * mhz / card.knee_mhz
    return float((bandwidth**-_SHARPNESS + compute**-_SHARPNESS) ** (-1 / _SHARPNESS))


@lru_cache(maxsize=65536)
def clock_under(card: Card, phase: Phase, limit_w: float) -> float:
    """Return the highest clock whose draw stays within the limit, MHz."""
    target = limit_w * card.regulated_frac
    if watts(card, phase, card.f_max_mhz) <= target:
        return card.f_max_mhz
    low, high = card.f_min_mhz, card.f_max_mhz
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if watts(card, phase, middle) <= target else (low, middle)
    return low


class Plant:
    """One machine. Attributes may be changed between steps to break it on purpose."""

    def __init__(
        self, card: Card = LAPTOP_4060, ambient_c: float = 23.0, *, fan_frac: float | None = None
    ) -> None:
        """Start cold.

        Args:
            card: GPU and cooler.
            ambient_c: Temperature of the room.
            fan_frac: A fan that always turns this fast; ``None`` = by temperature.
        """
        self.card = card
        self.ambient_c = ambient_c
        self.fixed_fan = fan_frac
        self.limit_w = card.default_w
        self.lock_mhz: float | None = None
        self.source = PowerSource.AC
        self.profile: str | None = "balanced"
        self.settable = True
        self.applies = True
        self.limit_readable = True
        self.memory_readable = True
        self.lost = False
        # enforced limit moved by the firmware (Dynamic Boost), as a function of time
        self.boost: Callable[[float], float] | None = None
        self.die_c = self.sink_c = self.body_c = self.memory_c = ambient_c
        self.fan_frac = fan_frac if fan_frac is not None else FAN_CURVE[0][1]
        self.bandwidth_frac = 1.0
        self.thermal_mhz = card.f_max_mhz
        self.t_s = 0.0
        self.tokens = 0.0
        self.energy_j = 0.0
        self.written: list[float] = []
        self._work: Work = "idle"
        self._mhz = card.f_min_mhz
        self.power_w = card.idle_w
        self._speed = 0.0
        self._memory_w = 0.0
        self._capped = False

    def device(self) -> GovernedDevice:
        """Return what a governor may do here: half the default is the lowest limit."""
        card = self.card
        return GovernedDevice(
            key=card.name,
            slowdown_c=card.slowdown_c,
            floor_w=max(card.min_w, card.default_w / 2),
            ceiling_w=card.default_w,
        )

    def set_limit(self, limit_w: float) -> bool:
        """Set the power limit as a driver would; ``False`` when it is refused."""
        if not self.settable or self.lost or not self.card.min_w <= limit_w <= self.card.max_w:
            return False
        self.written.append(limit_w)
        if self.applies:
            self.limit_w = limit_w
        return True

    def enforced_w(self) -> float:
        """Return the limit in force now, W."""
        moved = self.boost(self.t_s) if self.boost else self.limit_w
        return min(moved, self.card.battery_w) if self.source is PowerSource.BATTERY else moved

    def advance(self, work: Work = "decode", duty: float = 1.0, dt_s: float = 1.0) -> None:
        """Let ``dt_s`` seconds pass with this work at this duty cycle."""
        self._run(work, duty, dt_s)
        self._heat(dt_s)
        self._turn_fan(dt_s)
        self._protect(dt_s)
        self.t_s += dt_s

    def reading(self) -> Reading:
        """Return what the sensors of the machine say."""
        if self.lost:
            return Reading(lost=True)
        return Reading(
            temp_c=float(round(self.die_c)),
            temp_memory_c=float(round(self.memory_c)) if self.memory_readable else None,
            power_w=round(self.power_w, 1),
            power_limit_w=round(self.enforced_w(), 3) if self.limit_readable else None,
            clock_mhz=float(round(self._mhz)),
            throttle=self._reasons(),
            speed=self._speed if self._work == "decode" else None,
            source=self.source,
            profile=self.profile,
            active=self._work != "idle",
        )

    def _run(self, work: Work, duty: float, dt_s: float) -> None:
        card, self._work = self.card, work
        phase = card.prefill if work == "prefill" else card.decode
        limit = clock_under(card, phase, round(self.enforced_w(), 1))
        self._capped = limit < card.f_max_mhz
        self._mhz = max(card.f_min_mhz, min(limit, self.thermal_mhz, self.lock_mhz or limit))
        if work == "idle":
            self._mhz, duty = card.f_min_mhz, 0.0
        self._speed = decode_speed(card, self._mhz, self.bandwidth_frac)
        busy_w = watts(card, phase, self._mhz)
        self.power_w = card.idle_w + duty * (busy_w - card.idle_w)
        self._memory_w = card.memory_w * duty * (self._speed / card.decode_tok_s)
        self.energy_j += self.power_w * dt_s
        self.tokens += self._speed * duty * dt_s if work == "decode" else 0.0

    def _heat(self, dt_s: float) -> None:
        card = self.card
        for _ in range(max(1, round(dt_s * 2))):  # half a second is well below every time constant
            step = dt_s / max(1, round(dt_s * 2))
            to_sink = (self.die_c - self.sink_c) / card.r_die
            to_body = (self.sink_c - self.body_c) / self._sink_resistance()
            to_room = (self.body_c - self.ambient_c) / card.r_body
            self.die_c += step * (self.power_w - to_sink) / card.c_die
            self.sink_c += step * (to_sink - to_body) / card.c_sink
            self.body_c += step * (to_body - to_room) / card.c_body
            aim = self.sink_c + card.r_memory * self._memory_w
            self.memory_c += step * (aim - self.memory_c) / card.memory_tau_s

    def _sink_resistance(self) -> float:
        return self.card.r_sink / float(self.fan_frac**0.6)

    def _turn_fan(self, dt_s: float) -> None:
        if self.fixed_fan is not None:
            return
        aim, step = _interpolate(FAN_CURVE, self.die_c), FAN_SLEW_FRAC_S * dt_s
        self.fan_frac += min(step, max(-step, aim - self.fan_frac))

    def _protect(self, dt_s: float) -> None:
        card = self.card
        if self.die_c >= card.slowdown_c:
            down = self.thermal_mhz - 30.0 * dt_s
            self.thermal_mhz = max(card.f_max_mhz / 4, card.thermal_clock_mhz or down)
        elif self.die_c <= card.slowdown_c - card.thermal_release_c:
            up = card.f_max_mhz if card.thermal_clock_mhz else self.thermal_mhz + 15.0 * dt_s
            self.thermal_mhz = min(card.f_max_mhz, up)
        if self.memory_c >= card.memory_slowdown_c:
            self.bandwidth_frac = max(0.25, self.bandwidth_frac - 0.0008 * dt_s)
        elif self.memory_c <= card.memory_slowdown_c - 5:
            self.bandwidth_frac = min(1.0, self.bandwidth_frac + 0.0008 * dt_s)

    def _reasons(self) -> tuple[str, ...]:
        hot = self.thermal_mhz < self.card.f_max_mhz
        critical = self.die_c >= self.card.slowdown_c + 7
        flags = (("sw_power_cap", self._capped), ("sw_thermal", hot), ("hw_thermal", critical))
        return tuple(name for name, is_set in flags if is_set)


def _volts(card: Card, mhz: float) -> float:
    if mhz <= card.flat_mhz:
        return 1.0
    above = (mhz - card.flat_mhz) / (card.f_max_mhz - card.flat_mhz)
    return 1.0 + (card.v_max - 1.0) * above


def _interpolate(curve: tuple[tuple[float, float], ...], x: float) -> float:
    for (x0, y0), (x1, y1) in pairwise(curve):
        if x <= x1:
            return y0 + (y1 - y0) * max(0.0, x - x0) / (x1 - x0)
    return curve[-1][1]
