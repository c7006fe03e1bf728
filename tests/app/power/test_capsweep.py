"""The cap sweep on simulated machines, and on the published figures."""

import msgspec
import pytest

from app.domain.trial import Rate, Workload
from app.power.caps import (
    CapPoint,
    caps_to_try,
    choose_cap,
    predict_sustained,
    request_s,
    speed_at,
)
from app.power.capsweep import CapSample, measure_cap, median_rate, sweep_caps
from app.power.heating import fit_heating, is_steady
from app.power.protocol import Range
from tests.fakes.plant_bench import PlantBench
from tests.fakes.thermal_cards import CARDS, LAPTOP_4060, RTX_3090, RTX_6000_PRO, Card
from tests.fakes.thermal_plant import Plant

replace = msgspec.structs.replace


def rate(median: float) -> Rate:
    return Rate(median=median, low=median * 0.99, high=median * 1.01)


def point(cap: float, tok_s: float, watts: float, prefill: float | None = None) -> CapPoint:
    return CapPoint(
        cap_w=cap,
        decode_tok_s=rate(tok_s),
        power_w=watts,
        prefill_tok_s=None if prefill is None else rate(prefill),
    )


def swept(card: Card, ambient_c: float = 23.0) -> tuple[list[CapPoint], Plant]:
    plant = Plant(card, ambient_c)
    allowed = Range(
        low=max(card.min_w, card.default_w / 2), high=card.default_w, now=card.default_w
    )
    return list(sweep_caps(PlantBench(plant), caps_to_try(allowed))), plant


def test_published_figures_recommend_the_lowest_limit() -> None:
    """The 5060 Ti of B20 loses 1 % at 150 W and saves 14 %."""
    points = [point(180, 81.2, 172.7), point(162, 81.4, 159.3), point(150, 80.4, 147.2)]
    choice = choose_cap(points)
    assert choice is not None
    assert (choice.point, choice.fastest) == (2, 1)
    assert choice.loss_frac == pytest.approx(0.012, abs=0.001)
    assert choice.saved_frac == pytest.approx(0.0644, abs=0.001)


def test_more_than_five_percent_is_never_given_up() -> None:
    """A limit that saves much but costs more than 5 % is not recommended."""
    points = [point(350, 36.0, 340.0), point(250, 34.3, 250.0), point(200, 34.0, 200.0)]
    choice = choose_cap(points)
    assert choice is not None
    assert choice.point == 1


def test_the_workload_decides() -> None:
    """Decode hardly needs the watts that prefill does, so documents get a higher limit."""
    points = [point(350, 36.0, 340.0, 1000.0), point(220, 35.0, 220.0, 500.0)]
    chat = choose_cap(points, Workload(n_prompt=64, n_gen=512))
    documents = choose_cap(points, Workload(n_prompt=8192, n_gen=64))
    assert chat is not None
    assert documents is not None
    assert (chat.point, documents.point) == (1, 0)


def test_nothing_measured_means_no_choice() -> None:
    """Refused limits give no recommendation."""
    refused = CapPoint(cap_w=150.0, refused="refused_by_driver")
    assert choose_cap([refused]) is None
    assert request_s(refused, None) is None
    assert predict_sustained([refused], 0, 83.0) is None


def test_limits_to_try_stay_in_the_range() -> None:
    """From what was found down to the floor, whole watts, no duplicates."""
    assert caps_to_try(Range(low=57.5, high=115.0, now=115.0)) == (115, 104, 92, 81, 69, 58)
    assert caps_to_try(Range(low=149.2, high=151.9, now=151.9)) == (151, 150)


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
def test_sweep_restores_and_finds_a_saving(card: Card) -> None:
    """On every simulated card a lower limit saves energy within 5 %, and the limit is put back."""
    points, plant = swept(card)
    choice = choose_cap(points)
    assert choice is not None
    assert choice.saved_frac > 0.05
    assert choice.loss_frac <= 0.05
    assert plant.limit_w == card.default_w
    assert all(p.is_steady or p.throttled for p in points)
    assert points[-1].fan_pct is not None
    assert points[0].fan_pct is not None
    assert points[-1].fan_pct < points[0].fan_pct


def test_a_card_of_many_users_keeps_the_watts_that_it_needs() -> None:
    """Compute-bound (B20, 600 W): 250 W would cost a sixth, so the saving ends well above it."""
    points, _ = swept(RTX_6000_PRO)
    choice = choose_cap(points)
    assert choice is not None
    assert 280.0 <= points[choice.point].cap_w <= 380.0
    assert choice.loss_frac <= 0.05
    assert min(p.cap_w for p in points) == 300.0  # half the default, though the driver has 150


@pytest.mark.parametrize(("min_w", "default_w"), [(270.0, 285.0), (100.0, 170.0)])
def test_narrow_and_wide_ranges_of_other_cards(min_w: float, default_w: float) -> None:
    """B20 in other numbers: no limit below the driver's minimum is ever set, let alone clamped."""
    card = replace(RTX_3090, min_w=min_w, default_w=default_w, max_w=default_w)
    points, plant = swept(card)
    assert min(plant.written) == max(min_w, default_w / 2)
    assert [p.cap_w for p in points] == sorted((p.cap_w for p in points), reverse=True)
    assert plant.limit_w == default_w
    assert choose_cap(points) is not None


