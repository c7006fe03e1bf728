"""Full mode without rights: no faster at first than what lasts, and no slower for it later."""

import random
from functools import cache
from itertools import pairwise

import msgspec
import pytest

from app.domain.machine import PowerSource
from app.power.cooling import Known, Lasting
from app.power.even import Even
from app.power.governor import settle
from app.power.records import GovernedDevice, Knob, Mode, SetDuty, Wish
from tests.fakes.governed import Run
from tests.fakes.thermal_cards import LAPTOP_4060, RTX_3090, RTX_5060_TI, Card, unseen_card
from tests.fakes.thermal_plant import Plant, Work

replace = msgspec.structs.replace
FULL = Wish(mode=Mode.FULL)
EIGHT_H = 8 * 3600


def paced(card: Card, ambient_c: float = 23.0, known: Known | None = None) -> Run:
    """Return a machine in full mode on which nothing can be set."""
    device = GovernedDevice(key="gpu", slowdown_c=card.slowdown_c)
    return Run(Plant(card, ambient_c), FULL, device=device, known=known)


def free(card: Card, ambient_c: float = 23.0) -> Run:
    return Run(Plant(card, ambient_c), is_governed=False)


@cache
def laptop_known() -> Known | None:
    """Return what two hours in a room of 22 °C teach of the laptop."""
    return paced(LAPTOP_4060, 22.0).go(2 * 3600).learnt()


def codes(run: Run) -> set[str]:
    return {note.code for note in run.state.notes}


@pytest.mark.parametrize("is_first", [True, False])
def test_full_mode_without_rights_is_steady_for_eight_hours(is_first: bool) -> None:
    """Drift stays within 5 %, and the speed that lasts is the firmware's own: nothing is lost."""
    run = paced(LAPTOP_4060, known=None if is_first else laptop_known()).go(EIGHT_H)
    alone = free(LAPTOP_4060).go(EIGHT_H)
    assert run.drift_frac() <= 0.05
    assert run.plant.tokens >= 0.99 * alone.plant.tokens
    last = (EIGHT_H - 3600, EIGHT_H)
    assert run.ms_per_token(*last) <= 1.005 * alone.ms_per_token(*last)
    assert run.state.knobs.duty == 1.0
    assert len(run.changes()) <= 15
    assert all(b.t_s - a.t_s >= 20 for a, b in pairwise(run.changes()))


@pytest.mark.parametrize("room_c", [18.0, 32.0])
@pytest.mark.parametrize("has_flags", [True, False])
def test_other_rooms_and_drivers_without_reasons(room_c: float, has_flags: bool) -> None:
    """What was learnt at 22 °C serves other rooms; a driver that names no reasons is read by °C."""
    run = paced(LAPTOP_4060, room_c, laptop_known())
    if not has_flags:
        run.break_reading = lambda r: replace(r, throttle=None)
    run.go(3 * 3600)
    assert run.drift_frac() <= 0.05
    assert free(LAPTOP_4060, room_c).go(3 * 3600).drift_frac() > 0.05
    assert run.state.knobs.duty == 1.0


@pytest.mark.parametrize("seed", [17, 27, 34, 37])
def test_a_laptop_never_seen_before_is_steady_from_its_second_session(seed: int) -> None:
    """Any cooler, any two rooms: known from one session, the next one keeps within 5 %."""
    dice = random.Random(seed)
    card, rooms = unseen_card(dice), (dice.uniform(15, 33), dice.uniform(15, 33))
    assert card.name == LAPTOP_4060.name
    earlier = paced(card, rooms[0]).go(5400)
    run = paced(card, rooms[1], earlier.learnt()).go(5400)
    assert run.drift_frac() <= 0.05
    last = (5400 - 1800, 5400)
    alone = free(card, rooms[1]).go(5400)
    assert run.ms_per_token(*last) <= 1.01 * alone.ms_per_token(*last)


@pytest.mark.parametrize("seed", [5, 30, 120])
def test_a_laptop_never_seen_before_is_steady_in_its_first_session(seed: int) -> None:
    """Deep cuts after a cool start: no more is given on top, and no pause outlasts its reason."""
    dice = random.Random(seed)
    card, room_c = unseen_card(dice), dice.uniform(15, 33)
    assert card.name == LAPTOP_4060.name
    run = paced(card, room_c).go(4200)
    assert run.drift_frac() <= 0.05
    assert run.state.knobs.duty == 1.0
    assert free(card, room_c).go(4200).drift_frac() > 0.05
    paces = [(m.t_s, a.duty) for m in run.changes() for a in m.actions if isinstance(a, SetDuty)]
    over = [duty for t_s, duty in paces if t_s > 640]
    assert all(after >= min(1.0, before + 0.03) - 0.001 for before, after in pairwise(over))


