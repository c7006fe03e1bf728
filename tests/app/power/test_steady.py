"""A speed that lasts, on simulated machines: flat from the start, and honest where it cannot be."""

import random
from itertools import pairwise

import msgspec
import pytest

from app.power.cooling import Cooling, Known
from app.power.knobs import Knobs
from app.power.records import GovernedDevice, Knob, Mode, SetDuty, SetPowerLimit, Wish
from app.power.sensing import Sensed
from app.power.steady import Steady, adopt, follow_speed
from app.power.steps import begin
from app.power.targets import targets
from tests.fakes.governed import Run
from tests.fakes.thermal_cards import (
    CARDS,
    LAPTOP_3060,
    LAPTOP_4060,
    LAPTOP_4080,
    RTX_3090,
    RTX_6000_PRO,
    Card,
    unseen_card,
)
from tests.fakes.thermal_plant import Plant, Work

replace = msgspec.structs.replace
PACED = GovernedDevice(key="gpu", slowdown_c=83.0)


def codes(run: Run) -> set[str]:
    return {note.code for note in run.state.notes}


def said(run: Run, seconds: int) -> set[str]:
    """Let time pass and return everything that was noted meanwhile."""
    found: set[str] = set()
    for _ in range(seconds // 60):
        found |= codes(run.go(60))
    return found


@pytest.mark.parametrize("seed", range(8800, 8808))
def test_a_cooler_never_seen_before_is_steady(seed: int) -> None:
    """Any cooler, any two rooms of 15 to 33 °C, a day that warms or cools it by up to 3 °C."""
    dice = random.Random(seed)
    card = unseen_card(dice)
    device = replace(PACED, slowdown_c=card.slowdown_c) if seed % 2 else None
    wish = Wish(mode=dice.choice([Mode.BALANCED, Mode.QUIET]))
    earlier = Run(Plant(card, dice.uniform(15, 33)), wish, device=device).go(2 * 3600)
    assert earlier.drift_frac() <= 0.05
    run = Run(Plant(card, dice.uniform(15, 33)), wish, device=device, known=earlier.learnt())
    warming_c = dice.uniform(-3.0, 3.0)
    for _ in range(4 * 60):
        run.plant.ambient_c += warming_c / (4 * 60)
        run.go(60)
    assert run.drift_frac() <= 0.05
    assert len(run.changes()) <= 10
    assert all(b.t_s - a.t_s >= 20 for a, b in pairwise(run.changes()))
    target_c, _ = targets(run.device, wish, run.plant.reading())
    warm = [m.die_c for m in run.moments[-600:]]
    assert sum(warm) / len(warm) <= target_c + 3.0


def test_the_first_session_says_that_it_learns_and_then_what_it_costs() -> None:
    """Low until it is learnt, then steady: the share told is the share that is measured."""
    run = Run(Plant(LAPTOP_4060), device=PACED)
    assert "cooler_unknown" in said(run, 60)
    run.go(2 * 3600)
    steady = next(note for note in run.state.notes if note.code == "steady")
    free = Run(Plant(LAPTOP_4060), is_governed=False).go(60)
    end = len(run.moments)
    pct = 100 * free.ms_per_token(0, 60) / run.ms_per_token(end - 600, end)
    assert steady.data["pct"] == pytest.approx(pct, abs=2)
    assert "cooler_unknown" not in codes(run)


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
@pytest.mark.parametrize("knob", ["limit", "clocks", "pacing"])
@pytest.mark.parametrize("mode", [Mode.BALANCED, Mode.QUIET])
def test_the_first_session_never_slows_down(card: Card, knob: str, mode: Mode) -> None:
    """Nothing learnt yet: it begins low and comes up, with few changes, and never runs hot."""
    device = Plant(card).device()
    if knob != "limit":
        device = replace(PACED, slowdown_c=card.slowdown_c)
    if knob == "clocks":
        top = card.f_max_mhz
        device = replace(device, clock_floor_mhz=0.3 * top, clock_ceiling_mhz=top)
    run = Run(Plant(card), Wish(mode=mode), device=device).go(2 * 3600)
    assert run.drift_frac() <= 0.05
    assert len(run.changes()) <= 25
    assert all(b.t_s - a.t_s >= 20 for a, b in pairwise(run.changes()))
    target_c, _ = targets(device, run.wish, run.plant.reading())
    assert max(m.die_c for m in run.moments) <= target_c + 3.0


@pytest.mark.parametrize("card", [RTX_6000_PRO, LAPTOP_4080, LAPTOP_3060], ids=lambda c: c.name)
def test_cards_that_it_was_not_made_with(card: Card) -> None:
    """600 W for many users, a fixed limit, a small laptop: steady in their first session."""
    device = Plant(card).device()
    if card.min_w >= card.default_w:  # no limit to set there, so clocks
        low_mhz, high_mhz = 0.3 * card.f_max_mhz, card.f_max_mhz
        device = replace(device, clock_floor_mhz=low_mhz, clock_ceiling_mhz=high_mhz)
        assert not device.offers(Knob.POWER_LIMIT)
    run = Run(Plant(card), device=device).go(5400)
    assert run.drift_frac() <= 0.05
    target_c, _ = targets(device, run.wish, run.plant.reading())
    assert max(m.die_c for m in run.moments) <= target_c + 3.0


def test_what_is_learnt_halfway_is_gone_on_with() -> None:
    """Ten minutes do not make a warm machine: the next session begins there and comes up."""
    earlier = Run(Plant(RTX_3090), device=PACED).go(600)
    known = earlier.learnt()
    assert known is not None
    assert known.is_cautious
    run = Run(Plant(RTX_3090), device=PACED, known=known).go(2 * 3600)
    assert run.drift_frac() <= 0.05
    assert run.state.knobs.duty > known.knobs.duty
    assert not run.state.cooling.is_cautious


@pytest.mark.parametrize("card", [LAPTOP_4060, RTX_3090], ids=lambda c: c.name)
def test_pauses_between_answers_change_nothing(card: Card) -> None:
    """A user who reads for a minute after each answer gets every answer at the same speed."""

    def work(t: int) -> Work:
        return "idle" if t % 180 >= 120 else "prefill" if t % 180 < 3 else "decode"

    device = replace(PACED, slowdown_c=card.slowdown_c)
    known = Run(Plant(card), device=device).go(2 * 3600).learnt()
    run = Run(Plant(card), device=device, known=known, work=work).go(3 * 3600)
    assert abs(run.drift_frac()) <= 0.05
    assert len(run.changes()) <= 4


@pytest.mark.parametrize("rest", ["idle", "sleep"])
def test_after_a_rest_it_goes_on_where_it_was(rest: str) -> None:
    """A quarter of an hour without work or asleep: given back, and begun with again at once."""
    device = replace(PACED, clock_floor_mhz=675.0, clock_ceiling_mhz=2250.0)
    run = Run(Plant(LAPTOP_4060), device=device).go(2 * 3600)
    held = run.state.knobs
    if rest == "sleep":
        run.plant.t_s += 900.0
    run.work = lambda t: "idle" if t < 8200 and rest == "idle" else "decode"
    run.go(1000 if rest == "idle" else 2)
    assert not run.state.knobs.touched()
    run.go(120)
    assert run.state.knobs.clock_mhz == pytest.approx(held.clock_mhz, rel=0.06)
    assert len([m for m in run.changes() if m.t_s > 8200]) <= 3


@pytest.mark.parametrize("warmer_c", [8.0, 14.0])
def test_a_room_that_heats_up_is_said(warmer_c: float) -> None:
    """A much warmer room takes less heat: slower, still within 3 °C, and told why."""
    run = Run(Plant(LAPTOP_4060), device=PACED).go(2 * 3600)
    assert "cooling_worse" not in codes(run)
    run.plant.ambient_c += warmer_c
    run.go(3 * 3600)
    assert "cooling_worse" in codes(run)
    target_c, _ = targets(run.device, run.wish, run.plant.reading())
    assert abs(sum(m.die_c for m in run.moments[-600:]) / 600 - target_c) <= 3.0


def test_a_blocked_fan_is_said() -> None:
    """So with a fan that stops turning up."""
    known = Run(Plant(LAPTOP_4060)).go(2 * 3600).learnt()
    run = Run(Plant(LAPTOP_4060), known=known).go(2 * 3600)
    run.plant.fixed_fan = run.plant.fan_frac = 0.35
    assert {"cooling_worse", "target_unreachable"} & said(run, 2 * 3600)


def test_a_room_that_cools_down_is_used() -> None:
    """Opening a window gives speed back, and is no failure."""
    run = Run(Plant(LAPTOP_4060, 31.0), device=PACED).go(2 * 3600)
    before = run.ms_per_token(2 * 3600 - 600, 2 * 3600)
    run.plant.ambient_c = 20.0
    run.go(2 * 3600)
    assert run.ms_per_token(4 * 3600 - 600, 4 * 3600) < 0.9 * before
    assert "cooling_worse" not in codes(run)


def test_knowledge_from_another_machine_is_outgrown() -> None:
    """A figure far off (a new cooler, another case) is corrected by what is seen."""
    wrong = Known(target_c=74.0, c_per_w=0.3, room_c=23.0)
    run = Run(Plant(LAPTOP_4060), device=PACED, known=wrong).go(2 * 3600)
    target_c, _ = targets(run.device, run.wish, run.plant.reading())
    assert abs(run.plant.die_c - target_c) <= 3.0


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
@pytest.mark.parametrize("is_paced", [True, False])
def test_what_balanced_mode_taught_holds_quiet_mode(card: Card, is_paced: bool) -> None:
    """The fan turns less at the cooler target: begun low and come up, never slowed down."""
    device = replace(PACED, slowdown_c=card.slowdown_c) if is_paced else None
    known = Run(Plant(card, 22.0), device=device).go(2 * 3600).learnt()
    run = Run(Plant(card), Wish(mode=Mode.QUIET), device=device, known=known).go(2 * 3600)
    assert run.drift_frac() <= 0.05


def test_what_a_warm_device_taught_holds_the_day_after() -> None:
    """Right after a search no room is to be seen; the next morning's cold start is steady still."""
    warm = Plant(LAPTOP_4060, 22.0)
    for _ in range(900):
        warm.advance()
    known = Run(warm, device=PACED).go(2 * 3600).learnt()
    run = Run(Plant(LAPTOP_4060, 22.0), device=PACED, known=known).go(2 * 3600)
    assert run.drift_frac() <= 0.05


def test_a_knob_that_is_gone_is_not_begun_with() -> None:
    """Without the helper this time, an earlier limit says nothing: the pace is found anew."""
    device = Plant(LAPTOP_4060).device()
    limit_only, paced = Knobs(limit_w=64.0), Knobs(duty=0.6)
    assert begin(device, Wish(), (Knob.PACING,), limit_only, 1.0) == ()
    assert begin(device, Wish(), (Knob.POWER_LIMIT, Knob.PACING), paced, 1.0) == ()
    actions = begin(
        device, Wish(), (Knob.POWER_LIMIT, Knob.PACING), replace(limit_only, duty=0.8), 0.9
    )
    assert [a.watts for a in actions if isinstance(a, SetPowerLimit)] == [64.0]
    assert [a.duty for a in actions if isinstance(a, SetDuty)] == [0.72]


def test_a_cooler_is_not_judged_while_it_warms_up() -> None:
    """Too early, a figure that says "better" is not taken over; a warm one that is too hot is."""
    cooling = Cooling(room_c=20.0, c_per_w=0.5, seen_s=600.0, work_w=100.0, work_s=100.0)
    better = replace(cooling, sums=((1.0, 0.4, 0.16),) * 8)
    worse = replace(cooling, sums=((1.0, 0.6, 0.36),) * 8)
    cool, hot = Sensed(core_c=60.0, error_c=-14.0), Sensed(core_c=76.0, error_c=2.0)
    assert adopt(better, Steady(), cool, 74.0, None).c_per_w == 0.5
    assert adopt(worse, Steady(), cool, 74.0, None).c_per_w == 0.5
    assert adopt(worse, Steady(), hot, 74.0, None).c_per_w == pytest.approx(0.6)


def test_without_hardware_held_back_the_burst_is_what_is_seen() -> None:
    """Pauses are not in the speed, so a paced device still shows what it could do."""
    steady = Steady(is_held=True)
    for _ in range(40):
        steady = follow_speed(steady, 30.0, Knobs(duty=0.5), 1.0)
    assert (steady.burst, steady.pct) == (30.0, 50)
