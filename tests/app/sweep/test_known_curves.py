"""Curves people published, in our own numbers: the right answer on each (cases.json, group B)."""

import msgspec
import pytest

from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import BUDGETS, BudgetName, SweepRequest, SweepResult
from app.domain.units import GIB, MIB
from app.rig.replay import ReplayRig
from app.sweep.points import SPILL_BYTES
from tests.fakes.known_curves import KNOWN
from tests.fakes.rigs import GOLDEN, point, replay, search

# n_gpu_layers and n_cpu_moe that may be recommended on each known curve
RIGHT = {
    "b01_vram_cliff": ((49,), (0,)),
    "b02_last_layers": ((33,), (0,)),
    "b04_noise_of_one_layer": ((6, 7), (0,)),
    "b07_experts_16gib": ((41,), (24, 25)),
    "b07_experts_12gib": ((41,), (32, 33, 34)),
    "b08_two_cards_spill": ((58, 59, 60), (0,)),
    "b09_busy_desktop": ((35, 36), (0,)),
    "b10_one_power_mode": ((20,), (0,)),
    "b12_spill_in_request": ((59, 60), (0,)),
    "b13_cache_in_ram": ((75,), (0,)),
    "b14_depth_decay": ((37,), (0,)),
    "b15_depth_decay_even": ((47,), (0,)),
    "b17_threads": ((0,), (0,)),
    "b18_cpu_wins": ((0,), (0,)),
}


def known(name: str, budget: BudgetName = BudgetName.STANDARD) -> SweepResult:
    return search(ReplayRig(KNOWN[name]), SweepRequest(budget=budget))


@pytest.mark.parametrize("name", KNOWN)
def test_known_curves(name: str) -> None:
    """The answer is the one that the published curve says, within the budget, never spilled."""
    result = known(name)
    assert result.recommended is not None
    settings = result.recommended.settings
    layers, experts = RIGHT[name]
    assert settings.n_gpu_layers in layers
    assert settings.n_cpu_moe in experts
    assert settings.offload_kqv == "on"
    trial = result.trials[result.recommended.trial]
    assert trial.outcome is Outcome.OK
    assert (trial.shared_growth_bytes or 0) <= SPILL_BYTES
    assert result.n_model_loads <= BUDGETS[BudgetName.STANDARD].max_loads


@pytest.mark.parametrize("name", KNOWN)
def test_known_curves_quickly(name: str) -> None:
    """The quick search finds the same layers, within its own loads and time."""
    result = known(name, BudgetName.QUICK)
    assert result.recommended is not None
    assert result.recommended.settings.n_gpu_layers in RIGHT[name][0]
    assert result.n_model_loads <= BUDGETS[BudgetName.QUICK].max_loads
    assert result.virtual_s <= BUDGETS[BudgetName.QUICK].max_s


def test_prompt_and_decode_have_their_own_threads() -> None:
    """Decode is best with 8 threads and the prompt with 32: both are recommended, not one."""
    best = known("b17_threads").recommended
    assert best is not None
    assert (best.settings.n_threads, best.settings.n_threads_batch) == (8, 32)


@pytest.mark.parametrize(
    ("name", "loss_pct"), [("b14_depth_decay", (4, 12)), ("b15_depth_decay_even", (35, 45))]
)
def test_depth_is_part_of_the_answer(name: str, loss_pct: tuple[int, int]) -> None:
    """The loss of a full context is measured and said, and larger contexts are on the curve."""
    result = known(name)
    said = {r.code: r.data for r in result.reasons}
    assert loss_pct[0] <= float(said["context_full"]["loss_pct"] or 0) <= loss_pct[1]
    depths = [p.depth for p in result.context_curve if p.decode_tok_s is not None]
    assert max(depths) > 4096


def test_a_spill_in_the_first_request_is_a_cliff() -> None:
    """The rung whose shared memory grows is named as the cliff, with its kind."""
    cliff = known("b12_spill_in_request").cliff
    assert cliff is not None
    assert cliff.kind == "spill"


def test_cache_in_ram_is_never_recommended() -> None:
    """Six layers more with the cache in RAM are not even tried: they cost more than they gain."""
    result = known("b13_cache_in_ram")
    assert {t.request.settings.offload_kqv for t in result.trials} == {"on"}


def test_another_power_mode_is_no_rival() -> None:
    """What was measured while the power source changed is repeated, and does not count."""
    recorded = KNOWN["b10_one_power_mode"]
    result = known("b10_one_power_mode")
    assert result.recommended is not None
    again = search(ReplayRig(msgspec.structs.replace(recorded, seed=8)))
    assert again.recommended is not None
    assert again.recommended.settings.n_gpu_layers == result.recommended.settings.n_gpu_layers


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
