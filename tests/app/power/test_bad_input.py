"""Each mishap of the long list, on a simulated machine: what happens, and the sentence for it."""

import math

import msgspec
import pytest

from app.advice.text import render_power
from app.power.governor import settle
from app.power.records import Knob, Mode, Restore, SetPowerLimit, Wish
from tests.fakes.governed import Run
from tests.fakes.thermal_cards import RTX_3090
from tests.fakes.thermal_plant import Plant

replace = msgspec.structs.replace


def said(run: Run) -> str:
    """Return everything that the status line says."""
    last = [run.state.last] if run.state.last else []
    return " ".join(render_power(reason) for reason in (*run.state.notes, *last))


def warm(seconds: int = 1200) -> Run:
    """Return a laptop whose limit the governor has lowered."""
    run = Run(Plant()).go(seconds)
    assert run.state.knobs.limit_w is not None
    return run


def test_limit_refused() -> None:
    """Tried once, then paced; the reason is said."""
    run = Run(Plant())
    run.plant.settable = False
    run.go(600)
    run.state = settle(run.state, Knob.POWER_LIMIT, "refused_by_driver")
    assert run.state.knobs.duty < 1.0
    assert run.plant.written == []
    run.go(1)
    assert "The driver refuses to change this." in said(run)


def test_accepted_but_not_applied() -> None:
    """A success that the read-back denies is a failure."""
    run = Run(Plant())
    run.plant.applies = False
    run.go(600)
    assert len(run.plant.written) == 1
    assert "did not apply it" in said(run)


def test_reset_by_the_driver() -> None:
    """The limit is back at its default although we set another: not ours any more, not fought."""
    run = warm()
    n_written = len(run.plant.written)
    for _ in range(30):
        run.plant.limit_w = run.found_w
        run.go(1)
    assert len(run.plant.written) <= n_written + 1  # a turn that was due in that very second
    n_written = len(run.plant.written)
    run.go(600)
    assert "Another program or the firmware changed the power limit" in said(run)
    run.finish()
    assert run.plant.written[n_written:] == []
    assert run.plant.limit_w == run.found_w


def test_sensor_stuck() -> None:
    """The draw falls by two thirds and the temperature by nothing: nobody believes it."""
    run = Run(Plant(RTX_3090), Wish(mode=Mode.FULL)).go(300)
    run.break_reading = lambda r: replace(r, temp_c=60.0, power_w=110.0)
    run.go(300)
    assert run.plant.limit_w == run.found_w
    assert "does not follow the load" in said(run)


def test_sensor_jumping() -> None:
    """Sixty degrees up and down every second is no temperature; limits go back."""
    run = warm()
    run.break_reading = lambda r: replace(r, temp_c=(r.temp_c or 0) + 60 * (int(run.plant.t_s) % 2))
    run.go(120)
    actions = [a for m in run.moments[-120:] for a in m.actions]
    assert not any(isinstance(a, SetPowerLimit) for a in actions)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("speed", [math.nan, math.inf, -math.inf])
def test_a_speed_that_is_no_number_counts_as_none(mode: Mode, speed: float) -> None:
    """A figure that nothing can mean is left out: it neither ends the governor nor stays in it."""
    run = Run(Plant(), Wish(mode=mode), device=replace(Plant().device(), ceiling_w=None))
    run.go(60)
    run.break_reading = lambda r: replace(r, speed=speed)
    run.go(60)
    run.break_reading = lambda r: r
    run.go(600)
    assert "speed_falling" not in {note.code for note in run.state.notes}
    kept = (run.state.even.speed, run.state.steady.speed, run.state.trend.best)
    assert all(math.isfinite(value) for value in kept if value is not None)


def test_clock_going_backwards() -> None:
    """An hour back: the rate limit holds, nothing is restored for it, and it goes on as before."""
    run = warm(5400)
    n_written = len(run.plant.written)
    limit_w = run.state.knobs.limit_w
    run.plant.t_s -= 3600.0
    run.go(15)
    assert len(run.plant.written) == n_written
    assert run.state.knobs.limit_w == limit_w
    run.go(3600)
    assert abs(run.plant.die_c - 74.0) <= 3.0


def test_suspend_in_the_middle() -> None:
    """Eight hours asleep: what was set is given back first, then looked at anew."""
    run = warm()
    run.plant.t_s += 8 * 3600.0
    run.go(1)
    assert Restore in {type(a) for a in run.moments[-1].actions}
    assert not run.state.knobs.touched()
    assert "The machine slept" in said(run)


def test_lost_while_capped() -> None:
    """No orders to a device that is gone."""
    run = warm()
    n_written = len(run.plant.written)
    run.plant.lost = True
    run.go(60)
    assert len(run.plant.written) == n_written
    assert "The device is gone" in said(run)


def test_helper_killed() -> None:
    """Without its helper: no limits any more, pauses instead, and it is said."""
    run = warm()
    run.state = settle(run.state, Knob.POWER_LIMIT, "helper_gone")
    run.plant.settable = False
    run.plant.limit_w = run.found_w
    run.go(1800)
    assert run.state.knobs.duty < 1.0
    assert "The power helper has ended" in said(run)


@pytest.mark.parametrize("cap_w", [1.0, 1000.0])
def test_two_rigtunes_and_a_cap_of_the_first(cap_w: float) -> None:
    """The limit another RigTune holds is found, never exceeded, and left as it was found."""
    plant = Plant(RTX_3090)
    plant.limit_w = 250.0
    device = replace(plant.device(), ceiling_w=250.0)
    Run(plant, Wish(cap_w=cap_w), device=device).go(1800).finish()
    assert all(175.0 <= watts <= 250.0 for watts in plant.written)
    assert plant.limit_w == 250.0
