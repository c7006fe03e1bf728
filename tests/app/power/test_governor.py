"""The governor on simulated machines: bounds, convergence, calm, and who it gives way to."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.domain.machine import PowerSource
from app.power.governor import govern
from app.power.records import (
    Forget,
    GovernedDevice,
    Knob,
    LockClocks,
    Mode,
    Reading,
    Restore,
    SetDuty,
    SetPowerLimit,
    Wish,
)
from app.power.state import GovernorState
from app.power.targets import targets
from app.power.turning import CALM_S
from tests.fakes.governed import Run, best_constant_ms
from tests.fakes.thermal_cards import (
    CARDS,
    LAPTOP_3060,
    LAPTOP_4060,
    RTX_3090,
    RTX_5060_TI,
    Card,
    Phase,
)
from tests.fakes.thermal_plant import Plant

replace = msgspec.structs.replace
CLOCKS_ONLY = {"clock_floor_mhz": 600.0, "clock_ceiling_mhz": 2600.0}


def codes(run: Run) -> set[str]:
    return {note.code for note in run.state.notes}


def hardware_turns(run: Run) -> list[int]:
    """Return the seconds (counted, not read from the clock) in which hardware was turned."""
    hardware = (SetPowerLimit, LockClocks)
    return [
        second
        for second, moment in enumerate(run.moments)
        if any(isinstance(a, hardware) for a in moment.actions)
    ]


def is_settled(run: Run) -> bool:
    """Within 3 °C of the target, or cooler with nothing held back, or it says why not."""
    target, _ = targets(run.device, run.wish, run.plant.reading())
    late = [m.die_c for m in run.moments[-600:]]
    mean = sum(late) / len(late)
    if abs(mean - target) <= 3.0 or {"target_unreachable", "left_to_firmware"} & codes(run):
        return True
    return mean < target and not run.state.knobs.touched()


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("knobs", ["limit", "clocks", "pacing"])
def test_temperature_settles_at_the_target(card: Card, mode: Mode, knobs: str) -> None:
    """Whatever knob there is, the target is kept within 3 °C, or the governor says it cannot."""
    plant = Plant(card, 25.0)
    device = plant.device()
    if knobs != "limit":
        device = GovernedDevice(key="gpu", slowdown_c=card.slowdown_c)
    if knobs == "clocks":
        device = replace(device, **CLOCKS_ONLY)
    run = Run(plant, Wish(mode=mode), device=device).go(5400)
    assert is_settled(run)
    assert len([m for m in run.changes() if m.t_s > 3600]) <= 3


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
def test_eight_hours_keep_their_speed(card: Card) -> None:
    """Eight simulated hours drift by no more than 5 %, and by less than without a governor."""
    governed = Run(Plant(card)).go(8 * 3600)
    free = Run(Plant(card), is_governed=False).go(8 * 3600)
    assert governed.drift_frac() <= 0.05
    if free.drift_frac() > 0.05:
        assert governed.drift_frac() < free.drift_frac()
    assert max(m.die_c for m in governed.moments) < card.slowdown_c


def only(card: Card, knob: Knob) -> GovernedDevice | None:
    """Return a device on which nothing but ``knob`` and pacing can be turned."""
    if knob is Knob.POWER_LIMIT:
        return None
    device = GovernedDevice(key="gpu", slowdown_c=card.slowdown_c)
    if knob is Knob.PACING:
        return device
    low_mhz = 0.3 * card.f_max_mhz
    return replace(device, clock_floor_mhz=low_mhz, clock_ceiling_mhz=card.f_max_mhz)


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
@pytest.mark.parametrize("knob", Knob)
def test_what_was_learnt_keeps_eight_hours_steady(card: Card, knob: Knob) -> None:
    """With any knob, and in a warmer room: a device that was used before drifts by 5 % at most."""
    earlier = Run(Plant(card, 22.0), device=only(card, knob)).go(2 * 3600)
    run = Run(Plant(card, 29.0), device=only(card, knob), known=earlier.learnt()).go(8 * 3600)
    assert run.drift_frac() <= 0.05
    assert is_settled(run)
    assert len(run.changes()) <= 10


@pytest.mark.parametrize("card", [RTX_3090, LAPTOP_4060], ids=lambda c: c.name)
def test_pacing_costs_no_more_than_the_machine_demands(card: Card) -> None:
    """Pauses give up a token per watt: near the best pace that keeps the temperature (2.5 °C)."""
    device = GovernedDevice(key="gpu", slowdown_c=card.slowdown_c)
    run = Run(Plant(card), device=device).go(3 * 3600)
    target, _ = targets(device, run.wish, run.plant.reading())
    best_ms = best_constant_ms(card, 23.0, Knob.PACING, target)
    assert run.ms_per_token(2 * 3600, 3 * 3600) <= 1.07 * best_ms
    free = Run(Plant(card), is_governed=False).go(3 * 3600)
    assert best_ms > 1.1 * free.ms_per_token(2 * 3600, 3 * 3600)


def test_full_mode_says_who_holds_the_temperature() -> None:
    """Too warm for its target with nothing to turn: the firmware does it, and that is said."""
    device = GovernedDevice(key="gpu", slowdown_c=LAPTOP_4060.slowdown_c)
    run = Run(Plant(LAPTOP_4060, 30.0), Wish(mode=Mode.FULL), device=device)
    assert any("left_to_firmware" in codes(run.go(1)) for _ in range(3600))


def test_the_ungoverned_laptop_drifts() -> None:
    """Without a governor the same laptop loses speed: the test above can fail."""
    free = Run(Plant(LAPTOP_4060), is_governed=False).go(3 * 3600)
    assert free.drift_frac() > 0.08


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_whatever_happens_the_bounds_hold_and_everything_is_restored(data: st.DataObject) -> None:
    """Random machines and mishaps: limits in range, a turn per 20 s, all put back in the end."""
    draw = data.draw
    plant = Plant(draw(st.sampled_from(CARDS)), draw(st.floats(10.0, 42.0)))
    plant.applies = draw(st.sampled_from([True, True, False]))
    plant.settable = draw(st.sampled_from([True, True, False]))
    target = draw(st.none() | st.floats(30.0, 110.0))
    cap = draw(st.none() | st.floats(1.0, 500.0))
    wish = Wish(mode=draw(st.sampled_from(Mode)), target_c=target, cap_w=cap)
    run = Run(plant, wish)
    mishaps = draw(st.lists(st.sampled_from(MISHAPS), min_size=1, max_size=4))
    for name in mishaps:
        run.go(draw(st.integers(1, 500)))
        apply_mishap(run, name)
    run.go(600).finish()
    low, high = run.device.floor_w or 0.0, run.device.ceiling_w or 0.0
    assert all(low <= watts <= high for watts in plant.written)
    assert all(b - a >= 20 for a, b in pairwise(hardware_turns(run)))
    assert not run.state.knobs.touched()
    assert plant.limit_w == run.found_w or "user_limit" in mishaps


MISHAPS = (
    "none",
    "battery",
    "mains",
    "quiet_profile",
    "user_limit",
    "boost",
    "no_temperature",
    "jumping",
    "back",
    "hot_room",
)


def apply_mishap(run: Run, name: str) -> None:
    plant = run.plant
    match name:
        case "battery":
            plant.source = PowerSource.BATTERY
        case "mains":
            plant.source = PowerSource.AC
        case "quiet_profile":
            plant.profile = "quiet"
        case "user_limit":
            plant.limit_w = plant.card.min_w + 1.0
        case "boost":
            plant.boost = lambda t: plant.card.default_w - 10.0 * (int(t / 40) % 2)
        case "no_temperature":
            run.break_reading = lambda r: replace(r, temp_c=None)
        case "jumping":
            run.break_reading = lambda r: replace(
                r, temp_c=(r.temp_c or 0) + 60 * (int(plant.t_s) % 2)
            )
        case "back":
            plant.t_s -= 100.0
        case "hot_room":
            plant.ambient_c += 15.0
        case _:
            run.break_reading = lambda r: r


@settings(max_examples=10, deadline=None)
@example(card=RTX_5060_TI, ambient=38.0, mode=Mode.QUIET, target=50.0)  # shows 53, is at 53.5 °C
@given(
    card=st.sampled_from(CARDS),
    ambient=st.floats(10.0, 40.0),
    mode=st.sampled_from(Mode),
    target=st.none() | st.floats(50.0, 80.0),
)
def test_any_room_and_any_target_settle(
    card: Card, ambient: float, mode: Mode, target: float | None
) -> None:
    """On a working machine every target is reached within an hour, or named out of reach."""
    run = Run(Plant(card, ambient), Wish(mode=mode, target_c=target)).go(5400)
    assert is_settled(run)
    assert len([m for m in run.changes() if m.t_s > 3600]) <= 6


def test_refused_limit_falls_back_to_pacing() -> None:
    """A laptop that refuses a limit (C01) is paced instead, and told so."""
    plant = Plant()
    plant.settable = False
    run = Run(plant).go(3600)
    assert plant.written == []
    assert run.state.watch.withheld == {Knob.POWER_LIMIT: "refused"}
    assert "refused" in codes(run)
    assert run.state.knobs.duty < 1.0
    assert is_settled(run)


def test_limit_accepted_but_not_applied_is_not_tried_again() -> None:
    """Success without effect is a failure: one attempt, then pacing."""
    plant = Plant()
    plant.applies = False
    run = Run(plant).go(3600)
    assert len(plant.written) == 1
    assert "not_applied" in codes(run)
    assert is_settled(run)


def test_limit_moved_by_the_user_is_left_alone() -> None:
    """Somebody else's limit stays, also at the end."""
    run = Run(Plant()).go(1200)
    assert run.state.knobs.limit_w is not None
    run.plant.limit_w = 40.0
    run.go(600).finish()
    assert run.plant.limit_w == 40.0
    assert run.state.watch.withheld == {Knob.POWER_LIMIT: "limit_changed_elsewhere"}


