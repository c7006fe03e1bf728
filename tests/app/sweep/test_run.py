"""The generator: events in order, resume, cancel, a rig that ends without a word."""

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import pytest
from typing_extensions import override

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import (
    RigEvent,
    SweepFinished,
    SweepPlanned,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from app.domain.memory import MemoryEstimate
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import (
    BUDGETS,
    BudgetName,
    RunTrial,
    SearchSpace,
    SweepRequest,
    SweepStatus,
)
from app.domain.trial import Trial, TrialRequest
from app.domain.units import GIB
from app.rig.simulated import SimulatedRig
from app.sweep.policy import next_step
from app.sweep.run import DryRuns, cancelled, run_sweep
from tests.fakes.rigs import machine, plan_for, search

QUICK = SweepRequest(budget=BudgetName.QUICK)


def small() -> SimulatedRig:
    return SimulatedRig(machine(free_bytes=3 * GIB))


def test_events_in_order() -> None:
    """Plan first, each trial started and finished with its number, the result last."""
    rig = small()
    events = list(run_sweep(plan_for(rig, QUICK), rig))
    assert isinstance(events[0], SweepPlanned)
    assert isinstance(events[-1], SweepFinished)
    started = [e.index for e in events if isinstance(e, TrialStarted)]
    finished = [e.index for e in events if isinstance(e, TrialFinished)]
    assert started == finished == list(range(len(started)))
    assert any(isinstance(e, TrialProgress) for e in events)
    result = events[-1].result
    assert len(result.trials) == len(finished)
    assert result.virtual_s == pytest.approx(sum(t.elapsed_s for t in result.trials))
    assert result.measured_s < result.virtual_s


def test_trials_without_a_question_never_cost_a_load_too_many() -> None:
    """What another version or request measured counts: a question of an earlier load is dropped."""
    rig = small()
    plan, whole = plan_for(rig, QUICK), search(small(), QUICK).trials
    for index, trial in enumerate(whole):
        work = msgspec.structs.replace(trial.request.workload, n_prompt=1)
        request = msgspec.structs.replace(trial.request, workload=work)
        other = msgspec.structs.replace(trial, request=request)
        step = next_step(plan, rig.dry_run, (*whole[:index], other, *whole[index + 1 :]))
        if isinstance(step, RunTrial):
            is_there = step.request.settings.load_key == whole[-1].request.settings.load_key
            loads = len({t.load_id for t in whole}) + (not is_there)
            assert loads <= BUDGETS[BudgetName.QUICK].max_loads, index


@pytest.mark.parametrize("done", [1, 4, 7])
def test_resumed_search_repeats_nothing(done: int) -> None:
    """After ``done`` stored trials a new rig goes on: no trial twice, the same answer."""
    whole = search(small(), QUICK)
    rig, finished = small(), list[Trial]()
    result = None
    for event in run_sweep(plan_for(rig, QUICK), rig, whole.trials[:done]):
        if isinstance(event, TrialFinished):
            finished.append(event.trial)
        if isinstance(event, SweepFinished):
            result = event.result
    assert result is not None
    assert result.trials[:done] == whole.trials[:done]
    assert result.trials[done:] == tuple(finished)
    again = [t.request for t in finished if t.request in [w.request for w in whole.trials[:done]]]
    assert again == []
    assert result.status is SweepStatus.COMPLETE
    assert result.recommended is not None
    assert whole.recommended is not None
    chosen, before = result.recommended.settings, whole.recommended.settings
    assert chosen.n_gpu_layers == before.n_gpu_layers
    # the weights are gone with the old process: its loads are not counted twice, ours are new
    assert {t.load_id for t in finished}.isdisjoint(t.load_id for t in whole.trials[:done])


def test_stopped_search_keeps_what_was_measured() -> None:
    """Closing the generator after some trials leaves a cancelled result with an answer."""
    rig, trials, dry_runs = small(), list[Trial](), DryRuns()
    plan = plan_for(rig, QUICK)
    events = run_sweep(plan, rig, (), dry_runs)
    for event in events:
        if isinstance(event, TrialFinished):
            trials.append(event.trial)
        if len(trials) == 3:
            break
    events.close()  # type: ignore[attr-defined]
    result = cancelled(plan, rig, trials, dry_runs).result
    assert result.status is SweepStatus.CANCELLED
    assert result.recommended is not None
    assert result.trials == tuple(trials)


def test_stopped_before_anything_was_measured() -> None:
    """A search that was cancelled at once is cancelled, not failed."""
    rig = small()
    result = cancelled(plan_for(rig), rig, [], {}).result
    assert result.status is SweepStatus.CANCELLED
    assert result.recommended is None
    assert result.error is None


def test_rig_that_ends_without_a_result_is_a_crash() -> None:
    """A trial whose events just stop counts as crashed, and the search ends with a cause."""

    class Silent(SimulatedRig):
        @override
        def run_trial(self, request: TrialRequest) -> Iterator[Any]:
            yield TrialProgress(phase="load")

    result = search(Silent(machine()), QUICK)
    assert result.status is SweepStatus.FAILED
    assert {t.outcome for t in result.trials} == {Outcome.CRASHED}
    assert result.error is not None


class Without(SimulatedRig):
    """The machine without its card; some trials end as ``ends`` says, by their number."""

    ends: ClassVar[dict[int, ErrorInfo]] = {}

    @override
    def space(self) -> SearchSpace:
        return msgspec.structs.replace(super().space(), devices=())

    @override
    def run_trial(self, request: TrialRequest) -> Iterator[RigEvent]:
        self.n_trials = getattr(self, "n_trials", -1) + 1
        number = self.n_trials
        for event in super().run_trial(request):
            if isinstance(event, TrialFinished) and number in self.ends:
                self.close()
                trial = msgspec.structs.replace(
                    event.trial, outcome=Outcome.CRASHED, prefill=(), decode=(),
                    error=self.ends[number],
                )  # fmt: skip
                yield TrialFinished(index=0, trial=trial)
            else:
                yield event


def ending(ends: dict[int, ErrorInfo]) -> SimulatedRig:
    rig = Without(machine(free_bytes=3 * GIB))
    rig.ends = ends  # type: ignore[misc]
    return rig


KILLED = ErrorInfo(code="killed", message="The engine was killed from outside in decode.")
LOST = ErrorInfo(code="file_lost", message="The model's file changed or vanished while in use.")


def test_one_crash_is_asked_again() -> None:
    """A worker killed in the first full trial costs one more load, not the search."""
    result = search(ending({1: KILLED}), QUICK)
    assert result.status is SweepStatus.COMPLETE
    assert result.recommended is not None
    assert result.trials[1].request == result.trials[2].request
    assert result.n_model_loads == 2


def test_repeated_crashes_leave_the_shallower_answer() -> None:
    """Where nothing ran at the goal's depth, what ran at all is recommended, and said so."""
    result = search(ending(dict.fromkeys(range(1, 40), KILLED)), QUICK)
    assert result.recommended is not None
    assert result.status is not SweepStatus.FAILED
    assert "measured_shallower" in {r.code for r in result.reasons}
    assert len(result.trials) <= 4


def test_nothing_ran_names_the_crash() -> None:
    """The cause is the crash; a smaller model is no advice against it."""
    result = search(ending(dict.fromkeys(range(40), KILLED)), QUICK)
    assert result.status is SweepStatus.FAILED
    assert result.error is not None
    assert "killed from outside" in result.error.message
    assert "smaller model" not in result.error.hint


@pytest.mark.parametrize("at", [0, 3])
def test_vanished_model_ends_the_search(at: int) -> None:
    """Without its file there is nothing to try: the search ends at that trial and says why."""
    result = search(ending(dict.fromkeys(range(at, 40), LOST)), QUICK)
    assert result.status is SweepStatus.FAILED
    assert result.error is not None
    assert result.error.code == "file_lost"
    assert len(result.trials) == at + 1


def test_one_slow_trial_over_the_time_is_budget_reached() -> None:
    """A search whose last trial took longer than its budget does not call itself complete."""

    class Slow(Without):
        @override
        def run_trial(self, request: TrialRequest) -> Iterator[RigEvent]:
            for event in super().run_trial(request):
                if isinstance(event, TrialFinished):
                    slow = msgspec.structs.replace(event.trial, elapsed_s=400.0)
                    yield TrialFinished(index=0, trial=slow)
                else:
                    yield event

    assert search(Slow(machine()), QUICK).status is SweepStatus.BUDGET_REACHED


class Unplugged(SimulatedRig):
    """A machine whose engine cannot be asked any more once some trials have run."""

    def __init__(self, n_trials: int) -> None:
        super().__init__(machine(free_bytes=3 * GIB))
        self._left = n_trials

    @override
    def dry_run(self, settings: Settings) -> MemoryEstimate:
        if not self._left:
            raise EnvironmentProblem("remote_silent", "The device does not answer.", "Look there.")
        return super().dry_run(settings)

    @override
    def run_trial(self, request: TrialRequest) -> Iterator[RigEvent]:
        self._left -= 1
        yield from super().run_trial(request)


def test_a_device_that_is_gone_leaves_what_was_measured() -> None:
    """The engine cannot even start: the search stops with its trials, an answer and the cause."""
    *_, last = run_sweep(plan_for(Unplugged(9)), Unplugged(2))
    assert isinstance(last, SweepFinished)
    result = last.result
    assert result.status is SweepStatus.FAILED
    assert len(result.trials) == 2
    assert result.recommended is not None
    assert result.error is not None
    assert result.error.code == "remote_silent"
