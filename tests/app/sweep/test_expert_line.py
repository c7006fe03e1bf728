"""What experts in RAM cost is told by placements of both kinds together, and by neither alone."""

import random

import pytest

from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.sweep.expert_line import expert_line
from app.sweep.ladder import Rung
from app.sweep.points import Point
from app.sweep.stats import estimate

BLOCKS, OUTPUT_BLOCKS = 40, 2.0
CPU_S, GAIN_S, EXPERTS_S = 0.2, 0.004, 0.0024  # alone; per block on the device; per block's experts


def timed(layers: int, experts: int, noise: float = 1.0) -> Point:
    on_device = min(layers, BLOCKS)
    without = max(0, experts - (BLOCKS - on_device)) if on_device else 0
    gained = on_device + (OUTPUT_BLOCKS if layers > BLOCKS else 0)
    decode = ((CPU_S - gained * GAIN_S + without * EXPERTS_S) * noise,) * 3
    return Point(
        settings=Settings(n_gpu_layers=layers, n_cpu_moe=experts, devices=("gpu0",)),
        indices=(0,),
        load_ids=(1,),
        outcome=Outcome.OK,
        prefill=(0.001,) * 3,
        decode=decode,
        times=decode,
        request=estimate(decode),
    )


def test_experts_cost_their_share_of_a_block() -> None:
    """Layers in RAM and experts in RAM, 2 % of noise: the share is found, the corner is in line."""
    rng = random.Random(3)
    both = [(0, 0), (20, 0), (12, 0), (30, 40), (41, 38), (41, 30)]
    line = expert_line(
        [timed(n, k, 1 + rng.gauss(0, 0.02)) for n, k in both], BLOCKS, OUTPUT_BLOCKS
    )
    assert line is not None
    assert line.share == pytest.approx(EXPERTS_S / GAIN_S, abs=0.1)
    corner, below = (Rung(n_gpu_layers=n, n_cpu_moe=40) for n in (41, 40))
    assert line.place(corner) - line.place(below) == pytest.approx(OUTPUT_BLOCKS)


@pytest.mark.parametrize(
    "rungs",
    [
        [(0, 0), (8, 0), (12, 0), (20, 0), (24, 0)],  # only layers
        [(20, 40), (25, 40), (30, 40), (35, 40)],  # block and experts always together
        [(0, 0), (20, 0), (41, 38)],  # too few to see noise
    ],
)
def test_one_kind_of_placement_tells_nothing(rungs: list[tuple[int, int]]) -> None:
    """Nothing is said of experts where nothing tells them from the rest of their block."""
    assert expert_line([timed(n, k) for n, k in rungs], BLOCKS, OUTPUT_BLOCKS) is None
