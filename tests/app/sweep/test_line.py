"""Rungs of one ladder are read along their line; what lies off it is left as measured."""

import random

import msgspec

from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.sweep.line import straighten
from app.sweep.pick import pick
from app.sweep.points import Demand, Point
from app.sweep.stats import estimate

NEED = Demand(n_prompt=512, n_gen=256)
BLOCKS = 40
BASE = Settings(n_gpu_layers=1, n_threads=8, devices=("gpu0",))


def timed(n_gpu_layers: int, decode: list[float]) -> Point:
    prefill = (0.001, 0.00101, 0.00099, 0.001)
    times = tuple(NEED.n_prompt * 0.001 + NEED.n_gen * d for d in decode)
    return Point(
        settings=msgspec.structs.replace(BASE, n_gpu_layers=n_gpu_layers),
        indices=(0,),
        load_ids=(1,),
        outcome=Outcome.OK,
        prefill=prefill,
        decode=tuple(decode),
        times=times,
        request=estimate(times),
    )


def straight(points: list[Point], cpu_decode_s: float | None = None) -> list[Point]:
    known = {p.settings: p for p in points}
    return list(straighten(known, NEED, BLOCKS, cpu_decode_s).values())


def true_s(n: int) -> float:
    return 0.2 - 0.003 * n


def test_noise_among_neighbours_shrinks() -> None:
    """Over many noisy ladders the times lie clearly nearer to the truth than as measured."""
    rng = random.Random(5)
    raw = shrunk = 0.0
    for _ in range(100):
        rungs = (20, 33, 34, 35)
        points = [timed(n, [true_s(n) * (1 + rng.gauss(0, 0.05)) for _ in range(5)]) for n in rungs]
        for n, before, after in zip(rungs, points, straight(points), strict=True):
            truth = 512 * 0.001 + 256 * true_s(n)
            raw += (before.request_s - truth) ** 2
            shrunk += (after.request_s - truth) ** 2
    assert shrunk < 0.7 * raw


def test_neighbours_do_not_turn_the_line_around() -> None:
    """Noise makes fewer of three neighbouring layers seem faster: the CPU alone says otherwise."""
    wide = [1.0, 1.06, 0.94, 1.0]
    slower = {20: 0.97, 21: 1.0, 22: 1.03}
    points = [timed(n, [true_s(n) * k * q for q in wide]) for n, k in slower.items()]
    few, _, many = straight(points)
    assert few.request_s < many.request_s
    few, _, many = straight(points, cpu_decode_s=true_s(0))
    assert many.request_s < few.request_s


def test_what_lies_off_the_line_stays() -> None:
    """A rung slowed down by a spill that nobody sees is not taken towards the others."""
    quiet = [1.0, 1.002, 0.998, 1.0]
    points = [timed(n, [true_s(n) * q for q in quiet]) for n in (20, 30, 34)]
    points.append(timed(35, [true_s(33) * 1.1 * q for q in quiet]))
    assert straight(points) == points


def test_what_lacks_a_little_memory_is_on_no_line() -> None:
    """20 MiB in shared memory are no spill, but slow a rung down: it says nothing of the others."""
    wide = [1.0, 1.06, 0.95, 1.02]
    points = [timed(n, [true_s(n) * q for q in wide]) for n in (20, 30)]
    slow = timed(35, [true_s(35) * 1.1 * q for q in wide])
    points.append(msgspec.structs.replace(slow, growth_bytes=20 * 2**20))
    assert straight(points) == points


def test_kin_that_spill_do_not_speak_for_a_rung() -> None:
    """Larger batches that spill unseen, on a line of their own, do not slow smaller ones down."""
    quiet = [1.0, 1.004, 0.996, 1.0]
    small = [timed(n, [true_s(n) * q for q in quiet]) for n in (20, 30, 34)]
    large = [timed(n, [time_s * q for q in quiet[:3]]) for n, time_s in ((30, 0.135), (34, 0.133))]
    large = [
        msgspec.structs.replace(p, settings=msgspec.structs.replace(p.settings, n_ubatch=2048))
        for p in large
    ]
    after = straight(small + large)
    for point, before in zip(after, small, strict=False):
        assert abs(point.request_s / before.request_s - 1) < 0.01
    assert after[len(small) :] == large


def test_two_rungs_and_the_output_layer_are_no_line() -> None:
    """Two rungs say nothing of each other, and the output layer is a step of its own."""
    points = [timed(n, [true_s(n) * q for q in (1.0, 1.05, 0.95, 1.02)]) for n in (20, 30)]
    points.append(timed(BLOCKS + 1, [0.05, 0.051, 0.049, 0.05]))
    assert straight(points) == points


def test_small_steps_add_up() -> None:
    """Of three rungs, each 1.5 % slower than the one below, the largest is not recommended."""
    quiet = [1.0, 1.001, 0.999, 1.0]
    points = [
        msgspec.structs.replace(
            timed(n, [0.1 * slow * q for q in quiet]), device_bytes={"gpu0": n * 10**9}
        )
        for n, slow in ((30, 1.0), (31, 1.016), (32, 1.032))
    ]
    winner = pick(points)
    assert winner is not None
    assert winner.settings.n_gpu_layers == 31
