"""A fall against the first ten minutes is measured as it is promised, and said."""

from collections.abc import Sequence

import pytest

from app.domain.machine import PowerSource
from app.power.kept import Kept, keep
from app.power.records import GovernedDevice, Mode, Wish
from tests.fakes.governed import Run
from tests.fakes.thermal_cards import LAPTOP_4060, RTX_5060_TI
from tests.fakes.thermal_plant import Plant


def after(speeds: Sequence[tuple[float | None, float]]) -> Kept:
    kept = Kept()
    for speed, duty in speeds:
        kept = keep(kept, speed, duty, 1.0)
    return kept


def test_a_fall_is_against_the_first_ten_minutes() -> None:
    """Pauses count, prefill does not, and nothing is said before ten more minutes are over."""
    assert after([(40.0, 1.0)] * 600 + [(20.0, 1.0)] * 599).lost_frac == 0.0
    paced = after([(40.0, 1.0)] * 600 + [(40.0, 0.8), (None, 0.8)] * 300)
    assert paced.lost_frac == pytest.approx(0.25)
    assert after([(None, 1.0)] * 1200).lost_frac == 0.0


def test_a_faster_end_is_no_fall() -> None:
    """A first session that comes up has lost nothing."""
    assert after([(20.0, 1.0)] * 600 + [(40.0, 1.0)] * 600).lost_frac == 0.0


def test_a_speed_that_was_not_kept_is_said_with_its_share() -> None:
    """The session that a room warming by 20 °C slows down says how much; a steady one nothing."""
    run = Run(Plant(LAPTOP_4060), Wish(mode=Mode.FULL)).go(2 * 3600)
    assert "slower" not in run.said
    run.plant.ambient_c += 20.0
    run.go(2 * 3600)
    said = next(note for note in run.state.notes if note.code == "slower")
    assert said.data["pct"] == pytest.approx(100 * run.drift_frac(), abs=1.5)


def test_what_only_the_firmware_holds_is_said_as_well() -> None:
    """Known wrongly to keep its speed, a paced laptop slows down: not in silence."""
    device = GovernedDevice(key="gpu", slowdown_c=83.0)
    run = Run(Plant(LAPTOP_4060, 16.0), Wish(mode=Mode.FULL), device=device).go(3600)
    run.plant.ambient_c = 33.0
    run.go(3600)
    assert run.drift_frac() <= 0.05 or "slower" in run.said


def test_a_battery_is_no_fall_of_the_cooler() -> None:
    """With nothing turned as well: what the firmware allows on battery is another beginning."""
    device = GovernedDevice(key="gpu", slowdown_c=85.0)
    run = Run(Plant(RTX_5060_TI, 15.0), Wish(mode=Mode.FULL), device=device).go(700)
    assert not run.state.knobs.touched()
    run.plant.source = PowerSource.BATTERY
    run.go(1900)
    assert "slower" not in run.said
