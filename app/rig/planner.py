"""A kept worker that answers dry runs."""

from app.domain.errors import ErrorInfo
from app.domain.machine import EngineInfo
from app.domain.memory import DeviceMemory
from app.domain.settings import Settings
from app.rig.death import explain, problem
from app.rig.ends import WorkerEnd
from app.rig.process import (
    OTHER_QUESTION,
    Launch,
    WorkerProcess,
    drain,
    start_worker,
)
from app.worker.protocol import DryRun, DryRunFinished, Failed

Planned = tuple[DeviceMemory, ...] | ErrorInfo


class Planner:
    """Asks the engine what configurations of one model would allocate."""

    def __init__(self, launch: Launch, model_path: str) -> None:
        """Start nothing yet."""
        self._launch = launch
        self._model_path = model_path
        self._worker: WorkerProcess | None = None

    def engine(self) -> EngineInfo:
        """Return the engine's build and devices.

        Raises:
            EnvironmentProblem: No worker can be had.
        """
        worker = self._running()
        assert worker.engine is not None
        return worker.engine

    def plan(self, settings: Settings) -> Planned:
        """Return the need per device, or why the engine refuses (an abort means no).

        Raises:
            EnvironmentProblem: No worker can be had.
        """
        return plan_with(self._running(), self._model_path, settings)

    @property
    def holds_device(self) -> bool:
        """Whether its process holds a driver context or a remote connection now."""
        return bool(self._worker and self._worker.engine and self._worker.engine.devices)

    def release(self) -> None:
        """End the process; the next question starts another one."""
        if self._worker:
            self._worker.close()
            self._worker = None

    def _running(self) -> WorkerProcess:
        if self._worker and not self._worker.can_be_reused():
            self.release()
        if self._worker is None:
            try:
                self._worker = drain(start_worker(self._launch))
            except WorkerEnd as end:
                raise problem(end) from end
        return self._worker


def plan_with(worker: WorkerProcess, model_path: str, settings: Settings) -> Planned:
    """Return the dry run of ``settings`` by ``worker``; its death is an answer, too."""
    request = DryRun(model_path=model_path, settings=settings)
    budget_s = worker.budgets.dry_run_s
    try:
        reply = drain(worker.ask(request, "dry_run", lambda _: budget_s))
    except WorkerEnd as end:
        worker.stop_soon()
        return explain(end, "dry_run").error
    match reply:
        case DryRunFinished():
            return reply.refused or reply.devices
        case Failed():
            return reply.error
        case _:
            return OTHER_QUESTION


def ask_engine(launch: Launch) -> EngineInfo:
    """Return the engine's build and devices from a worker that ends again at once.

    Raises:
        EnvironmentProblem: No worker can be had.
    """
    planner = Planner(launch, "")
    try:
        return planner.engine()
    finally:
        planner.release()