def test_sweep_that_is_left_early_restores() -> None:
    """A sweep cancelled between limits puts the limit back."""
    plant = Plant(RTX_3090)
    steps = sweep_caps(PlantBench(plant), (300.0, 250.0))
    next(steps)
    assert plant.limit_w == 300.0
    steps.close()
    assert plant.limit_w == 350.0


def test_refused_limit_ends_the_sweep_at_once() -> None:
    """Where limits cannot be set nothing is measured."""
    plant = Plant()
    plant.settable = False
    points = list(sweep_caps(PlantBench(plant), (100.0, 90.0)))
    assert [p.refused for p in points] == ["refused_by_driver"]
    assert plant.t_s == 0.0


@pytest.mark.parametrize("card", CARDS, ids=lambda c: c.name)
@pytest.mark.parametrize("ambient_c", [20.0, 27.0])
def test_prediction_holds_after_half_an_hour(card: Card, ambient_c: float) -> None:
    """The interval of the predicted speed contains what the machine really does at 30 minutes."""
    points, _ = swept(card, ambient_c)
    for index in (0, len(points) - 1):
        predicted = predict_sustained(points, index, card.slowdown_c)
        assert predicted is not None
        plant = Plant(card, ambient_c)
        plant.set_limit(points[index].cap_w)
        for _ in range(1500):
            plant.advance()
        before = plant.tokens
        for _ in range(600):
            plant.advance()
        real = (plant.tokens - before) / 600
        low, high = predicted.decode_tok_s.low, predicted.decode_tok_s.high
        assert low * 0.98 <= real <= high * 1.02
        assert abs(predicted.temp_c - plant.die_c) < 10.0


def test_a_laptop_is_told_that_heat_will_limit_it() -> None:
    """At its full limit the 4060 laptop cannot keep its speed (claims 112)."""
    points, _ = swept(LAPTOP_4060, 25.0)
    full, low = (predict_sustained(points, i, 83.0) for i in (0, len(points) - 1))
    assert full is not None
    assert low is not None
    assert points[0].throttled or full.is_limited
    assert not low.is_limited


def test_heating_curve_is_recovered() -> None:
    """A clean first-order curve gives its final temperature back, inside the interval."""
    curve = [(float(t), 70.0 - 45.0 * 0.5 ** (t / 40.0)) for t in range(150)]
    heat = fit_heating(curve)
    assert heat is not None
    assert heat.final_c == pytest.approx(70.0, abs=0.5)
    assert heat.low_c <= 70.0 <= heat.high_c
    assert heat.at(40.0) == pytest.approx(47.5, abs=0.5)


def test_short_runs_give_wide_intervals() -> None:
    """Half a minute of warming up says little about the end, and the interval shows it."""
    curve = [(float(t), float(round(70.0 - 45.0 * 0.5 ** (t / 120.0)))) for t in range(150)]
    short, long = fit_heating(curve[:40]), fit_heating(curve)
    assert short is not None
    assert long is not None
    assert short.high_c - short.low_c > 2 * (long.high_c - long.low_c)
    assert fit_heating(curve[:20]) is None


def test_steadiness() -> None:
    """Rising is not steady, flat is, and a short time is neither."""
    assert not is_steady([(float(t), 40.0 + t / 50) for t in range(200)])
    assert is_steady([(float(t), 60.0) for t in range(100)])
    assert not is_steady([(float(t), 60.0) for t in range(60)])
    assert not is_steady([])


def test_machine_without_sensors_is_measured_for_seven_minutes() -> None:
    """Without temperature and draw there is a speed and nothing else."""

    class Blind:
        t_s = 0.0

        def set_cap(self, watts: float) -> str | None:
            return None

        def sample(self) -> CapSample:
            self.t_s += 1.0
            return CapSample(t_s=self.t_s, decode_tok_s=20.0)

        def restore(self) -> None:
            pass

    bench = Blind()
    measured = measure_cap(bench, 100.0)
    assert bench.t_s == 421.0
    assert measured.decode_tok_s == Rate(median=20.0, low=20.0, high=20.0)
    assert (measured.power_w, measured.heating, measured.is_steady) == (None, None, False)
    assert choose_cap([measured]) is None


def test_median_rate_brackets_its_median() -> None:
    """The interval lies within the samples and around the median."""
    assert median_rate([]) is None
    found = median_rate([float(x) for x in range(1, 102)])
    assert found is not None
    assert found.low < found.median == 51.0 < found.high


def test_speed_between_measured_draws() -> None:
    """Interpolated inside, proportional below, flat above."""
    points = [point(100, 30.0, 100.0), point(50, 20.0, 50.0)]
    assert [speed_at(points, w) for w in (25.0, 75.0, 300.0)] == [10.0, 25.0, 30.0]
