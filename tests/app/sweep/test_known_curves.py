"""Curves people published, in our own numbers: the right answer on each (cases.json, group B)."""

from collections.abc import Iterable

import pytest

from app.domain.settings import Settings
from app.domain.sweep import BUDGETS, BudgetName, SweepRequest
from app.domain.units import GIB, MIB
from app.rig.replay import ReplayRig
from app.rig.replay_file import Replay, ReplayPoint
from tests.fakes.rigs import GOLDEN, point, replay, search


def layers(
    curve: Iterable[tuple[int, float]], *, mib_per_layer: int, base_mib: int
) -> list[ReplayPoint]:
    return [point(n, speed, (base_mib + n * mib_per_layer) * MIB) for n, speed in curve]


# B01: 48 blocks on a 16 GiB card; the last step alone is 3.5 × as fast
VRAM_CLIFF = replay(
    layers(
        [(0, 2.9), (8, 3.6), (16, 4.2), (24, 5.6), (32, 7.3), (40, 12.5), (49, 43.2)],
        mib_per_layer=180,
        base_mib=265,
    ),
    n_layer=48,
    free_bytes=15 * GIB,
)
# B02: the last three layers triple the speed
LAST_LAYERS = replay(
    layers(
        [(0, 9.0), (10, 13.5), (20, 21.4), (30, 40.0), (31, 48.2), (32, 54.8), (33, 131.7)],
        mib_per_layer=120,
        base_mib=300,
    ),
    n_layer=32,
    free_bytes=8 * GIB,
)
# B18: a tiny model is faster on the CPU
CPU_WINS = replay(
    [
        point(0, 1240.0, 0, prefill_tok_s=8268.0),
        point(8, 1180.0, 60 * MIB, prefill_tok_s=9000.0),
        point(17, 1000.0, 90 * MIB, prefill_tok_s=9000.0),
    ],
    n_layer=16,
    free_bytes=8 * GIB,
)
# B17: decode is best with 8 threads, more hardware threads make it slower
THREADS = replay(
    [
        point(0, speed, 0, prefill_tok_s=60.0, n_threads=n)
        for n, speed in [(4, 12.2), (8, 16.7), (16, 15.3)]
    ],
    n_layer=32,
    free_bytes=200 * MIB,
    cores=8,
)
# B12: the largest context loads, then spills in the first request
GTT_SPILL = replay(
    [
        point(n, speed, (500 + 210 * n) * MIB, growth_bytes=growth * MIB)
        for n, speed, growth in [(0, 3.0, 0), (40, 9.0, 0), (60, 30.0, 0), (66, 18.0, 620)]
    ],
    n_layer=65,
    free_bytes=15 * GIB,
)


@pytest.mark.parametrize("budget", [BudgetName.QUICK, BudgetName.STANDARD])
@pytest.mark.parametrize(
    ("recording", "expected"),
    [(VRAM_CLIFF, 49), (LAST_LAYERS, 33), (CPU_WINS, 0), (THREADS, 0)],
    ids=["vram cliff", "last layers", "cpu wins", "threads"],
)
def test_layers_of_known_curves(recording: Replay, expected: int, budget: BudgetName) -> None:
    """The answer has the layers that the published curve says, within the budget."""
    result = search(ReplayRig(recording), SweepRequest(budget=budget))
    assert result.recommended is not None
    assert result.recommended.settings.n_gpu_layers == expected
    assert result.n_model_loads <= BUDGETS[budget].max_loads


def test_threads_of_a_plateau_with_a_dip() -> None:
    """Physical cores win over half of them and over all hardware threads."""
    result = search(ReplayRig(THREADS))
    assert result.recommended is not None
    assert result.recommended.settings.n_threads == 8


def test_a_spill_in_the_first_request_is_no_answer() -> None:
    """The rung whose shared memory grows is left, and the answer is before it."""
    result = search(ReplayRig(GTT_SPILL))
    assert result.recommended is not None
    assert 55 <= result.recommended.settings.n_gpu_layers <= 65
    assert result.cliff is not None
    assert result.cliff.kind == "spill"


# what a driver calls shared memory may be a constant: it does not say how much is too much
CONSTANT_GROWTH = replay(
    [
        point(n, 5.0 + n, (400 + 114 * n) * MIB, growth_bytes=0)
        if n < 25
        else point(n, 8.0, (400 + 114 * n) * MIB, growth_bytes=900 * MIB)
        for n in range(34)
    ],
    n_layer=32,
    free_bytes=8 * GIB,
)


def test_growth_that_misleads_is_checked() -> None:
    """After a spill the way back up is searched while loads are left."""
    result = search(ReplayRig(CONSTANT_GROWTH))
    assert result.recommended is not None
    assert result.recommended.settings.n_gpu_layers == 24
    assert result.n_model_loads <= BUDGETS[BudgetName.STANDARD].max_loads
    assert result.cliff is not None
    assert (result.cliff.last_good, result.cliff.first_bad) == (24, 25)


# the largest answer that keeps 256 MiB free, by an exhaustive look at the recording
ANSWERS = {
    "fits_33": Settings(n_gpu_layers=33),
    "partial_33": Settings(n_gpu_layers=24),
    "spill_33": Settings(n_gpu_layers=24),
    "moe_49": Settings(n_gpu_layers=49, n_cpu_moe=31),
    "h200_qwen7b_all": Settings(n_gpu_layers=29),
    "h200_qwen7b_4gib": Settings(n_gpu_layers=18),
    "h200_qwen30b_a3b_8gib": Settings(n_gpu_layers=49, n_cpu_moe=32),
}


@pytest.mark.parametrize("budget", [BudgetName.QUICK, BudgetName.STANDARD])
@pytest.mark.parametrize("name", ANSWERS)
def test_recorded_machines(name: str, budget: BudgetName) -> None:
    """On every recorded machine: the best placement, within loads and time, no failed launch."""
    result = search(ReplayRig(GOLDEN / f"{name}.json.gz"), SweepRequest(budget=budget))
    assert result.status == "complete"
    assert result.recommended is not None
    found = result.recommended.settings
    assert (found.n_gpu_layers, found.n_cpu_moe) == (
        ANSWERS[name].n_gpu_layers,
        ANSWERS[name].n_cpu_moe,
    )
    assert result.n_model_loads <= BUDGETS[budget].max_loads
    assert result.virtual_s <= BUDGETS[budget].max_s
    assert not [t for t in result.trials if t.outcome == "out_of_memory"]
