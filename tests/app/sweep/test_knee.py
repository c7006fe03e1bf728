"""Knee, cliff and spill on curves of every shape."""

import random

from hypothesis import given
from hypothesis import strategies as st

from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.units import MIB
from app.sweep.knee import cliff_between, find_knee, is_spilled
from app.sweep.pick import pick
from app.sweep.points import Point
from app.sweep.stats import estimate


def a_point(
    layers: int,
    request_s: float | None,
    *,
    noise: float = 0.0,
    growth_mib: int = 0,
    bytes_per_layer: int = 100,
) -> Point:
    rng = random.Random(layers)
    times = (
        ()
        if request_s is None
        else tuple(request_s * max(0.2, 1 + noise * rng.gauss(0, 1)) for _ in range(5))
    )
    return Point(
        settings=Settings(n_gpu_layers=layers),
        indices=(layers,),
        load_ids=(layers,),
        outcome=Outcome.OUT_OF_MEMORY if request_s is None else Outcome.OK,
        prefill=times,
        decode=times,
        times=times,
        request=estimate(times) if times else None,
        device_bytes={"gpu0": layers * bytes_per_layer},
        growth_bytes=growth_mib * MIB,
    )


def curve(times: list[float], noise: float = 0.0) -> list[Point]:
    return [a_point(i, t, noise=noise) for i, t in enumerate(times)]


NOISE = st.floats(0.0, 0.06)
STEPS = st.lists(st.floats(0.0, 0.3), min_size=2, max_size=40)


@given(STEPS, NOISE)
def test_monotone_curve(steps: list[float], noise: float) -> None:
    """With ever faster rungs the knee is a rung, nearly as good as the best, never larger."""
    times = [10.0]
    for step in steps:
        times.append(times[-1] * (1 - step))
    points = curve(times, noise)
    knee, best = find_knee(points), min(points, key=lambda p: p.request_s)
    assert knee is not None
    assert knee.total_bytes <= best.total_bytes
    assert 1 / knee.request_s >= 0.95 / best.request_s - 1e-12


@given(st.integers(3, 40), NOISE)
def test_last_step_jump_is_kept(n: int, noise: float) -> None:
    """A curve whose last rung alone is 1.8 × as fast keeps that rung as knee and as answer."""
    times = [10 - 4 * i / n for i in range(n)] + [6 / 1.8]
    points = curve(times, noise)
    knee, best = find_knee(points), pick(points)
    assert knee is not None
    assert best is not None
    assert knee.settings.n_gpu_layers == best.settings.n_gpu_layers == n


def test_plateau_gives_the_smallest() -> None:
    """Where more memory buys nothing, the knee is where the plateau begins."""
    knee = find_knee(curve([10.0, 5.0, 2.0, 2.0, 2.0, 2.0]))
    assert knee is not None
    assert knee.settings.n_gpu_layers == 2


def test_noisy_point_is_no_knee() -> None:
    """A point whose lower bound is below 90 % of the best cannot be the knee."""
    sure, unsure = a_point(5, 2.0), a_point(4, 2.05, noise=0.3)
    knee = find_knee([sure, unsure])
    assert knee is not None
    assert knee.settings.n_gpu_layers == 5


def test_two_humps() -> None:
    """Of two equally good humps the one with less memory is the knee."""
    knee = find_knee(curve([10.0, 3.0, 8.0, 8.0, 3.0, 9.0]))
    assert knee is not None
    assert knee.settings.n_gpu_layers == 1


@given(st.lists(st.floats(1.0, 20.0), min_size=1, max_size=20), st.data())
def test_spilled_point_never_wins(times: list[float], data: st.DataObject) -> None:
    """Whatever its speed, a point that used shared memory is neither answer nor knee."""
    points = curve(times)
    spilled = a_point(len(times), data.draw(st.floats(0.01, 20.0)), growth_mib=65)
    knee, best = find_knee([*points, spilled]), pick([*points, spilled])
    assert knee is not None
    assert best is not None
    assert spilled.settings not in (knee.settings, best.settings)


def test_spill_needs_growth_and_a_price() -> None:
    """Shared memory alone is no spill: it must be slower than the neighbour or busy on PCIe."""
    smaller = a_point(5, 2.0)
    assert is_spilled(a_point(6, 2.2, growth_mib=65), smaller)
    assert not is_spilled(a_point(6, 1.8, growth_mib=65), smaller)
    assert is_spilled(a_point(6, 1.8, growth_mib=65), smaller, pcie_is_busy=True)
    assert not is_spilled(a_point(6, 2.2, growth_mib=64), smaller)


def test_cliff_kinds() -> None:
    """Out of memory, a spill, or a loss of more than 10 % beyond noise."""
    before = a_point(5, 2.0)
    assert cliff_between(before, a_point(6, None)) == "out_of_memory"
    assert cliff_between(before, a_point(6, 2.1, growth_mib=100)) == "spill"
    assert cliff_between(before, a_point(6, 2.3)) == "slower"
    assert cliff_between(before, a_point(6, 2.2)) is None
    assert cliff_between(a_point(5, 2.0, noise=0.3), a_point(6, 2.3, noise=0.3)) is None


def test_nothing_clean_gives_nothing() -> None:
    """Without a usable point there is no knee and no answer."""
    assert find_knee([a_point(1, None)]) is None
    assert pick([a_point(1, None)]) is None
