"""What measured placements and knobs say about those that were not measured."""

import pytest

from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, Settings
from app.sweep.ladder import Rung
from app.sweep.points import Demand, Point
from app.sweep.speed_model import SpeedModel
from app.sweep.stats import estimate

NEED = Demand(n_prompt=512, n_gen=256)
PLAIN = tuple(Rung(n_gpu_layers=n, n_cpu_moe=0) for n in range(34))
# 28 layers of a model with 28 blocks and an output layer, then experts move in one by one
EXPERTS = (
    *(Rung(n_gpu_layers=n, n_cpu_moe=28) for n in range(29)),
    *(Rung(n_gpu_layers=29, n_cpu_moe=n) for n in range(28, -1, -1)),
)


def timed(settings: Settings, prefill_ms: float, decode_ms: float) -> Point:
    prefill, decode = (prefill_ms / 1000,) * 3, (decode_ms / 1000,) * 3
    times = tuple(NEED.n_prompt * p + NEED.n_gen * d for p, d in zip(prefill, decode, strict=True))
    return Point(
        settings=settings,
        indices=(0,),
        load_ids=(1,),
        outcome=Outcome.OK,
        prefill=prefill,
        decode=decode,
        times=times,
        request=estimate(times),
    )


def at(layers: int, experts: int = 0, **knobs: object) -> Settings:
    wanted = {"n_gpu_layers": layers, "n_cpu_moe": experts, "devices": ("gpu0",), **knobs}
    return Settings(**wanted)  # type: ignore[arg-type]


def rung_bytes(ladder: tuple[Rung, ...], expert_bytes: int = 0) -> list[int]:
    return [100 * r.n_gpu_layers + expert_bytes * (28 - r.n_cpu_moe) for r in ladder]


def model(points: list[Point], screened: list[Point]) -> SpeedModel:
    needs = rung_bytes(PLAIN)
    return SpeedModel(points, screened, PLAIN, NEED, lambda i: needs[i])


def seconds(prefill_ms: float, decode_ms: float) -> float:
    return (NEED.n_prompt * prefill_ms + NEED.n_gen * decode_ms) / 1000


def test_a_batch_changes_the_prompt_alone() -> None:
    """Decode of another batch is that of its kin, whatever the noise of its own short look."""
    points = [timed(at(20), 2.0, 50.0), timed(at(10), 3.0, 80.0)]
    looks = [timed(at(10), 3.0, 80.0), timed(at(10, n_ubatch=1024), 1.5, 88.0)]
    guess = model(points, looks).predict(at(20, n_ubatch=1024))
    assert guess is not None
    assert guess.request_s == pytest.approx(seconds(1.0, 50.0))


def test_two_neighbours_are_no_line() -> None:
    """The slope between two rungs next to each other is noise: decode goes on from the CPU's."""
    needs = rung_bytes(PLAIN)
    points = [timed(at(9), 2.0, 80.5), timed(at(10), 2.0, 80.0)]
    alone_s = (0.1, 0.1)
    guess = SpeedModel(points, [], PLAIN, NEED, lambda i: needs[i], alone_s).predict(at(20))
    assert guess is not None
    assert guess.request_s == pytest.approx(seconds(2.0, 60.0))


def test_a_cache_gains_per_layer_on_the_device() -> None:
    """Without flash attention 10 layers save 2 ms, so 20 layers save 4 ms."""
    points = [timed(at(20), 2.0, 50.0), timed(at(10), 3.0, 80.0)]
    looks = [timed(at(10), 3.0, 80.0), timed(at(10, flash_attn=FlashAttn.OFF), 3.0, 78.0)]
    guess = model(points, looks).predict(at(20, flash_attn=FlashAttn.OFF))
    assert guess is not None
    assert guess.request_s == pytest.approx(seconds(2.0, 46.0))


def test_cache_and_batch_combine() -> None:
    """What each gained alone is expected of both together, although nobody timed the pair."""
    points = [timed(at(20), 2.0, 50.0), timed(at(10), 3.0, 80.0)]
    looks = [
        timed(at(10), 3.0, 80.0),
        timed(at(10, n_ubatch=1024), 1.5, 80.0),
        timed(at(10, flash_attn=FlashAttn.OFF), 3.0, 78.0),
    ]
    guess = model(points, looks).predict(at(20, n_ubatch=1024, flash_attn=FlashAttn.OFF))
    assert guess is not None
    assert guess.request_s == pytest.approx(seconds(1.0, 46.0))


def test_experts_are_judged_between_rungs_that_differ_in_experts() -> None:
    """Two rungs of experts give the line, not a far one with fewer layers."""
    needs = rung_bytes(EXPERTS, expert_bytes=300)
    points = [timed(at(29, 20), 2.0, 60.0), timed(at(29, 12), 2.0, 44.0)]
    points.append(timed(at(20, 28), 2.0, 300.0))
    guess = SpeedModel(points, [], EXPERTS, NEED, lambda i: needs[i]).predict(at(29, 8))
    assert guess is not None
    assert guess.request_s == pytest.approx(seconds(2.0, 36.0))
