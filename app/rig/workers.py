"""The rig of real worker processes."""

import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from app.domain.errors import ErrorInfo
from app.domain.events import RigEvent, TrialFinished, TrialProgress
from app.domain.machine import EngineDevice, EngineInfo
from app.domain.memory import MemoryEstimate, MemorySource, Verdict
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.domain.sweep import SearchDevice, SearchHost, SearchModel, SearchSpace
from app.domain.trial import TelemetryWindow, TrialRequest
from app.domain.units import MIB
from app.rig.attempt import Attempt
from app.rig.cooling import CoolDown
from app.rig.death import explain
from app.rig.ends import WorkerEnd, WorkerSilent
from app.rig.footprint import Footprint, FootprintMeter, FreeNow
from app.rig.planner import Planned, Planner, plan_with
from app.rig.process import TICK_S, Final, Launch, WorkerProcess, start_worker
from app.worker import protocol
from app.worker.protocol import Failed, Message, Reply

Plan = Callable[[Settings], Planned]
Judge = Callable[[Settings, Plan], MemoryEstimate]
Learn = Callable[[Footprint], None]
Steps = Generator[Reply | None, None, None]

# guess of a first load, until one was measured, bytes per second
_LOAD_BYTES_S = 500e6
# drivers give memory back some time after a process has ended
_MEMORY_BACK_S = 10.0
_MEMORY_BACK_BYTES = 64 * MIB
_GONE_S = 20.0


class TrialWindow(Protocol):
    """What telemetry sees while a trial runs."""

    @property
    def result(self) -> TelemetryWindow | None:
        """What was seen, once the window is closed."""
        ...

    def own(self, pid: int) -> None:
        """Name the engine's process."""
        ...

    def begin(self) -> None:
        """Note that the weights are in place and the measured part begins."""
        ...


OpenWindow = Callable[[Collection[int]], AbstractContextManager[TrialWindow]]


