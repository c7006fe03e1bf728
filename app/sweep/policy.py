"""The search itself: from a plan and the trials so far to the next trial.

Pure: the list of trials is the only state, so resuming, recording and replaying feed that list.
The stages in ``script`` ask questions; the first without an answer among the trials is the step.
"""

from collections.abc import Callable

from app.domain.memory import MemoryEstimate
from app.domain.settings import Settings
from app.domain.sweep import Done, RunTrial, Step, SweepPlan, SweepStatus
from app.domain.trial import Trial, TrialRequest
from app.sweep.script import script
from app.sweep.search import Search

POLICY_VERSION = "1"  # changes whenever the same trials would lead elsewhere


def next_step(
    plan: SweepPlan, fits: Callable[[Settings], MemoryEstimate], trials: tuple[Trial, ...]
) -> Step:
    """Return the next trial to run, or that the search is done.

    Args:
        plan: What was asked and what is known.
        fits: The dry run; asked often for the same settings, so remember its answers.
        trials: Everything measured so far, in order.
    """
    search = Search(plan, fits)
    questions = script(search)
    left = list(trials)
    try:
        request = next(questions)
        while True:
            trial = _answer(left, request)
            if trial is None:
                return _within_budget(search, left, request)
            request = questions.send(trial)
    except StopIteration:
        status = SweepStatus.BUDGET_REACHED if search.is_cut else SweepStatus.COMPLETE
        return Done(status=status)


def _answer(left: list[Trial], request: TrialRequest) -> Trial | None:
    """Take the first trial that answers ``request`` out of ``left``."""
    for i, trial in enumerate(left):
        same = trial.request.settings == request.settings
        if same and trial.request.workload == request.workload:
            return left.pop(i)
    return None


def _within_budget(search: Search, left: list[Trial], request: TrialRequest) -> Step:
    """Return ``request`` unless trials that no longer have a question used the budget up."""
    every = [*search.trials, *left]
    loads = len({t.load_id for t in every})
    over = loads > search.budget.max_loads
    if left and not search.is_loaded(request.settings):
        over = over or loads == search.budget.max_loads
    if over or sum(t.elapsed_s for t in every) > search.budget.max_s:
        return Done(status=SweepStatus.BUDGET_REACHED)
    return RunTrial(request=request)
