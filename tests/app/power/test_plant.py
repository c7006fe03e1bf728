"""The simulated machines say what was published of the real ones, and the same every time."""

import msgspec
import pytest

from app.domain.machine import PowerSource
from tests.fakes.thermal_cards import (
    LAPTOP_3060,
    LAPTOP_4060,
    LAPTOP_4080,
    RTX_3090,
    RTX_5060_TI,
    RTX_6000_PRO,
    Card,
)
from tests.fakes.thermal_plant import Plant, Work, clock_under, decode_speed


def at_limit(card: Card, watts: float) -> Plant:
    """Return a cool machine of this card, a few seconds into decode under this limit."""
    plant = Plant(card)
    assert plant.set_limit(watts)
    for _ in range(5):
        plant.advance("decode")
    return plant


def decode_at(card: Card, watts: float) -> float:
    return at_limit(card, watts).reading().speed or 0.0


@pytest.mark.parametrize(
    ("cap_w", "tok_s", "draw_w"), [(180, 81.2, 172.7), (162, 81.4, 159.3), (150, 80.4, 147.2)]
)
def test_5060_ti_of_case_b20(cap_w: float, tok_s: float, draw_w: float) -> None:
    """Each published row: speed within 1 %, draw within 1 %."""
    plant = at_limit(RTX_5060_TI, cap_w)
    assert plant.reading().speed == pytest.approx(tok_s, rel=0.01)
    assert plant.power_w == pytest.approx(draw_w, rel=0.01)


def test_5060_ti_refuses_less_than_its_minimum() -> None:
    """150 W is the least; a lower limit is refused, not moved up to it."""
    plant = Plant(RTX_5060_TI)
    assert not plant.set_limit(149.0)
    assert plant.limit_w == 180.0


def test_3090_of_case_b20() -> None:
    """280 of 350 W cost under 1 % of decode; below 200 W it collapses; compute pays at once."""
    full = decode_at(RTX_3090, 350.0)
    assert decode_at(RTX_3090, 280.0) > 0.99 * full
    assert decode_at(RTX_3090, 200.0) > 0.9 * full
    assert decode_at(RTX_3090, 150.0) < 0.65 * full
    clocks = [clock_under(RTX_3090, RTX_3090.prefill, w) for w in (300.0, 250.0)]
    assert clocks[1] / clocks[0] == pytest.approx(0.73, abs=0.01)


@pytest.mark.parametrize(
    ("cap_w", "tok_s"), [(250, 525.69), (300, 597.02), (360, 620.04), (600, 625.55)]
)
def test_6000_pro_of_case_b20(cap_w: float, tok_s: float) -> None:
    """Every published row of the card that many users share, within 1 %."""
    assert decode_at(RTX_6000_PRO, cap_w) == pytest.approx(tok_s, rel=0.01)


def test_power_mode_of_case_b10() -> None:
    """The same placement: 4.15 tok/s in performance mode, 2.85 with what the battery leaves."""
    plant = Plant(LAPTOP_3060)
    speeds = []
    for source in (PowerSource.AC, PowerSource.BATTERY):
        plant.source = source
        for _ in range(5):
            plant.advance("decode")
        speeds.append(plant.reading().speed)
    assert speeds == pytest.approx([4.15, 2.85], rel=0.01)


def test_4060_laptop_of_the_claims() -> None:
    """115 W allowed, over 1830 MHz at first; at 83 °C it falls to 1200."""
    plant = Plant(LAPTOP_4060)
    clocks = []
    for _ in range(3 * 3600):
        plant.advance("decode")
        clocks.append(plant.reading().clock_mhz or 0.0)
    assert max(clocks[:60]) > 1830
    assert min(clocks[3600:]) == 1200
    assert plant.die_c <= 84.0


def test_4060_laptops_cooler_carries_95_watts() -> None:
    """Held at 95 W for three hours, with no firmware in the way, it settles at about 83 °C."""
    plant = Plant(msgspec.structs.replace(LAPTOP_4060, slowdown_c=120.0))
    assert plant.set_limit(95.0)
    for _ in range(3 * 3600):
        plant.advance("decode")
    assert plant.power_w == pytest.approx(95.0, rel=0.01)
    assert plant.die_c == pytest.approx(83.0, abs=2.0)


def test_4080_laptop_with_locked_clocks() -> None:
    """No limit can be set there; 1800 MHz take 150 W to 80 W and little off decode."""
    plant = Plant(LAPTOP_4080)
    plant.settable = False
    assert not plant.set_limit(100.0)
    plant.advance("decode")
    free_w, free = plant.power_w, plant.reading().speed or 0.0
    plant.lock_mhz = 1800.0
    plant.advance("decode")
    assert (free_w, plant.power_w) == pytest.approx((150.0, 80.0), rel=0.02)
    assert (plant.reading().speed or 0.0) > 0.97 * free


def test_decode_is_bound_by_bandwidth_and_prefill_by_the_clock() -> None:
    """Halving the clock far above the knee hardly slows decode down."""
    fast, slow = (decode_speed(RTX_3090, mhz) for mhz in (1900.0, 1500.0))
    assert slow > 0.97 * fast
    assert decode_speed(RTX_3090, 550.0) == pytest.approx(18.0, rel=0.02)


def test_dynamic_boost_moves_the_limit_in_force() -> None:
    """80 W in the quiet profile, 95 W in the balanced one: what is enforced is not what was set."""
    plant = Plant(LAPTOP_3060)
    plant.boost = lambda t: 80.0 if t < 3 else 95.0
    limits = []
    for _ in range(6):
        plant.advance("decode")
        limits.append(plant.reading().power_limit_w)
    assert limits == [80.0, 80.0, 95.0, 95.0, 95.0, 95.0]


def test_limits_without_read_back() -> None:
    """A driver may take a limit and show none, or take it and do nothing."""
    plant = Plant(RTX_3090)
    plant.limit_readable = False
    assert plant.set_limit(300.0)
    assert plant.reading().power_limit_w is None
    plant.limit_readable, plant.applies = True, False
    assert plant.set_limit(200.0)
    assert plant.reading().power_limit_w == 300.0


def test_the_fan_follows_the_heat() -> None:
    """It turns faster when warm, never above full, and slowly enough to be seen."""
    plant = Plant(RTX_3090, 35.0)
    first = plant.fan_frac
    plant.advance("decode")
    assert plant.fan_frac - first <= 0.02
    for _ in range(1800):
        plant.advance("decode")
    assert first < plant.fan_frac <= 1.0


@pytest.mark.parametrize("work", ["decode", "prefill", "idle"])
def test_the_same_calls_give_the_same_numbers(work: Work) -> None:
    """No clock and no chance in it: an hour twice is the same hour."""
    runs = []
    for _ in range(2):
        plant = Plant(LAPTOP_4060)
        for _ in range(3600):
            plant.advance(work)
        runs.append((plant.die_c, plant.energy_j, plant.tokens))
    assert runs[0] == runs[1]
