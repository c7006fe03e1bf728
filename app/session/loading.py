"""Has the weights of an answer loaded again, for what is looked at beside trials."""

from collections.abc import Generator

from app.domain.errors import ErrorInfo
from app.domain.events import TrialFinished, TrialProgress
from app.domain.settings import Settings
from app.domain.trial import TrialRequest, Workload
from app.rig.workers import WorkerRig


def load(
    settings: Settings, rig: WorkerRig, stage: str
) -> Generator[TrialProgress, None, ErrorInfo | None]:
    """Load the weights of ``settings`` where others are loaded, or none; return why it failed.

    A short trial is the way to load.
    """
    if rig.loaded is not None and rig.loaded.load_key == settings.load_key:
        return None
    request = TrialRequest(
        stage=stage,
        settings=settings,
        workload=Workload(n_prompt=16, n_gen=8),
        min_reps=1,
        max_reps=1,
    )
    error = None
    for event in rig.run_trial(request):
        if isinstance(event, TrialProgress):
            yield event
        elif isinstance(event, TrialFinished):
            error = event.trial.error
    return error