def test_a_limit_moved_just_before_a_step_is_not_overwritten() -> None:
    """While it is open whose limit it is, no step is taken; then what was found is put back."""
    run = Run(Plant(RTX_3090, 42.0), Wish(mode=Mode.FULL)).go(129)
    n_written = len(run.plant.written)
    run.plant.boost = lambda _t: 340.0  # a second before the next step is due
    run.go(600)
    assert run.plant.written[n_written:] == [run.found_w]
    assert run.state.watch.withheld == {Knob.POWER_LIMIT: "limit_changed_elsewhere"}
    assert run.finish().plant.limit_w == run.found_w


def test_moving_limit_is_never_touched() -> None:
    """Dynamic Boost moves the limit by itself: pacing only from then on."""
    plant = Plant()
    plant.boost = lambda t: 80.0 + 15.0 * (int(t / 25) % 2)
    run = Run(plant, Wish(mode=Mode.QUIET)).go(3600)
    assert plant.written == []
    assert "limit_moves" in codes(run)
    assert run.state.knobs.duty < 1.0


@pytest.mark.parametrize("key_w", [45.0, 60.0])
def test_a_makers_power_key_is_left_alone(key_w: float) -> None:
    """B10 by a key of the maker's: only the limit in force moves, no profile says so."""
    run = Run(Plant(LAPTOP_3060)).go(600)
    run.plant.boost = lambda _t: key_w
    n_written = len(run.plant.written)
    run.go(1800)
    assert len(run.plant.written) <= n_written + 1  # the way back to what was found
    assert {"limit_moves", "limit_changed_elsewhere"} & codes(run)
    assert run.plant.enforced_w() == key_w