@pytest.mark.parametrize("seed", [56, 94])
def test_a_laptop_whose_case_warms_for_an_hour_is_steady_in_its_first_session(seed: int) -> None:
    """Its firmware steps in after half an hour or more: what the case will add is foreseen."""
    dice = random.Random(seed)
    card, room_c = unseen_card(dice), dice.uniform(15, 33)
    assert card.name == LAPTOP_4060.name
    alone = free(card, room_c).go(2 * 3600)
    assert alone.drift_frac() > 0.05
    run = paced(card, room_c).go(2 * 3600)
    assert run.drift_frac() <= 0.05
    assert run.plant.tokens >= 0.97 * alone.plant.tokens


def test_a_session_in_a_warmer_room_begins_no_faster_than_it_ends() -> None:
    """Known from a room of 27 °C, a weak cooler in one of 31 °C keeps within 5 %."""
    dice = random.Random(126)
    card, rooms = unseen_card(dice), (dice.uniform(15, 33), dice.uniform(15, 33))
    known = paced(card, rooms[0]).go(2 * 3600).learnt()
    assert paced(card, rooms[1], known).go(2 * 3600).drift_frac() <= 0.05


@pytest.mark.parametrize("seed", [910065, 910326, 910586])
def test_what_kept_its_speed_is_held_in_a_much_warmer_room(seed: int) -> None:
    """Nothing was held before, and the slowdown comes after half an hour: 5 to 8 % were lost."""
    dice = random.Random(seed)
    card, rooms = unseen_card(dice), (dice.uniform(15, 33), dice.uniform(15, 33))
    earlier = paced(card, rooms[0]).go(2 * 3600)
    assert earlier.changes() == []
    assert free(card, rooms[1]).go(2 * 3600).drift_frac() > 0.05
    assert paced(card, rooms[1], earlier.learnt()).go(2 * 3600).drift_frac() <= 0.05


def test_a_firmware_that_steps_down_gently_is_no_different() -> None:
    """Clocks that creep down in place of a jump: even as well."""
    card = replace(LAPTOP_4060, thermal_clock_mhz=None)
    run = paced(card, 26.0, paced(card, 22.0).go(2 * 3600).learnt()).go(3 * 3600)
    assert run.drift_frac() <= 0.05


def test_short_answers_are_not_held_back() -> None:
    """Work that ends before the device is warm runs at full speed, from the first session on."""

    def work(t: int) -> Work:
        return "decode" if t % 120 < 40 else "idle"

    run = paced(LAPTOP_4060)
    run.work = work
    run.go(2 * 3600)
    assert run.changes() == []
    again = paced(LAPTOP_4060, known=run.learnt())
    again.work = work
    assert again.go(3600).changes() == []


@pytest.mark.parametrize("card", [RTX_3090, RTX_5060_TI], ids=lambda c: c.name)
def test_a_device_that_keeps_its_speed_is_not_held_back(card: Card) -> None:
    """Where the cooler carries the draw, full mode is what it was without a governor."""
    earlier = paced(card, 22.0).go(2 * 3600)
    known = earlier.learnt()
    assert earlier.changes() == []
    assert paced(card, known=known).go(3600).changes() == []
    assert known is not None
    assert known.lasting is not None
    assert known.lasting.frac > 0.99


def test_a_device_that_comes_near_its_slowdown_late_is_left_alone() -> None:
    """After ten minutes there is no beginning to hold: a pause then is a fall that heat is not."""
    known = paced(RTX_3090, 22.0).go(2 * 3600).learnt()
    run = paced(RTX_3090, 28.0, known).go(2 * 3600)
    assert run.changes() == []
    assert run.drift_frac() <= 0.01


def test_what_is_held_back_is_said_with_the_share_it_is() -> None:
    """The status line tells the share of the first speed, as measured, and stops when it ends."""
    run = paced(LAPTOP_4060, known=laptop_known()).go(300)
    note = next(n for n in run.state.notes if n.code == "even")
    share = free(LAPTOP_4060).go(60).ms_per_token(0, 60) / run.ms_per_token(120, 300)
    assert note.data["pct"] == pytest.approx(100 * share, abs=1)
    run.go(3600)
    later = [codes(run.go(10)) for _ in range(30)]
    assert all("even" not in seen for seen in later)
    assert any("left_to_firmware" in seen for seen in later)


def test_the_firmwares_slowdown_is_no_hidden_heat() -> None:
    """A fall in speed that the device itself explains does not look like hot memory."""
    run, seen = paced(LAPTOP_4060, 30.0), set()
    for _ in range(120):
        seen |= codes(run.go(30))
    assert "speed_falling" not in seen
    assert run.state.shift_c == 0.0


