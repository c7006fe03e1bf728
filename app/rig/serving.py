"""A worker that serves one model over HTTP on this machine."""

from collections.abc import Callable, Generator

from app.domain.errors import EnvironmentProblem
from app.domain.events import (
    ServerEvent,
    ServerProgress,
    ServerStarted,
    ServerStopped,
    TrialProgress,
)
from app.domain.model import ModelSpec
from app.domain.pacing import Pace
from app.domain.settings import Settings
from app.rig.death import explain, problem
from app.rig.ends import WorkerEnd
from app.rig.process import OTHER_QUESTION, Launch, WorkerProcess, start_worker
from app.worker import protocol
from app.worker.protocol import Failed

_FOREVER_S = float("inf")


def serve_model(
    launch: Launch,
    model: ModelSpec,
    settings: Settings,
    *,
    alias: str,
    port: int,
    token: str,
    pace: Callable[[], Pace] = Pace,
) -> Generator[ServerEvent, None, None]:
    """Load ``model`` and serve it; closing the generator stops the server.

    The last event is ``ServerStopped``: the server went away by itself. An event comes every
    100 ms, so that stopping takes effect soon.

    Args:
        launch: How workers are started.
        model: What to serve.
        settings: On which settings.
        alias: Name of the model towards clients.
        port: Port on 127.0.0.1; 0 = any free one.
        token: What clients must send as bearer token.
        pace: How much of the time to work now; asked at every event.

    Raises:
        EnvironmentProblem: The engine or the server does not start.
    """
    try:
        worker = yield from _started(launch)
    except WorkerEnd as end:
        raise problem(end) from end
    request = protocol.Serve(
        model_path=model.path, settings=settings, alias=alias, port=port, token=token
    )
    try:
        load_s = launch.budgets.silence_s("load", model.file_bytes, 0)
        yield from _serve(worker, request, load_s, pace)
    finally:
        worker.close()


def _started(launch: Launch) -> Generator[ServerEvent, None, WorkerProcess]:
    starting = start_worker(launch)
    try:
        while True:
            next(starting)
            yield TrialProgress(phase="start")
    except StopIteration as stop:
        worker: WorkerProcess = stop.value
        return worker
    finally:
        starting.close()


def _serve(
    worker: WorkerProcess, request: protocol.Serve, load_s: float, pace: Callable[[], Pace]
) -> Generator[ServerEvent, None, None]:
    is_up, last, told = False, ServerProgress(n_requests=0, n_active=0), Pace()
    exchange = worker.ask(request, "load", lambda _: _FOREVER_S if is_up else load_s)
    try:
        while True:
            match next(exchange):
                case protocol.ServeStarted() as reply:
                    is_up = True
                    yield ServerStarted(
                        port=reply.port, effective=reply.effective, devices=reply.devices
                    )
                case protocol.ServeProgress(n_requests=n_requests, n_active=n_active):
                    last = ServerProgress(n_requests=n_requests, n_active=n_active)
                    yield last
                case protocol.LoadProgress(frac=frac):
                    yield TrialProgress(phase="load", frac=frac)
                case _:
                    yield last if is_up else TrialProgress(phase="load")
            if is_up and (wanted := pace()) != told:
                told = wanted
                worker.tell(protocol.SetPace(pace=told))
    except StopIteration as stop:
        reply = stop.value
        if isinstance(reply, protocol.ServeFinished):
            yield ServerStopped(n_requests=reply.n_requests)
            return
        error = reply.error if isinstance(reply, Failed) else OTHER_QUESTION
        if not is_up:
            raise EnvironmentProblem(error.code, error.message, error.hint) from None
        yield ServerStopped(n_requests=last.n_requests, error=error)
    except WorkerEnd as end:
        if not is_up:
            raise problem(end, "load") from end
        yield ServerStopped(n_requests=last.n_requests, error=explain(end, "decode").error)
    finally:
        exchange.close()
