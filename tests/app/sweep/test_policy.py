"""The policy is pure, keeps its budgets, and never launches what must not be launched."""

from typing import Any

import msgspec
import pytest
from typing_extensions import override

from app.domain.events import TrialFinished
from app.domain.memory import MemoryEstimate
from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import (
    BUDGETS,
    BudgetName,
    Done,
    RunTrial,
    SearchDevice,
    SweepRequest,
    SweepStatus,
)
from app.domain.trial import Trial
from app.domain.units import GIB
from app.rig.simulated import SimulatedRig
from app.rig.simulated_machine import random_machine
from app.sweep.policy import next_step
from tests.fakes.rigs import machine, plan_for, run_one, search

SEEDS = (0, 2, 9, 15, 18, 21)


def steps(rig: SimulatedRig, request: SweepRequest) -> list[Trial]:
    """Run the policy by hand to its end."""
    plan, trials = plan_for(rig, request), list[Trial]()
    while isinstance(step := next_step(plan, rig.dry_run, tuple(trials)), RunTrial):
        trials.append(run_one(rig, step.request))
    return trials


@pytest.mark.parametrize("budget", [BudgetName.QUICK, BudgetName.STANDARD])
@pytest.mark.parametrize("seed", SEEDS)
def test_budgets_are_kept(seed: int, budget: BudgetName) -> None:
    """Loads and seconds on the rig's clock stay within the budget, failures included."""
    rig = SimulatedRig(random_machine(seed))
    trials = steps(rig, SweepRequest(budget=budget, kv_types=("f16", "q8_0")))
    assert len({t.load_id for t in trials}) <= BUDGETS[budget].max_loads
    assert sum(t.elapsed_s for t in trials) <= BUDGETS[budget].max_s
    failed = {t.load_id for t in trials if t.outcome is Outcome.OUT_OF_MEMORY}
    assert len(failed) <= 2


@pytest.mark.parametrize("seed", SEEDS)
def test_never_launched(seed: int) -> None:
    """No impossible settings, nothing the dry run forbids, nothing a failure dominates."""
    rig = SimulatedRig(random_machine(seed))
    blocks = rig.space().model.n_layer
    failed: list[int] = []
    for trial in steps(rig, SweepRequest(kv_types=("f16", "q8_0"))):
        asked = trial.request.settings
        need = rig.dry_run(asked)
        assert asked.n_gpu_layers <= blocks + 1
        assert asked.n_cpu_moe <= blocks
        assert asked.n_ubatch <= asked.n_batch
        assert asked.type_v == "f16" or asked.flash_attn is not FlashAttn.OFF
        assert need.verdict == "fits"
        n_bytes = sum(need.device_bytes().values())
        assert all(n_bytes < n for n in failed) or not asked.devices
        if trial.outcome is Outcome.OUT_OF_MEMORY:
            failed.append(n_bytes)


def test_same_trials_same_step() -> None:
    """The step depends on the trials alone: every prefix gives the trial that followed it."""
    rig = SimulatedRig(random_machine(9))
    request = SweepRequest()
    plan, trials = plan_for(rig, request), steps(rig, request)
    for n, trial in enumerate(trials):
        step = next_step(plan, SimulatedRig(random_machine(9)).dry_run, tuple(trials[:n]))
        assert step == RunTrial(request=trial.request)
    assert next_step(plan, rig.dry_run, tuple(trials)) == Done(status=SweepStatus.COMPLETE)


def test_largest_that_fits_goes_first() -> None:
    """The first full trial is the largest placement by the exact bound."""
    rig = SimulatedRig(machine(free_bytes=3 * GIB))
    first = next(t for t in steps(rig, SweepRequest()) if t.request.stage == "layers")
    assert first.request.settings.n_gpu_layers == plan_for(rig).max_n_gpu_layers


def test_lying_memory_costs_two_failures_at_most() -> None:
    """With a sixth of the memory missing the answer still runs, after at most two failures."""
    rig = SimulatedRig(machine(free_bytes=4 * GIB, lie_frac=0.16))
    result = search(rig)
    assert result.recommended is not None
    assert rig.true_request_s(result.recommended.settings, SweepRequest()) is not None
    failed = {t.load_id for t in result.trials if t.outcome is Outcome.OUT_OF_MEMORY}
    assert 1 <= len(failed) <= 2


def test_pins_are_kept() -> None:
    """Pinned knobs never vary; a pinned layer count is launched even beyond the bound."""
    rig = SimulatedRig(machine(free_bytes=3 * GIB, spills=True))
    pinned: dict[str, int | str] = {"n_gpu_layers": 33, "n_ubatch": 1024, "n_threads": 6}
    result = search(rig, SweepRequest(pinned=pinned))
    asked = [t.request.settings for t in result.trials if t.request.stage == "layers"]
    assert asked
    for name, value in pinned.items():
        assert {getattr(a, name) for a in asked} == {value}


