"""What a cooler carries away, learnt from draw and temperature."""

import pytest

from app.power.cooling import Cooling, Known, observe, recall
from tests.fakes.thermal_cards import CARDS, Card
from tests.fakes.thermal_plant import Plant

KNOWN = Known(target_c=74.0, c_per_w=0.5, room_c=22.0, soak_w=80.0, at_s=1000.0)


def watch(plant: Plant, cooling: Cooling, seconds: int, duty: float = 1.0) -> Cooling:
    for _ in range(seconds):
        plant.advance("decode", duty)
        cooling = observe(cooling, plant.die_c, plant.power_w, 1.0, active=True)
    return cooling


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
def test_it_finds_what_the_machine_is_made_of(card: Card) -> None:
    """Warm through, the figure is the plant's own: rise over draw."""
    plant = Plant(card, 21.0)
    cooling = observe(Cooling(), 21.0, plant.power_w, 0.0, active=False)
    cooling = watch(plant, cooling, 5400, duty=0.6)
    true = (plant.die_c - 21.0) / plant.power_w
    assert cooling.fitted() == pytest.approx(true, rel=0.02)
    assert cooling.soaked_frac == pytest.approx(1.0, abs=0.05)


def test_nothing_is_said_too_early_or_without_a_draw() -> None:
    """A minute of work at least, and a draw that can be read."""
    plant = Plant()
    assert watch(plant, Cooling(), 30).fitted() is None
    cooling = Cooling()
    for _ in range(200):
        cooling = observe(cooling, 60.0, None, 1.0, active=True)
    assert cooling.fitted() is None
    assert cooling.carried_w(74.0) is None


def test_a_device_that_is_still_warm_says_nothing_of_the_room() -> None:
    """Within the hour the room of then counts, and what is left of the heat in the case."""
    soon = recall(KNOWN, 1000.0 + 600.0)
    assert soon.room_c == 22.0
    assert 40.0 < soon.soak_w < 60.0
    later = recall(KNOWN, 1000.0 + 7200.0)
    assert later.room_c is None
    assert observe(later, 30.0, 5.0, 0.0, active=False).room_c == 30.0
    assert recall(KNOWN, 0.0).room_c == 22.0  # a clock that went backwards


def test_the_room_is_the_coolest_seen_until_a_long_rest() -> None:
    """Half an hour without work shows the room anew, also a warmer one."""
    cooling = observe(Cooling(), 25.0, 5.0, 0.0, active=False)
    cooling = observe(cooling, 60.0, 90.0, 1.0, active=True)
    assert cooling.room_c == 25.0
    for _ in range(1802):
        cooling = observe(cooling, 31.0, 5.0, 1.0, active=False)
    assert cooling.room_c == 31.0


def test_a_room_as_warm_as_the_target_carries_nothing() -> None:
    """No figure comes of a division by next to nothing."""
    assert Cooling(room_c=70.0, c_per_w=0.5).carried_w(74.0) is None
    assert Cooling(room_c=24.0, c_per_w=0.5).carried_w(74.0) == pytest.approx(100.0)


def test_a_hot_start_is_not_taken_for_the_room() -> None:
    """After a search or another model the device is warm, and nothing was learnt yet."""
    assert observe(Cooling(), 71.0, 90.0, 0.0, active=False).room_c == 20.0