def test_a_quiet_profile_in_the_middle_starts_over() -> None:
    """B10 by the system's profile: given back, and balanced becomes quiet."""
    run = Run(Plant(LAPTOP_3060)).go(600)
    run.plant.profile = "quiet"
    run.go(1)
    assert not run.state.knobs.touched_hardware()
    assert run.state.last is not None
    assert run.state.last.code == "situation_changed"
    assert is_settled(run.go(5400))
    assert run.plant.die_c < LAPTOP_3060.slowdown_c - 20.0


def test_battery_gives_the_limit_back() -> None:
    """On battery the firmware sets the limits; ours goes back and is not set again."""
    run = Run(Plant()).go(1200)
    run.plant.source = PowerSource.BATTERY
    n_written = len(run.plant.written)
    run.go(1200)
    assert run.plant.written[n_written:] == [run.found_w]
    assert "on_battery" in codes(run)


def test_a_reading_without_a_power_source_does_not_hide_the_battery() -> None:
    """Unplugged while the source could not be read for a second: ours goes back all the same."""
    run = Run(Plant()).go(1200)
    run.break_reading = lambda r: replace(r, source=PowerSource.UNKNOWN, profile=None)
    run.go(1)
    run.break_reading = lambda r: r
    run.plant.source = PowerSource.BATTERY
    run.go(2)
    assert not run.state.knobs.touched_hardware()
    assert run.plant.limit_w == run.found_w
    assert not run.state.watch.withheld
    run.wish = Wish(cap_w=80.0)
    n_written = len(run.plant.written)
    run.break_reading = lambda r: replace(r, source=PowerSource.UNKNOWN, profile=None)
    run.go(60)
    assert len(run.plant.written) == n_written


