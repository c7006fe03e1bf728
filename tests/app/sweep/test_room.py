"""After a launch ran out of memory: how much there is, without a load per step."""

import pytest

from app.domain.outcome import Outcome
from app.domain.sweep import BudgetName, SweepRequest
from app.domain.units import GIB
from app.rig.simulated import SimulatedRig
from app.rig.simulated_machine import SimulatedMachine
from app.sweep.search import ROOM_STAGE
from tests.fakes.rigs import machine, search

# Free memory that is not there, with many and few layers, dense and with experts
LIARS = [
    machine(free_bytes=3 * GIB, lie_frac=0.13),
    machine(free_bytes=3 * GIB, lie_frac=0.15),
    machine(free_bytes=3 * GIB, lie_frac=0.19),
    machine(free_bytes=3 * GIB, expert_frac=0.8, lie_frac=0.14),
    machine(n_layer=80, layer_bytes=200 << 20, free_bytes=7 * GIB, lie_frac=0.16),
]


@pytest.mark.parametrize("lying", LIARS)
def test_memory_that_is_not_there(lying: SimulatedMachine) -> None:
    """The answer is within 3 % of the best, after at most two failed launches and 10 loads."""
    rig = SimulatedRig(lying)
    request = SweepRequest()
    result = search(rig, request)
    assert result.recommended is not None
    settings = result.recommended.settings
    best = rig.exhaustive_best(request, settings.n_ctx)
    time_s = rig.true_request_s(settings, request)
    assert time_s is not None
    assert time_s <= 1.03 * best.request_s
    failed = {t.load_id for t in result.trials if t.outcome is Outcome.OUT_OF_MEMORY}
    assert 1 <= len(failed) <= 2
    assert result.n_model_loads <= 10


def test_steps_need_no_load_of_their_own() -> None:
    """Every step of the look for memory runs on the weights that the look before left there."""
    result = search(SimulatedRig(LIARS[1]))
    steps = [t for t in result.trials if t.request.stage == ROOM_STAGE]
    assert len(steps) > 1
    assert len({t.load_id for t in steps}) == 1
    assert all(t.load_s is None for t in steps)


def test_nothing_unproven_after_two_failures() -> None:
    """Once two launches ran out of memory, nothing larger than what ran is launched."""
    rig = SimulatedRig(LIARS[3])
    trials = search(rig, SweepRequest(budget=BudgetName.STANDARD)).trials
    failures, proven = 0, 0
    for trial in trials:
        need = sum(rig.dry_run(trial.request.settings).device_bytes().values())
        if failures >= 2:
            assert need <= proven
        if trial.outcome is Outcome.OUT_OF_MEMORY:
            failures += 1
        else:
            proven = max(proven, need)
    assert failures >= 1
