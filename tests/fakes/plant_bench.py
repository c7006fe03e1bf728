"""Measures power limits, or paces, on the simulated machine."""

from app.power.capsweep import CapSample
from app.power.records import Knob
from tests.fakes.thermal_plant import Plant


class PlantBench:
    """The workload of a cap sweep: three seconds of prefill a minute, decode else."""

    def __init__(self, plant: Plant, knob: Knob = Knob.POWER_LIMIT) -> None:
        self.plant, self.knob, self.duty = plant, knob, 1.0
        self.found_w = plant.limit_w

    def set_cap(self, watts: float) -> str | None:
        """Set a limit and read it back (or a pace)."""
        if self.knob is Knob.PACING:
            self.duty = watts
            return None
        if not self.plant.set_limit(watts):
            return "refused_by_driver"
        return None if abs(self.plant.enforced_w() - watts) < 1.0 else "not_applied"

    def sample(self) -> CapSample:
        """Let a second pass."""
        plant = self.plant
        is_prefill = int(plant.t_s) % 60 < 3
        plant.advance("prefill" if is_prefill else "decode", self.duty)
        reading = plant.reading()
        prefill = plant.card.prefill_tok_s * (reading.clock_mhz or 0.0) / plant.card.f_max_mhz
        return CapSample(
            t_s=plant.t_s,
            decode_tok_s=None if is_prefill else reading.speed,
            prefill_tok_s=prefill if is_prefill else None,
            power_w=reading.power_w,
            temp_c=reading.temp_c,
            fan_pct=100 * plant.fan_frac,
            throttle=reading.throttle or (),
        )

    def restore(self) -> None:
        """Put the limit (and the pace) back."""
        self.duty = 1.0
        self.plant.set_limit(self.found_w)