class WorkerRig:
    """Runs trials in worker processes: one child holds the weights, another plans.

    Used by one thread at a time.
    """

    def __init__(
        self,
        model: ModelSpec,
        host: SearchHost,
        *,
        devices: tuple[str, ...] | None = None,
        launch: Launch | None = None,
        window: OpenWindow | None = None,
        free_now: FreeNow | None = None,
        judge: Judge | None = None,
        learn: Learn | None = None,
        cool_down: CoolDown | None = None,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            model: What to run.
            host: CPU and RAM.
            devices: Engine devices the search may use; ``None`` = every GPU, each once.
            launch: How workers are started.
            window: Opens a telemetry window for the processes named.
            free_now: Free bytes of an engine device now, by probe; ``None`` = as at ``hello``.
            judge: Asks ``plan`` and adds verdicts; without it they are ``unknown``.
            learn: Told what each undisturbed load took beyond the engine's buffers.
            cool_down: Holds a trial back while a device is hot from throttling.
        """
        self._model = model
        self._host = host
        self._only = devices
        self._launch = launch or Launch()
        self._open_window = window
        self._free_now = free_now
        self._judge = judge
        self._learn = learn
        self._meter: FootprintMeter | None = None
        self._cool_down = cool_down
        self._planner = Planner(self._launch, model.path)
        self._worker: WorkerProcess | None = None
        self._ended: list[WorkerProcess] = []
        self._loaded: tuple[object, ...] | None = None
        self._load_id = 0
        self._load_s: float | None = None
        self._devices: tuple[SearchDevice, ...] | None = None

    def engine(self) -> EngineInfo:
        """Return the engine's build and devices.

        Raises:
            EnvironmentProblem: No worker can be had.
        """
        worker = self._worker
        return worker.engine if worker and worker.engine else self._planner.engine()

    def space(self) -> SearchSpace:
        """Return model, host and devices; free memory is that without our own weights.

        Raises:
            EnvironmentProblem: No worker can be had.
        """
        model = self._model
        return SearchSpace(
            model=SearchModel(
                name=model.name,
                n_layer=model.n_layer,
                n_expert=model.n_expert,
                n_ctx_train=model.n_ctx_train,
                file_bytes=model.file_bytes,
            ),
            host=self._host,
            devices=self._search_devices(),
            load_s=self._load_s or 1 + model.file_bytes / _LOAD_BYTES_S,
        )

    def plan(self, settings: Settings) -> Planned:
        """Return the need of ``settings`` per device, or why the engine refuses them.

        Once weights lie on a device, the process that holds them answers: a second one would
        take another driver context, and an RPC server talks to one client at a time.

        Raises:
            EnvironmentProblem: No worker can be had.
        """
        worker = self._worker
        if worker and worker.engine and worker.engine.devices:
            if worker.can_be_reused():
                return plan_with(worker, self._model.path, settings)
            self._drop_worker()
            worker.close()
        return self._planner.plan(settings)

    def dry_run(self, settings: Settings) -> MemoryEstimate:
        """Return the need of ``settings`` with a verdict per device."""
        if self._judge:
            return self._judge(settings, self.plan)
        planned = self.plan(settings)
        if isinstance(planned, ErrorInfo):
            return MemoryEstimate(
                devices=(),
                source=MemorySource.DRY_RUN,
                verdict=Verdict.DOES_NOT_FIT,
                note=planned.message,
            )
        return MemoryEstimate(devices=planned, source=MemorySource.DRY_RUN, verdict=Verdict.UNKNOWN)

    def run_trial(self, request: TrialRequest) -> Iterator[RigEvent]:
        """Run one trial; the last event is ``TrialFinished``.

        Yields every 100 ms. Closing the generator cancels; an engine that does not react is
        ended in the background.
        """
        attempt = Attempt(request)
        start_s = time.monotonic()
        yield TrialProgress(phase="start")
        if self._cool_down:
            yield from self._cool_down.wait()
        window = self._open_window(()) if self._open_window else nullcontext()
        with window as seen:
            yield from self._run(attempt, seen)
        attempt.telemetry = seen.result if seen else None
        if self._learn and not (attempt.telemetry and attempt.telemetry.disturbed):
            for footprint in attempt.footprints:
                self._learn(footprint)
        if self._cool_down:
            self._cool_down.note(attempt.telemetry)
        trial = attempt.trial(self._load_id, time.monotonic() - start_s)
        yield TrialFinished(index=0, trial=trial)

    def ask_loaded(self, request: Message) -> Generator[TrialProgress, None, Final | None]:
        """Ask the worker that holds weights something beside trials; yield as a trial does.

        Returns its answer (``Failed`` where it has none), or ``None`` where nothing is loaded.
        """
        worker = self._worker
        if worker is None or self._loaded is None or not worker.can_be_reused():
            return None
        exchange = worker.ask(request, "warm_up", lambda _: self._launch.budgets.first_use_s)
        try:
            while True:
                next(exchange)
                yield TrialProgress(phase="check")
        except StopIteration as stop:
            reply: Final = stop.value
            return reply
        except WorkerEnd as end:
            self._drop_worker()
            cause = explain(end, "warm_up")
            return Failed(outcome=cause.outcome, error=cause.error)
        finally:
            exchange.close()

    def holds(self, settings: Settings) -> bool:
        """Whether the weights of ``settings`` are loaded now."""
        return self._worker is not None and self._loaded == settings.load_key

    def now_s(self) -> float:
        """Return the real clock, seconds."""
        return time.monotonic()

    def close(self) -> None:
        """End every process and wait until they are gone."""
        self._drop_worker()
        self._planner.release()
        for worker in self._ended:
            worker.close()
        self._ended.clear()

    def _run(
        self, attempt: Attempt, window: TrialWindow | None
    ) -> Generator[TrialProgress, None, None]:
        try:
            for reply in self._steps(attempt, window):
                progress = attempt.see(reply)
                if self._meter and attempt.effective and isinstance(reply, protocol.TrialStarted):
                    self._meter.context_made(attempt.effective, attempt.devices)
                yield progress
        except WorkerEnd as end:
            attempt.fail(explain(end, attempt.phase))
            self._drop_worker()
        finally:
            attempt.log_tail = self._tail()

    def _steps(self, attempt: Attempt, window: TrialWindow | None) -> Steps:
        settings = attempt.request.settings
        worker = self._worker
        if worker is None or self._loaded != settings.load_key or not worker.can_be_reused():
            # one process per load: some backends keep memory of an earlier one
            self._drop_worker()
            self._load_id += 1
            worker = yield from self._start()
            if window:
                window.own(worker.pid)
            attempt.enter("load")
            load = protocol.Load(model_path=self._model.path, settings=settings)
            reply = yield from worker.ask(load, "load", self._silence_s(settings))
            if not attempt.take(reply):
                self._drop_worker()
                return
            self._loaded = settings.load_key
            self._load_s = attempt.load_s
        elif window:
            window.own(worker.pid)
        if window:
            window.begin()
        attempt.enter("context")
        question = protocol.RunTrial(
            settings=settings,
            workload=attempt.request.workload,
            min_reps=attempt.request.min_reps,
            max_reps=attempt.request.max_reps,
            max_s=attempt.request.max_s,
        )
        reply = yield from worker.ask(question, "context", self._silence_s(settings))
        if attempt.take(reply) and self._meter:
            work = attempt.request.workload
            attempt.footprints = self._meter.trial_ended(work.depth + work.n_prompt + work.n_gen)
        self._meter = None  # a later context of this process finds grown pools

    def _start(self) -> Generator[None, None, WorkerProcess]:
        """Start a worker once the memory of earlier ones is free again."""
        if self._planner.holds_device:
            self._planner.release()
        yield from self._memory_back()
        if self._learn and self._free_now:
            self._meter = FootprintMeter(self._free_now, self._only or ())
        self._worker = yield from start_worker(self._launch)
        return self._worker

    def _memory_back(self) -> Generator[None, None, None]:
        deadline_s = time.monotonic() + _GONE_S
        while any(not w.is_gone() for w in self._ended):
            if time.monotonic() > deadline_s:
                raise WorkerSilent("start", _GONE_S)
            yield None
            time.sleep(TICK_S)
        had_one, self._ended = bool(self._ended), []
        deadline_s = time.monotonic() + _MEMORY_BACK_S
        while had_one and time.monotonic() < deadline_s and not self._is_memory_back():
            yield None
            time.sleep(TICK_S)

    def _is_memory_back(self) -> bool:
        for device in self._devices or ():
            free = self._free_now(device.id) if self._free_now else None
            if free is not None and free < device.free_bytes - _MEMORY_BACK_BYTES:
                return False
        return True

    def _drop_worker(self) -> None:
        """End the worker in the background."""
        self._meter = None
        self._loaded = None
        if self._worker:
            self._worker.stop_soon()
            self._ended.append(self._worker)
            self._worker = None

    def _tail(self) -> tuple[str, ...]:
        worker = self._worker or (self._ended[-1] if self._ended else None)
        return worker.tail() if worker else ()

    def _silence_s(self, settings: Settings) -> Callable[[str], float]:
        budgets, model_bytes = self._launch.budgets, self._model.file_bytes
        return lambda phase: budgets.silence_s(phase, model_bytes, settings.n_batch)

    def _search_devices(self) -> tuple[SearchDevice, ...]:
        """Return the devices with the memory that was free before we used any."""
        if self._devices is None:
            found = self.engine().devices
            if self._free_now and self._planner.holds_device:
                self._planner.release()  # its driver context is not memory in use by others
            self._devices = tuple(self._search_device(d) for d in _wanted(found, self._only))
        return self._devices

    def _search_device(self, device: EngineDevice) -> SearchDevice:
        free = self._free_now(device.name) if self._free_now else None
        return SearchDevice(
            id=device.name,
            kind=device.kind,
            backend=device.backend,
            total_bytes=device.total_bytes or 0,
            free_bytes=free if free is not None else device.free_bytes or 0,
        )


def _wanted(devices: tuple[EngineDevice, ...], names: tuple[str, ...] | None) -> list[EngineDevice]:
    """Return the devices named, or each card once: the engine lists it per backend."""
    if names is not None:
        return [d for d in devices if d.name in names]
    chosen: dict[str, EngineDevice] = {}
    for device in devices:
        chosen.setdefault(device.pci_id or device.name, device)
    return list(chosen.values())