def test_a_profile_that_flaps_is_a_turn_per_20_s_at_most() -> None:
    """Given back and begun with again every few seconds is no steady speed."""
    known = Run(Plant(LAPTOP_4060, 22.0)).go(7200).learnt()
    run = Run(Plant(LAPTOP_4060, 22.0), known=known, work=lambda t: "decode").go(3600)
    for number in range(60):
        run.plant.profile = ("performance", "balanced")[number % 2]
        run.go(11)
    assert all(b - a >= 20 for a, b in pairwise(hardware_turns(run)))


def test_what_held_before_is_not_begun_with_above_the_cap() -> None:
    """A cap that the user gives, and a suspend right after it."""
    known = Run(Plant(RTX_3090, 22.0)).go(7200).learnt()
    run = Run(Plant(RTX_3090, 22.0), known=known).go(3600)
    assert run.state.knobs.limit_w is not None
    cap_w, n_written = run.state.knobs.limit_w - 40.0, len(run.plant.written)
    run.wish = Wish(cap_w=cap_w)
    run.plant.limit_w = run.found_w
    run.plant.t_s += 3600.0
    run.go(600)
    assert run.state.knobs.touched_hardware()
    assert all(w <= cap_w + 0.5 or w == run.found_w for w in run.plant.written[n_written:])


def test_a_cap_given_while_it_is_too_warm_is_set_first() -> None:
    """Steps against the heat do not stay above what the user wants, nor put it off."""
    run = Run(Plant(LAPTOP_4060, 38.0), Wish(mode=Mode.BALANCED))
    run.break_reading = lambda r: replace(r, power_w=None)  # only the temperature is followed
    run.go(90)
    cap_w, n_written = 71.0, len(run.plant.written)
    run.wish = Wish(mode=Mode.BALANCED, cap_w=cap_w)
    run.go(60)
    assert run.plant.written[n_written] == cap_w
    assert all(w <= cap_w for w in run.plant.written[n_written:])


def test_lost_temperature_gives_the_limit_back_and_works_half_the_time() -> None:
    """Without a temperature nothing is guessed."""
    run = Run(Plant()).go(1200)
    run.break_reading = lambda r: replace(r, temp_c=None)
    run.go(3)
    assert run.state.knobs.limit_w is not None
    run.go(60)
    assert run.plant.limit_w == run.found_w
    assert run.state.knobs.duty == 0.5
    assert "temperature_lost" in codes(run)


def test_stuck_sensor_counts_as_none() -> None:
    """A temperature that does not follow a large change of the draw is not believed."""
    run = Run(Plant(RTX_3090), Wish(mode=Mode.FULL)).go(300)
    run.break_reading = lambda r: replace(r, temp_c=60.0)
    run.go(120)
    assert not run.state.sensed.is_stuck
    run.break_reading = lambda r: replace(r, temp_c=60.0, power_w=120.0)
    run.go(300)
    assert "temperature_stuck" in codes(run)
    assert run.plant.limit_w == run.found_w


def test_one_wild_reading_changes_nothing() -> None:
    """A single impossible jump is bridged."""
    run = Run(Plant()).go(5400)
    n_changes = len(run.changes())
    run.break_reading = lambda r: replace(r, temp_c=120.0)
    run.go(1)
    run.break_reading = lambda r: r
    run.go(30)
    assert len(run.changes()) == n_changes


def test_suspend_starts_over() -> None:
    """After a gap in time nothing that was set is taken for granted."""
    run = Run(Plant()).go(1200)
    run.plant.limit_w = run.found_w  # driver and helper have put it back
    run.plant.t_s += 3600.0
    run.go(1)
    assert not run.state.knobs.touched()
    assert run.state.last is not None
    assert run.state.last.code == "resumed"
    assert "limit_changed_elsewhere" not in codes(run.go(3600))
    assert is_settled(run)


def test_lost_device_gets_no_orders() -> None:
    """A GPU that is gone ends everything once, without a write."""
    run = Run(Plant()).go(1200)
    run.plant.lost = True
    n_written = len(run.plant.written)
    run.go(60)
    gone = run.state.notes[0]
    actions = [a for m in run.moments[-60:] for a in m.actions]
    assert actions == [SetDuty(duty=1.0, reason=gone), Forget(reason=gone)]
    assert len(run.plant.written) == n_written
    assert codes(run) == {"device_lost"}


def test_emergency_paces_at_once() -> None:
    """The firmware's critical temperature slows our own work within a second."""
    device = Plant().device()
    state, _ = govern(device, Wish(), GovernorState(), Reading(temp_c=70.0, power_w=90.0), 1.0)
    hot = Reading(temp_c=95.0, power_w=90.0, throttle=("hw_thermal",))
    state, actions = govern(device, Wish(), state, hot, 2.0)
    assert [type(a) for a in actions] == [SetDuty]
    assert state.knobs.duty == 0.2


