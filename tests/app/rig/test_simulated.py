"""The simulated machine is deterministic, knows its best answer, and dumps itself as a replay."""

import msgspec
import pytest

from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, Settings, SplitMode
from app.domain.sweep import SweepRequest
from app.domain.trial import TrialRequest, Workload
from app.domain.units import GIB, MIB
from app.rig.replay import ReplayRig
from app.rig.simulated import SimulatedRig
from app.rig.simulated_machine import random_machine
from app.rig.virtual import scenario_key
from tests.fakes.rigs import machine, run_one

REQUEST = TrialRequest(
    stage="layers", settings=Settings(n_gpu_layers=20), workload=Workload(depth=2048)
)


def test_same_seed_same_trial() -> None:
    """Two rigs of one machine give the same samples; another seed gives others."""
    first, second = (run_one(SimulatedRig(random_machine(3)), REQUEST) for _ in range(2))
    assert first == second
    other = SimulatedRig(msgspec.structs.replace(random_machine(3), seed=4))
    assert run_one(other, REQUEST).decode != first.decode


def test_lying_memory_fails_although_the_dry_run_fits() -> None:
    """Free memory that is not there shows only when it is used."""
    rig = SimulatedRig(machine(lie_frac=0.4))
    settings = Settings(n_gpu_layers=33)
    assert rig.dry_run(settings).verdict == "fits"
    trial = run_one(rig, msgspec.structs.replace(REQUEST, settings=settings))
    assert trial.outcome is Outcome.OUT_OF_MEMORY


def test_spill_is_slow_and_visible() -> None:
    """A spilling driver costs decode speed and shows the growth, exactly the overshoot."""
    rig = SimulatedRig(machine(free_bytes=3 * GIB, spills=True))
    settings = Settings(n_gpu_layers=33, devices=("gpu0",))
    truth = rig.truth(settings, 0)
    fitting = SimulatedRig(machine()).truth(settings, 0)
    assert truth is not None
    assert fitting is not None
    assert truth.shared_growth_bytes == rig.machine.need_bytes(settings) - 3 * GIB
    assert truth.decode_tok_s is not None
    assert fitting.decode_tok_s is not None
    assert truth.decode_tok_s < fitting.decode_tok_s


def test_quantised_v_needs_flash_attention() -> None:
    """The engine refuses a quantised V cache without flash attention."""
    settings = Settings(n_gpu_layers=1, type_k="q8_0", type_v="q8_0", flash_attn=FlashAttn.OFF)
    assert SimulatedRig(machine()).dry_run(settings).note is not None


@pytest.mark.parametrize("seed", [0, 5, 11])
def test_best_is_no_worse_than_any_other(seed: int) -> None:
    """No configuration that fits, of any batch or placement, beats the exhaustive best."""
    rig, request = SimulatedRig(random_machine(seed)), SweepRequest()
    best = rig.exhaustive_best(request, 4096)
    assert best.request_s == rig.true_request_s(best.settings, request)
    space = rig.space()
    free = space.devices[0].free_bytes - 256 * MIB
    for layers in range(0, space.model.n_layer + 2, 3):
        settings = Settings(n_gpu_layers=layers, devices=("gpu0",))
        time_s = rig.true_request_s(settings, request)
        if time_s is not None and rig.machine.need_bytes(rig.concrete(settings)) <= free:
            assert time_s >= best.request_s - 1e-9


def test_dump_replays_the_same() -> None:
    """The recording of a machine answers like the machine."""
    rig = SimulatedRig(machine(noise_frac=0.0))
    grid = [Settings(n_gpu_layers=n, n_threads=8) for n in range(0, 34, 3)]
    again = ReplayRig(rig.to_replay(iter(grid), (0, 2048)))
    for settings in grid:
        ours, theirs = rig.truth(settings, 2048), again.truth(settings, 2048)
        assert ours is not None
        assert theirs is not None
        assert theirs.device_bytes == ours.device_bytes
        assert theirs.decode_tok_s == pytest.approx(ours.decode_tok_s, rel=1e-3)


def test_a_setting_that_came_later_draws_no_other_noise() -> None:
    """Scenarios stay what they were: only a value that is no default seeds its own."""
    plain = Settings(n_gpu_layers=3)
    assert "split_mode" not in scenario_key(plain)
    by_rows = msgspec.structs.replace(plain, split_mode=SplitMode.ROW)
    assert scenario_key(by_rows).startswith(scenario_key(plain)[:-1])
    assert scenario_key(by_rows) != scenario_key(plain)