@pytest.mark.parametrize("seed", [5001, 5005])
def test_a_cache_that_is_not_allowed_cannot_win(seed: int) -> None:
    """Answer and knee have an allowed type; llama.cpp's own choice, in f16, is shown beside them.

    Both machines would be as fast with it, and took it.
    """
    result = search(SimulatedRig(random_machine(seed)), SweepRequest(kv_types=("q8_0",)))
    assert result.recommended is not None
    assert result.knee is not None
    assert result.baseline_auto_fit is not None
    for answer in (result.recommended, result.knee):
        assert (answer.settings.type_k, answer.settings.type_v) == ("q8_0", "q8_0")
    assert result.baseline_auto_fit.settings.type_k == "f16"


def test_rules_of_the_user_s_are_kept() -> None:
    """Every answer has them; llama.cpp's own choice knows nothing of them, and cannot win."""
    rules = "attn_k=CPU"
    rig = SimulatedRig(machine(free_bytes=3 * GIB, expert_frac=0.9))
    result = search(rig, SweepRequest(pinned={"override_tensor": rules}))
    assert result.recommended is not None
    assert result.recommended.settings.override_tensor == rules
    by_stage = {t.request.stage: t.request.settings.override_tensor for t in result.trials}
    assert by_stage["layers"] == rules
    assert by_stage.get("auto_fit", "") == ""


def test_a_pin_that_cannot_be_is_no_other_answer() -> None:
    """Pinned layers that run out of memory end in what would fit, not in the CPU's settings."""
    rig = SimulatedRig(machine(free_bytes=3 * GIB))
    result = search(rig, SweepRequest(pinned={"n_gpu_layers": "all"}))
    assert (result.status, result.recommended) == (SweepStatus.FAILED, None)
    assert result.error is not None
    assert "n_gpu_layers = 33" in result.error.message
    most = plan_for(rig).max_n_gpu_layers
    assert f"At most {most} GPU layers" in result.error.hint


def test_expert_layers_mean_nothing_without_layers_on_the_card() -> None:
    """With no layer on the card, pinned expert layers in RAM are kept by whatever runs."""
    rig = SimulatedRig(machine(expert_frac=0.8))
    result = search(rig, SweepRequest(pinned={"n_gpu_layers": 0, "n_cpu_moe": 5}))
    assert result.recommended is not None
    assert result.recommended.settings.n_gpu_layers == 0


@pytest.mark.parametrize("kept", ["headroom_bytes", "reserve_bytes"])
def test_a_reference_that_takes_what_stays_free_cannot_win(kept: str) -> None:
    """What the user wants left free binds the answer, its knee and every tie; llama.cpp's own
    fit, which ignores it, is shown beside them and said to break it.
    """
    rig = Reserving(machine(free_bytes=6 * GIB))
    if kept == "reserve_bytes":
        rig.reserve_bytes = 4 * GIB
    result = search(rig, msgspec.convert({kept: 4 * GIB}, SweepRequest))
    assert result.recommended is not None
    assert result.knee is not None
    assert result.baseline_auto_fit is not None
    for answer in (result.recommended, result.knee):
        assert answer.settings.n_gpu_layers > 0
        assert sum(answer.device_bytes.values()) <= 2 * GIB
    assert result.baseline_auto_fit.settings.n_gpu_layers > result.recommended.settings.n_gpu_layers
    codes = {r.code for r in result.reasons}
    assert "auto_fit_barred" in codes
    assert "auto_fit_equal" not in codes


class Reserving(SimulatedRig):
    """The same machine, judged with memory that something else will take."""

    reserve_bytes = 0

    @override
    def dry_run(self, settings: Settings) -> MemoryEstimate:
        need = super().dry_run(settings)
        devices = tuple(
            msgspec.structs.replace(d, reserve_bytes=self.reserve_bytes) for d in need.devices
        )
        return msgspec.structs.replace(need, devices=devices)


def test_disturbed_trial_is_repeated_once() -> None:
    """A trial that something disturbed is asked for once more, not for ever."""
    rig = SimulatedRig(machine(disturbed_frac=1.0))
    trials = steps(rig, SweepRequest(budget=BudgetName.QUICK))
    first = trials[0].request
    assert [t.request for t in trials[:2]] == [first, first]
    assert trials[2].request.settings != first.settings or trials[2].request != first


class NoDevice(SimulatedRig):
    """The same machine without its card."""

    @override
    def space(self) -> Any:
        return msgspec.structs.replace(super().space(), devices=())


