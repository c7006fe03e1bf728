"""The search itself: from a plan and the trials so far to the next trial.

Pure: the list of trials is the only state, so resuming, recording and replaying feed that list.
The stages in ``script`` ask questions; the first without an answer among the trials is the step.
"""

from collections.abc import Callable

from app.domain.memory import MemoryEstimate
from app.domain.settings import Settings
from app.domain.sweep import Done, RunTrial, Step, SweepPlan, SweepStatus
from app.domain.trial import Trial, TrialRequest
from app.sweep.known import leaves_loaded
from app.sweep.script import script
from app.sweep.search import Search

POLICY_VERSION = "8"  # changes whenever the same trials would lead elsewhere
MODEL_GONE = (
    "file_lost",
    "file_not_found",
    "file_replaced",
)  # nothing is left to try without the model's file


def next_step(
    plan: SweepPlan, fits: Callable[[Settings], MemoryEstimate], trials: tuple[Trial, ...]
) -> Step:
    """Return the next trial to run, or that the search is done.

    Args:
        plan: What was asked and what is known.
        fits: The dry run; asked often for the same settings, so remember its answers.
        trials: Everything measured so far, in order.
    """
    lost = next((t.error for t in trials if t.error and t.error.code in MODEL_GONE), None)
    if lost is not None:
        return Done(status=SweepStatus.FAILED, error=lost)
    search = Search(plan, fits)
    questions = script(search)
    left = list(trials)
    try:
        request = next(questions)
        while True:
            trial = _answer(left, request)
            if trial is None:
                return _within_budget(search, trials, left, request)
            request = questions.send(trial)
    except StopIteration:
        is_cut = search.is_cut or search.elapsed_s > search.budget.max_s
        status = SweepStatus.BUDGET_REACHED if is_cut else SweepStatus.COMPLETE
        return Done(status=status)


def _answer(left: list[Trial], request: TrialRequest) -> Trial | None:
    """Take the first trial that answers ``request`` out of ``left``."""
    for i, trial in enumerate(left):
        same = trial.request.settings == request.settings
        if same and trial.request.workload == request.workload:
            return left.pop(i)
    return None


def _within_budget(
    search: Search, trials: tuple[Trial, ...], left: list[Trial], request: TrialRequest
) -> Step:
    """Return ``request`` unless trials that no longer have a question used the budget up.

    What is loaded is then what the last trial loaded, whichever question came last.
    """
    every = [*search.trials, *left]
    loads = len({t.load_id for t in every})
    over = loads > search.budget.max_loads
    if left and not leaves_loaded(trials[-1], request.settings):
        over = over or loads == search.budget.max_loads
    if over or sum(t.elapsed_s for t in every) > search.budget.max_s:
        return Done(status=SweepStatus.BUDGET_REACHED)
    return RunTrial(request=request)