def test_cap_of_a_sweep_is_set_first_and_never_exceeded() -> None:
    """A chosen cap holds from the start and recovery stops at it."""
    run = Run(Plant(RTX_3090, 15.0), Wish(mode=Mode.FULL, cap_w=250.0)).go(1800)
    assert run.plant.written == [250.0]


def test_another_mode_underway_settles_anew() -> None:
    """Moving the target is no trend: no panic step, and it settles at the new one."""
    run = Run(Plant(RTX_3090), Wish(mode=Mode.FULL)).go(3600)
    run.wish = Wish(mode=Mode.BALANCED)
    run.go(60)
    assert abs(run.state.sensed.slope_c_s) < 0.1
    assert is_settled(run.go(3600))


@pytest.mark.parametrize("card", [RTX_3090, LAPTOP_4060], ids=lambda c: c.name)
@pytest.mark.parametrize("mode", Mode)
def test_pauses_are_not_followed(card: Card, mode: Mode) -> None:
    """Two minutes of work and one of reading, for hours, in a hot room: no change per answer."""
    run = Run(
        Plant(card, 35.0), Wish(mode=mode), work=lambda t: "idle" if t % 200 >= 120 else "decode"
    ).go(2 * 3600)
    assert len([m for m in run.changes() if m.t_s > 3600]) <= 6


def test_idle_gives_everything_back() -> None:
    """Ten minutes without work and the machine is as it was."""
    run = Run(Plant(), work=lambda t: "decode" if t < 1200 else "idle").go(1200)
    assert run.state.knobs.touched()
    run.go(700)
    assert not run.state.knobs.touched()
    assert run.plant.limit_w == run.found_w


@pytest.mark.parametrize("is_readable", [True, False])
def test_hot_memory_is_noticed_with_and_without_its_sensor(is_readable: bool) -> None:
    """Speed falls to a quarter at an unmoved core (B22): sensor or trend, the speed comes back."""
    card = replace(
        RTX_3090, r_memory=2.6, memory_w=55.0, memory_tau_s=240.0, decode_tok_s=20.0,
        decode=Phase(static_w=100.0, dynamic_w=130.0),
    )  # fmt: skip
    free = Run(Plant(card), is_governed=False, work=lambda t: "decode").go(3600)
    assert 1000 / free.ms_per_token(1140, 1200) < 6.0
    plant = Plant(card)
    plant.memory_readable = is_readable
    run = Run(plant, work=lambda t: "decode").go(3600)
    assert run.ms_per_token(3000, 3600) < 0.9 * free.ms_per_token(3000, 3600)
    assert run.plant.memory_c < card.memory_slowdown_c
    expected = {"memory_temperature_not_readable", "speed_falling"}
    assert ({"memory_decides"} if is_readable else expected) <= codes(run)


def test_unreachable_target_is_said() -> None:
    """In a room too hot for the target the governor says so, with everything turned down."""
    run = Run(Plant(LAPTOP_4060, 58.0), Wish(mode=Mode.QUIET)).go(3600)
    assert "target_unreachable" in codes(run)


@pytest.mark.parametrize("knob", [Knob.POWER_LIMIT, Knob.CLOCKS])
def test_a_firmware_that_never_lets_go_is_no_reason_to_wait(knob: Knob) -> None:
    """A fan that fails, and a firmware that slows down without a break, above the target."""
    card = replace(LAPTOP_4060, thermal_clock_mhz=None)
    known = Run(Plant(card, 22.0), device=only(card, knob)).go(7200).learnt()
    run = Run(Plant(card, 22.0), device=only(card, knob), known=known).go(3600)
    run.plant.fixed_fan = run.plant.fan_frac = 0.2
    run.go(3600)
    assert is_settled(run)


def test_reversals_slow_it_down() -> None:
    """A machine that swings by itself is followed ever more slowly, not chased."""
    device = Plant().device()
    state, n_turns = GovernorState(), 0
    for t in range(7200):
        temp = 82.0 if int(t / 60) % 2 else 60.0
        limit = state.knobs.limit_w or 115.0
        reading = Reading(temp_c=temp, power_w=90.0, power_limit_w=limit)
        state, actions = govern(device, Wish(), state, reading, float(t))
        n_turns += sum(isinstance(a, SetPowerLimit | Restore) for a in actions)
    assert n_turns <= 7200 / 60
    assert CALM_S == 600.0