def test_without_a_device_only_the_cpu_is_tuned() -> None:
    """No GPU: one load, no layers, threads and batch tuned, and an answer."""
    result = search(NoDevice(machine()), SweepRequest(budget=BudgetName.QUICK))
    assert result.status is SweepStatus.COMPLETE
    assert result.n_model_loads == 1
    assert result.recommended is not None
    assert {t.request.settings.n_gpu_layers for t in result.trials} == {0}
    assert len({t.request.settings.n_threads for t in result.trials}) > 1


def test_slow_machine_is_timed_shallower_and_ends() -> None:
    """Where filling the context takes minutes, the search times less and still completes."""
    slow = machine(cpu_layer_ms=20.0, prefill_cpu_ms=1.0, prefill_gpu_ms=20.0, cores=2)
    result = search(NoDevice(slow), SweepRequest(budget=BudgetName.QUICK))
    assert result.recommended is not None
    assert result.virtual_s <= BUDGETS[BudgetName.QUICK].max_s
    assert max(t.request.workload.depth for t in result.trials) < 2048
    assert "measured_shallower" in {r.code for r in result.reasons}


class SoftwareDevice(SimulatedRig):
    """A device that is the CPU posing as one."""

    @override
    def space(self) -> Any:
        space = super().space()
        device: SearchDevice = msgspec.structs.replace(space.devices[0], kind="software")
        return msgspec.structs.replace(space, devices=(device,))


@pytest.mark.parametrize("layer_ms", [8.0, 12.0, 20.0])
def test_a_slow_machine_still_gets_its_best_thread_count(layer_ms: float) -> None:
    """Where three minutes hold one measurement, looks of a few tokens choose what it measures."""
    slow = machine(cpu_layer_ms=layer_ms, prefill_cpu_ms=layer_ms / 25, smt_frac=1.3, seed=3)
    result = search(NoDevice(slow), SweepRequest(budget=BudgetName.QUICK))
    assert result.recommended is not None
    assert result.recommended.settings.n_threads == 16
    assert result.measured_s <= BUDGETS[BudgetName.QUICK].max_s


def test_software_device_has_to_prove_itself() -> None:
    """The CPU is tuned first; a slow software device costs one short look."""
    rig = SoftwareDevice(machine(gpu_layer_ms=60.0, prefill_gpu_ms=50.0))
    result = search(rig)
    assert result.recommended is not None
    assert result.recommended.settings.n_gpu_layers == 0
    on_device = [t for t in result.trials if t.request.settings.devices]
    assert [t.request.stage for t in on_device] == ["devices"]


def test_engine_that_always_crashes_ends_as_failed() -> None:
    """A trial that fails for another reason than memory is not repeated on every rung."""

    class Crashing(SimulatedRig):
        @override
        def run_trial(self, request: Any) -> Any:
            for event in super().run_trial(request):
                if isinstance(event, TrialFinished):
                    crashed = msgspec.structs.replace(
                        event.trial, outcome=Outcome.CRASHED, prefill=(), decode=()
                    )
                    yield TrialFinished(index=0, trial=crashed)
                else:
                    yield event

    result = search(Crashing(machine(free_bytes=3 * GIB)))
    assert result.status is SweepStatus.FAILED
    assert result.recommended is None
    assert result.error is not None
    assert len(result.trials) <= 5  # one of them a repetition: the first might have been chance


def test_fits_is_not_asked_to_allocate_twice() -> None:
    """The dry run is asked for few distinct settings: a real one takes 10–25 ms."""
    rig, asked = SimulatedRig(machine(free_bytes=3 * GIB)), set[Settings]()
    plan, trials = plan_for(rig), list[Trial]()

    def fits(settings: Settings) -> MemoryEstimate:
        asked.add(settings)
        return rig.dry_run(settings)

    while isinstance(step := next_step(plan, fits, tuple(trials)), RunTrial):
        trials.append(run_one(rig, step.request))
    assert len(asked) <= 200


# 60 blocks with experts at 5 % noise: 18 plain layers are 10 % faster than 51 expert layers in RAM
PLAIN_BEATS_EXPERTS = 1004
# the same the other way round: experts in RAM are 8 % faster, and need a little less memory
EXPERTS_BEAT_PLAIN = 1063


@pytest.mark.parametrize("seed", [PLAIN_BEATS_EXPERTS, EXPERTS_BEAT_PLAIN])
def test_kinds_of_placement_are_not_one_curve(seed: int) -> None:
    """Neither kind wins only because it needs a few MiB more than a faster one of the other."""
    rig = SimulatedRig(random_machine(seed))
    request = SweepRequest()
    result = search(rig, request)
    assert result.recommended is not None
    settings = result.recommended.settings
    time_s = rig.true_request_s(settings, request)
    assert time_s is not None
    assert time_s <= 1.05 * rig.exhaustive_best(request, settings.n_ctx).request_s
