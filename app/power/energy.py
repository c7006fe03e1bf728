"""What an answer costs: joules per token, watt-hours, money."""

from app.domain.record import Record

GAP_MAX_S = 5.0
"""Draw is not guessed over longer gaps between readings."""

COVERED_MIN_FRAC = 0.9
J_PER_WH = 3600.0


class EnergyUse(Record, frozen=True, kw_only=True):
    """Energy over a stretch of time.

    Attributes:
        joules: What was seen.
        elapsed_s: Length of the stretch.
        covered_s: Part of it that was seen.
        counted_s: Part of it that the device's own counter covers; the rest is its draw.
    """

    joules: float = 0.0
    elapsed_s: float = 0.0
    covered_s: float = 0.0
    counted_s: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether enough was seen to speak of the whole (nine tenths)."""
        return self.elapsed_s > 0 and self.covered_s >= COVERED_MIN_FRAC * self.elapsed_s

    @property
    def source(self) -> str | None:
        """``counter``, ``draw`` (both are readings) or ``None`` when too little was seen."""
        if not self.is_complete:
            return None
        return "counter" if self.counted_s >= COVERED_MIN_FRAC * self.elapsed_s else "draw"

    def __add__(self, other: "EnergyUse") -> "EnergyUse":
        """Return the energy of two devices over the same stretch, or of two stretches."""
        return EnergyUse(
            joules=self.joules + other.joules,
            elapsed_s=self.elapsed_s + other.elapsed_s,
            covered_s=self.covered_s + other.covered_s,
            counted_s=self.counted_s + other.counted_s,
        )

    @property
    def watt_hours(self) -> float | None:
        """Energy in Wh; ``None`` when too little was seen."""
        return self.joules / J_PER_WH if self.is_complete else None

    def joules_per_token(self, n_tok: int) -> float | None:
        """Return joules per generated token; ``None`` when it cannot be said."""
        return self.joules / n_tok if self.is_complete and n_tok > 0 else None

    def cost_per_1000(self, n_tok: int, price_per_kwh: float) -> float | None:
        """Return the price of 1,000 tokens in the currency of the tariff."""
        joules = self.joules_per_token(n_tok)
        return None if joules is None else joules * 1000 / J_PER_WH / 1000 * price_per_kwh


class EnergyMeter:
    """Adds up readings: the device's own counter where it has one, else its draw."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._last: tuple[float, float | None, float | None] | None = None
        self._use = EnergyUse()

    @property
    def use(self) -> EnergyUse:
        """What was used so far."""
        return self._use

    def add(self, t_s: float, power_w: float | None, counter_j: float | None = None) -> None:
        """Take one reading.

        Args:
            t_s: Seconds on a steady clock; a step back starts a new stretch.
            power_w: Draw.
            counter_j: The device's energy counter; one that falls has wrapped or was reset.
        """
        last, self._last = self._last, (t_s, power_w, counter_j)
        if last is None or t_s <= last[0]:
            return
        dt_s = t_s - last[0]
        joules = counted = _counted(last[2], counter_j)
        if joules is None:
            joules = _integrated(last[1], power_w, dt_s)
        self._use = EnergyUse(
            joules=self._use.joules + (joules or 0.0),
            elapsed_s=self._use.elapsed_s + dt_s,
            covered_s=self._use.covered_s + (0.0 if joules is None else dt_s),
            counted_s=self._use.counted_s + (0.0 if counted is None else dt_s),
        )

    def rest(self) -> None:
        """Count nothing until the next reading, which starts a new stretch."""
        self._last = None


def _counted(before_j: float | None, now_j: float | None) -> float | None:
    # Some cards have a counter that stays 0 for ever.
    if before_j is None or now_j is None or now_j <= 0 or now_j < before_j:
        return None
    return now_j - before_j


def _integrated(before_w: float | None, now_w: float | None, dt_s: float) -> float | None:
    if before_w is None or now_w is None or before_w < 0 or now_w < 0 or dt_s > GAP_MAX_S:
        return None
    return (before_w + now_w) / 2 * dt_s