def test_a_rest_begins_anew_with_what_lasted() -> None:
    """A quarter of an hour without work: cool again, and held from the first tokens on."""
    run = paced(LAPTOP_4060).go(2 * 3600)
    begin = int(run.plant.t_s)
    run.work = lambda t: "idle" if t < begin + 1500 else "decode"
    run.go(1500 + 20)
    pace = run.changes()[-1].actions[0]
    assert isinstance(pace, SetDuty)
    assert 0.8 < pace.duty < 0.95
    assert run.state.last is not None
    assert run.state.last.code == "even"


def test_a_critical_temperature_ends_the_holding() -> None:
    """The emergency pace comes first, and full speed returns as it cools down."""
    run = paced(LAPTOP_4060, known=laptop_known()).go(60)
    assert run.state.knobs.duty < 1.0
    run.break_reading = lambda r: replace(r, throttle=("hw_thermal",))
    run.go(1)
    assert run.state.knobs.duty == 0.2
    run.break_reading = lambda r: r
    run.go(3600)
    assert run.state.knobs.duty == 1.0


def test_a_lighter_model_is_not_held_for_a_heavier_one() -> None:
    """What lasted is known by the draw: a model that draws what the cooler carries is free."""
    known = laptop_known()
    assert known is not None
    assert known.lasting is not None
    assert known.lasting.frac < 0.9
    light = replace(LAPTOP_4060, decode=replace(LAPTOP_4060.decode, static_w=12.0, dynamic_w=45.0))
    run = paced(light, known=known)
    run.work = lambda _t: "decode"
    assert run.go(1800).changes() == []


def test_without_a_draw_nothing_is_held() -> None:
    """What lasted is known by the draw; one that cannot be read is not guessed."""
    known = Known(
        target_c=79.0, c_per_w=0.7, room_c=23.0, lasting=Lasting(frac=0.86, carried_frac=0.7)
    )
    run = paced(LAPTOP_4060, known=known)
    run.break_reading = lambda r: replace(r, power_w=None)
    assert run.go(120).changes() == []


def held_laptop() -> Run:
    """Return a laptop whose beginning is being held by what an earlier session saw."""
    run = paced(LAPTOP_4060, known=laptop_known()).go(60)
    assert run.state.even.is_holding(run.state.knobs)
    return run


@pytest.mark.parametrize(
    "mishap", ["clock", "sleep", "jump", "battery", "mode", "lost", "no_speed", "odd_speed"]
)
def test_mishaps_while_the_beginning_is_held(mishap: str) -> None:
    """Nothing hangs and nothing stays: within the hour the pauses are gone, or explained."""
    run = held_laptop()
    match mishap:
        case "clock":
            run.plant.t_s -= 3600.0
        case "sleep":
            run.plant.t_s += 8 * 3600.0
        case "jump":
            run.break_reading = lambda r: replace(
                r, temp_c=(r.temp_c or 0.0) + 60 * (int(run.plant.t_s) % 2)
            )
        case "battery":
            run.plant.source = PowerSource.BATTERY
        case "mode":
            run.wish = Wish(mode=Mode.QUIET)
        case "lost":
            run.plant.lost = True
        case "no_speed":
            run.break_reading = lambda r: replace(r, speed=None)
        case "odd_speed":
            run.break_reading = lambda r: replace(r, speed=[-1.0, 1e9][int(run.plant.t_s) % 2])
    run.go(30)
    run.break_reading = lambda r: r
    run.go(3600)
    turns = [b.t_s - a.t_s for a, b in pairwise(run.changes()) if b.t_s > a.t_s]
    assert all(gap >= 20 for gap in turns[1:])
    if mishap in {"battery", "mode"}:
        assert run.state.even == Even()
    else:
        assert run.state.knobs.duty == 1.0
    assert run.finish().state.knobs.touched() == ()


def test_a_helper_that_dies_in_full_mode_leaves_an_even_speed() -> None:
    """Its limit goes back; from then on the firmware holds the temperature, and that is said."""
    run = Run(Plant(LAPTOP_4060), FULL).go(3600)
    assert run.state.knobs.limit_w is not None
    run.state = settle(run.state, Knob.POWER_LIMIT, "helper_gone")
    run.plant.limit_w, run.plant.settable = run.found_w, False
    seen: set[str] = set()
    for _ in range(120):
        seen |= codes(run.go(30))
    assert {"helper_gone", "left_to_firmware"} <= seen
    assert run.state.knobs.duty == 1.0
