"""Runs a search on a rig: a generator whose every yield is progress and a cancel point."""

import time
from collections.abc import Generator, Iterator, Sequence

import msgspec

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import (
    SweepEvent,
    SweepFinished,
    SweepPaused,
    SweepPlanned,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from app.domain.memory import MemoryEstimate, MemorySource, Verdict
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import Done, SweepPlan, SweepStatus
from app.domain.trial import Trial, TrialRequest
from app.domain.units import NS_PER_S
from app.rig.interface import Rig
from app.sweep.choose import choose
from app.sweep.policy import next_step

POWER_CHANGED = "power_source_changed"
MODE_CHANGED = "power_mode_changed"
DryRuns = dict[Settings, MemoryEstimate]


def run_sweep(
    plan: SweepPlan,
    rig: Rig,
    prior_trials: Sequence[Trial] = (),
    dry_runs: DryRuns | None = None,
) -> Iterator[SweepEvent]:
    """Yield the events of a search; the last one holds the result.

    Closing the generator abandons the running trial; ``cancelled`` then gives the result of
    what is measured so far. Nothing the engine does
    ends the search except through a trial's outcome; where it cannot be asked any more, the search
    ends with what is measured.

    Args:
        plan: What to do.
        rig: Where to run it.
        prior_trials: Trials of an interrupted search with the same plan.
        dry_runs: Filled with every answer of the dry run (a recording wants them).
    """
    known: DryRuns = {} if dry_runs is None else dry_runs

    def fits(settings: Settings) -> MemoryEstimate:
        if settings not in known:
            known[settings] = rig.dry_run(settings)
        return known[settings]

    trials = list(prior_trials)
    first_load = max((t.load_id for t in trials), default=0)
    began_s, began_ns = rig.now_s(), time.perf_counter_ns()
    yield SweepPlanned(plan=plan)
    while True:
        try:
            step = next_step(plan, fits, tuple(trials))
        except EnvironmentProblem as problem:
            if not trials:
                raise
            # the engine cannot be asked any more (a device is gone): what was measured counts
            yield cancelled(plan, rig, trials, known, problem.info)
            return
        if isinstance(step, Done):
            result = choose(plan, fits, tuple(trials), step.status, step.error)
            yield SweepFinished(
                result=msgspec.structs.replace(
                    result,
                    measured_s=(time.perf_counter_ns() - began_ns) / NS_PER_S,
                    virtual_s=rig.now_s() - began_s,
                )
            )
            return
        index = len(trials)
        yield TrialStarted(index=index, request=step.request)
        trial = yield from _run(rig, step.request)
        trial = msgspec.structs.replace(trial, load_id=trial.load_id + first_load)
        trials.append(trial)
        yield TrialFinished(index=index, trial=trial)
        seen = trial.telemetry
        if seen is not None and seen.disturbed in (POWER_CHANGED, MODE_CHANGED):
            # on another power source or mode speeds are others: the user says whether to go on
            yield SweepPaused(code=seen.disturbed)


def _run(rig: Rig, request: TrialRequest) -> Generator[TrialProgress, None, Trial]:
    """Run one trial; a rig that ends without a result counts as a crash."""
    events = rig.run_trial(request)
    for event in events:
        if isinstance(event, TrialFinished):
            return event.trial
        yield event
    message = "The trial ended without a result."
    return Trial(
        request=request,
        load_id=1,
        outcome=Outcome.CRASHED,
        error=ErrorInfo(code="no_result", message=message),
    )


def cancelled(
    plan: SweepPlan,
    rig: Rig,
    trials: Sequence[Trial],
    dry_runs: DryRuns,
    error: ErrorInfo | None = None,
) -> SweepFinished:
    """Return the end of a search that was stopped early, with what was measured.

    Args:
        plan: The plan that ran.
        rig: The rig it ran on; asked only for dry runs that are not in ``dry_runs``.
        trials: What was measured.
        dry_runs: Answers of the dry run so far.
        error: Cause, when it was not the user who stopped it.
    """

    def fits(settings: Settings) -> MemoryEstimate:
        try:
            return dry_runs[settings] if settings in dry_runs else rig.dry_run(settings)
        except EnvironmentProblem as problem:
            note, source = problem.info.message, MemorySource.DRY_RUN
            return MemoryEstimate(devices=(), source=source, verdict=Verdict.UNKNOWN, note=note)

    status = SweepStatus.CANCELLED if error is None else SweepStatus.FAILED
    result = choose(plan, fits, tuple(trials), status, error)
    spent_s = sum(t.elapsed_s for t in trials)
    return SweepFinished(
        result=msgspec.structs.replace(result, measured_s=spent_s, virtual_s=spent_s)
    )
