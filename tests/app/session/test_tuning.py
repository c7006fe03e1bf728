"""A recording that fails costs neither a search nor its result."""

import threading
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.events import SweepFinished, TrialFinished
from app.domain.outcome import Outcome
from app.domain.sweep import BudgetName, Goal, SweepRequest, SweepResult, SweepStatus
from app.rig.simulated import SimulatedRig
from app.session.tuning import Tuning, advised, follow, with_reserve
from app.store import Store, sweep_fingerprint
from app.sweep.policy import POLICY_VERSION
from tests.fakes import situations
from tests.fakes.records import a_machine, a_model, a_trial
from tests.fakes.rigs import machine, plan_for, point, replay

QUICK = SweepRequest(budget=BudgetName.QUICK)


def test_no_folder_for_the_recording_ends_before_anything_runs(tmp_path: Path) -> None:
    """The folder is looked at first: no trial runs whose recording has nowhere to go."""
    rig = SimulatedRig(machine())
    events = follow(
        plan_for(rig, QUICK), rig, threading.Event(), record=tmp_path / "none" / "out.json"
    )
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        next(events)
    assert rig.now_s() == 0


def test_failed_recording_keeps_the_result(tmp_path: Path) -> None:
    """A folder that vanishes meanwhile: the answer comes, with the reason beside it."""
    rig, folder = SimulatedRig(machine()), tmp_path / "gone"
    folder.mkdir()
    result = None
    for event in follow(plan_for(rig, QUICK), rig, threading.Event(), record=folder / "out.json"):
        if isinstance(event, TrialFinished) and folder.is_dir():
            folder.rmdir()
        if isinstance(event, SweepFinished):
            result = event.result
    assert result is not None
    assert result.recommended is not None
    assert result.status == "complete"
    assert result.error is not None
    assert result.error.code == "not_writable"


def test_a_result_carries_the_advice_on_its_trials() -> None:
    """A spilled trial is explained wherever the result is shown, stored ones included."""
    situation = situations.plan()
    assert situation.plan is not None
    spilled = situations.trial(growth=300 << 20)
    result = SweepResult(status=SweepStatus.COMPLETE, recommended=None, trials=(spilled,))
    found = advised(result, situation.machine, situation.plan)
    assert [finding.id for finding in found.findings] == ["spilled"]


def test_after_a_crash_the_systems_log_is_read_again() -> None:
    """A driver reset that Windows noted during the search explains the crashed trial."""
    situation = situations.plan()
    assert situation.plan is not None
    crashed = situations.crashed("2026-01-02T03:04:09Z")
    result = SweepResult(status=SweepStatus.COMPLETE, recommended=None, trials=(crashed,))
    settings = msgspec.structs.replace(situations.windows(), resets=(situations.reset(),))
    host = situations.host(os="windows", windows=settings)
    found = advised(result, situation.machine, situation.plan, lambda: host).findings
    assert [finding.id for finding in found] == ["reset_in_run"]
    assert advised(result, situation.machine, situation.plan).findings == ()


def test_a_reserve_is_taken_from_the_first_recorded_device() -> None:
    """A replay keeps it free, never below nothing; without one the recording is as it was."""
    made = replay([point(0, 10.0, 0)], n_layer=4, free_bytes=1000)
    assert with_reserve(made, 0) is made
    assert with_reserve(made, 400).devices[0].free_bytes == 600
    assert with_reserve(made, 4000).devices[0].free_bytes == 0


def interrupted(store: Store, request: SweepRequest, policy_version: int) -> int:
    """Store a search of ``request`` that was killed after one trial."""
    sweep = store.start_sweep(
        request=request,
        plan=plan_for(SimulatedRig(machine()), request),
        fingerprint=sweep_fingerprint(a_model(), a_machine(), request),
        model=a_model(),
        machine=a_machine(),
        policy_version=policy_version,
    )
    store.add_trial(sweep, a_trial())
    return sweep


