"""Energy: what was used, and when it cannot be said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.machine import PowerSource
from app.power.conditions import Conditions, why_not_comparable
from app.power.energy import EnergyMeter


def test_draw_is_integrated() -> None:
    """A hundred watts for an hour are 100 Wh; tokens and tariff give joules and money."""
    meter = EnergyMeter()
    for t in range(3601):
        meter.add(float(t), 100.0)
    use = meter.use
    assert use.watt_hours == pytest.approx(100.0)
    assert use.joules_per_token(36_000) == pytest.approx(10.0)
    assert use.cost_per_1000(36_000, 0.30) == pytest.approx(0.1 / 36 * 0.30)
    assert use.joules_per_token(0) is None


def test_counter_wins_over_draw_and_survives_a_wrap() -> None:
    """The device's counter counts; where it falls, the draw fills in; 0 for ever is no counter."""
    meter = EnergyMeter()
    meter.add(0.0, 100.0, 50.0)
    meter.add(1.0, 100.0, 80.0)
    assert meter.use.joules == 30.0
    meter.add(2.0, 100.0, 5.0)
    assert meter.use.joules == 130.0
    dead = EnergyMeter()
    dead.add(0.0, 100.0, 0.0)
    dead.add(1.0, 100.0, 0.0)
    assert dead.use.joules == 100.0


def test_gaps_are_not_guessed() -> None:
    """With a tenth or more unseen there is no figure."""
    meter = EnergyMeter()
    for t in (*range(60), *range(90, 120)):
        meter.add(float(t), 100.0)
    assert meter.use.covered_s < meter.use.elapsed_s
    assert meter.use.watt_hours is None
    blind = EnergyMeter()
    blind.add(0.0, None)
    blind.add(1.0, 100.0)
    assert blind.use.watt_hours is None


@given(st.lists(st.tuples(st.floats(0, 1e4), st.none() | st.floats(-10, 1e3)), max_size=30))
def test_energy_never_falls(readings: list[tuple[float, float | None]]) -> None:
    """Whatever the order of readings and the sign of the draw."""
    meter, before = EnergyMeter(), 0.0
    for t_s, watts in readings:
        meter.add(t_s, watts)
        assert meter.use.joules >= before
        assert meter.use.covered_s <= meter.use.elapsed_s
        before = meter.use.joules


def test_results_of_different_power_modes_are_not_compared() -> None:
    """Battery against mains, quiet against performance, 80 against 115 W (B10)."""
    base = Conditions(source=PowerSource.AC, profile="performance")
    cases = {
        "source_differs": Conditions(source=PowerSource.BATTERY, profile="performance"),
        "profile_differs": Conditions(source=PowerSource.AC, profile="quiet"),
    }
    for code, other in cases.items():
        for reason in (why_not_comparable(base, other), why_not_comparable(other, base)):
            assert reason is not None
            assert reason.code == code
    assert why_not_comparable(base, Conditions()) is None
