"""A cap sweep teaches the cooler: the first session after it begins near what lasts."""

from pathlib import Path

import pytest

from app.power.caps import CapPoint, caps_to_try
from app.power.capsweep import CapSample, follow_caps
from app.power.known import Coolers
from app.power.lessons import Lessons
from app.power.protocol import Range
from app.power.records import GovernedDevice, Knob, Mode, Wish
from app.power.targets import targets
from tests.fakes.governed import Run
from tests.fakes.plant_bench import PlantBench
from tests.fakes.thermal_cards import CARDS, LAPTOP_4060, RTX_3090, Card
from tests.fakes.thermal_plant import Plant


def taught(folder: Path, plant: Plant, knob: Knob) -> Coolers:
    """Sweep a machine and return what was kept of its cooler."""
    card, coolers, lessons = plant.card, Coolers(folder), Lessons(round(plant.die_c))
    bench = PlantBench(plant, knob)
    values: tuple[float, ...] = (1.0, 0.75, 0.5)
    if knob is Knob.POWER_LIMIT:
        low = max(card.min_w, card.default_w / 2)
        values = caps_to_try(Range(low=low, high=card.default_w, now=card.default_w))
    for step in follow_caps(bench, values):
        if isinstance(step, CapSample):
            lessons.see(step)
        elif known := lessons.known(step, knob, "balanced", 0.0):
            coolers.keep("gpu", known, is_sure=False)
    return coolers


def session(card: Card, knob: Knob, mode: Mode, coolers: Coolers | None) -> Run:
    device = GovernedDevice(key="gpu", slowdown_c=card.slowdown_c)
    plant, wish = Plant(card), Wish(mode=mode)
    if knob is Knob.POWER_LIMIT:
        device = plant.device()
    target_c, _ = targets(device, wish, plant.reading())
    known = coolers.find("gpu", target_c, "balanced") if coolers else None
    return Run(plant, wish, device=device, known=known).go(5400)


def first_frac(run: Run) -> float:
    """Return the first ten minutes' speed as a share of the last ten's."""
    end = len(run.moments)
    return run.ms_per_token(end - 600, end) / run.ms_per_token(0, 600)


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
@pytest.mark.parametrize("knob", [Knob.POWER_LIMIT, Knob.PACING])
def test_after_a_sweep_the_first_session_begins_near_what_lasts(
    tmp_path: Path, card: Card, knob: Knob
) -> None:
    """Steady as ever, nearer to what lasts from the first tokens on, and turned less often."""
    coolers = taught(tmp_path, Plant(card, 22.0), knob)
    for mode in (Mode.BALANCED, Mode.QUIET):
        run, untaught = (session(card, knob, mode, known) for known in (coolers, None))
        assert run.drift_frac() <= 0.05
        assert first_frac(run) > first_frac(untaught)
        assert first_frac(run) > 0.8
        assert len(run.changes()) < len(untaught.changes())


def test_a_sweep_of_a_warm_device_teaches_nothing_too_fast(tmp_path: Path) -> None:
    """Right after a search the room is not to be seen: what is learnt is on the slow side."""
    plant = Plant(LAPTOP_4060, 22.0)
    for _ in range(1200):
        plant.advance()
    coolers = taught(tmp_path, plant, Knob.PACING)
    assert session(LAPTOP_4060, Knob.PACING, Mode.BALANCED, coolers).drift_frac() <= 0.05


def test_a_sweep_replaces_nothing_that_a_long_session_learnt(tmp_path: Path) -> None:
    """Minutes per limit are less sure than hours at one."""
    earlier = session(RTX_3090, Knob.POWER_LIMIT, Mode.BALANCED, None).go(3600).learnt()
    assert earlier is not None
    Coolers(tmp_path).keep("gpu", earlier, is_sure=True)
    taught(tmp_path, Plant(RTX_3090, 22.0), Knob.POWER_LIMIT)
    assert Coolers(tmp_path).find("gpu", earlier.target_c, "balanced") == earlier


def test_without_draw_or_temperature_nothing_is_learnt() -> None:
    """A device that tells neither has speeds per limit, and no cooler to know of."""
    for temp_c, power_w in ((None, 100.0), (60.0, None), (None, None)):
        lessons = Lessons(None)
        for t in range(300):
            lessons.see(CapSample(t_s=float(t), temp_c=temp_c, power_w=power_w))
        point = CapPoint(cap_w=100.0, temp_c=temp_c, power_w=power_w)
        assert lessons.known(point, Knob.POWER_LIMIT, None, 0.0) is None