@pytest.mark.parametrize(
    ("before", "versions_ago", "changed"),
    [
        (QUICK, 0, None),
        (SweepRequest(budget=BudgetName.THOROUGH), 0, None),
        (QUICK, 1, ("changed_policy",)),
        (SweepRequest(pinned={"n_ubatch": 256}), 0, ("changed_request",)),
        (SweepRequest(kv_types=("f16", "q8_0")), 1, ("changed_policy", "changed_request")),
        (SweepRequest(goal=Goal.AGENT), 0, ("changed_goal",)),
    ],
)
def test_only_the_same_search_is_gone_on_with(
    tmp_path: Path, before: SweepRequest, versions_ago: int, changed: tuple[str, ...] | None
) -> None:
    """Another budget may follow; another policy or question begins anew, says so, loses nothing."""
    with Store.open(tmp_path / "rigtune.db") as store:
        sweep = interrupted(store, before, int(POLICY_VERSION) - versions_ago)
        tuning = Tuning(store, a_model(), a_machine(), QUICK)
        if changed is None:
            assert tuning.interrupted() == (sweep, (a_trial(),))
        else:
            assert tuning.interrupted() is None
            assert tuning.changes() == changed
        assert store.trials(sweep) == (a_trial(),)


def test_another_search_in_between_is_passed_over(tmp_path: Path) -> None:
    """With the same options as before it goes on, whatever was searched with others since."""
    with Store.open(tmp_path / "rigtune.db") as store:
        first = interrupted(store, QUICK, int(POLICY_VERSION))
        other = interrupted(store, SweepRequest(pinned={"n_ubatch": 256}), int(POLICY_VERSION))
        done = SweepResult(status=SweepStatus.COMPLETE, recommended=None)
        store.finish_sweep(other, done)
        tuning = Tuning(store, a_model(), a_machine(), QUICK)
        assert tuning.interrupted() == (first, (a_trial(),))


def test_a_search_of_another_version_keeps_to_two_launches_without_memory(tmp_path: Path) -> None:
    """What an older policy measured, two failed launches included, is stored and not mixed in."""
    reported = machine(lie_frac=0.12)
    with Store.open(tmp_path / "rigtune.db") as store:
        old = interrupted(store, QUICK, int(POLICY_VERSION) - 1)
        failed = msgspec.structs.replace(a_trial(1), outcome=Outcome.OUT_OF_MEMORY)
        for _ in range(2):
            store.add_trial(old, failed)
        tuning = Tuning(store, a_model(), a_machine(), QUICK)
        rig = SimulatedRig(reported)
        events = tuning.run(
            plan_for(rig, QUICK), rig, threading.Event(), resumed=tuning.interrupted()
        )
        *_, last = events
        assert isinstance(last, SweepFinished)
        outcomes = [t.outcome for t in last.result.trials]
        assert outcomes.count(Outcome.OUT_OF_MEMORY) <= 2
        assert last.result.recommended is not None
        assert last.result.n_model_loads <= 6
        assert len(store.trials(old)) == 3


@pytest.mark.parametrize(("is_left", "code"), [(True, "model_replaced"), (False, "model_gone")])
def test_a_model_that_changes_meanwhile_ends_the_search(
    tmp_path: Path, is_left: bool, code: str
) -> None:
    """Another file at the path, or none: what was measured is kept, and what happened is said."""
    model = tmp_path / "model.gguf"
    model.write_bytes(b"first")
    spec = msgspec.structs.replace(a_model(), path=str(model), files=(str(model),))
    rig, found = SimulatedRig(machine()), None
    with Store.open(tmp_path / "rigtune.db") as store:
        tuning = Tuning(store, spec, a_machine(), QUICK)
        for event in tuning.run(plan_for(rig, QUICK), rig, threading.Event()):
            if isinstance(event, TrialFinished) and model.exists():
                model.unlink()
                if is_left:
                    model.write_bytes(b"another")
            if isinstance(event, SweepFinished):
                found = event.result
        assert found is not None
        assert (found.status, found.error and found.error.code) == (SweepStatus.FAILED, code)
        assert len(store.trials(1)) == len(found.trials)
        assert found.trials
