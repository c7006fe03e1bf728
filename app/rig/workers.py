"""The rig of real worker processes."""

import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from app.domain.causes import Cause
from app.domain.errors import ErrorInfo
from app.domain.events import RigEvent, TrialFinished, TrialProgress
from app.domain.machine import EngineInfo
from app.domain.memory import MemoryEstimate, MemorySource, Verdict
from app.domain.model import ModelSpec
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import SearchDevice, SearchHost, SearchModel, SearchSpace
from app.domain.trial import TelemetryWindow, TrialRequest
from app.domain.units import MIB
from app.rig.aftermath import Ended
from app.rig.attempt import Attempt
from app.rig.cooling import CoolDown
from app.rig.death import explain
from app.rig.ends import WorkerEnd
from app.rig.footprint import Footprint, FootprintMeter, FreeNow
from app.rig.offered import offered
from app.rig.planner import Planned, Planner, plan_with
from app.rig.process import Final, Launch, WorkerProcess, start_worker
from app.worker import protocol
from app.worker.protocol import Failed, Message, Reply

Plan = Callable[[Settings], Planned]
Judge = Callable[[Settings, Plan], MemoryEstimate]
Learn = Callable[[Footprint], None]
Steps = Generator[Reply | None, None, None]

# guess of a first load, until one was measured, bytes per second
_LOAD_BYTES_S = 500e6
_MEMORY_BACK_BYTES = 64 * MIB
_REPLACED = ErrorInfo(
    code="file_replaced",
    message="The model's file is not the one that the search began with.",
    hint="Start the search again: what was measured belongs to the other file.",
)


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
        own_memory: Mapping[str, int | None] | None = None,
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
            own_memory: Telemetry's keys of the GPUs in use that have memory of their own → its
                bytes, where known: when it is full and shared memory grows, that is a spill;
                ``None`` = every GPU.
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
        self._own_memory = own_memory
        self._stamp = _stamp(model.path)
        self._planner = Planner(self._launch, model.path)
        self._worker: WorkerProcess | None = None
        self._ended = Ended()
        self._loaded: Settings | None = None
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
        spec = self._model
        model = SearchModel(
            name=spec.name, n_layer=spec.n_layer, n_ctx_train=spec.n_ctx_train,
            n_expert=spec.n_expert, n_expert_used=spec.n_expert_used,
            expert_bytes=spec.expert_bytes, file_bytes=spec.file_bytes,
            quant=spec.ftype, bits_per_weight=spec.bits_per_weight,
        )  # fmt: skip
        return SearchSpace(
            model=model,
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
        trial = attempt.trial(self._load_id, time.monotonic() - start_s, self._own_memory)
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

    @property
    def loaded(self) -> Settings | None:
        """Settings that the weights were loaded with which are there now."""
        return self._loaded

    def now_s(self) -> float:
        """Return the real clock, seconds."""
        return time.monotonic()

    def close(self) -> None:
        """End every process and wait until they are gone."""
        self._drop_worker()
        self._planner.release()
        self._ended.close()

    def _run(
        self, attempt: Attempt, window: TrialWindow | None
    ) -> Generator[TrialProgress, None, None]:
        try:
            for reply in self._steps(attempt, window):
                progress = attempt.see(reply)
                if self._meter and attempt.effective and isinstance(reply, protocol.TrialStarted):
                    self._meter.context_made(attempt.effective, attempt.devices)
                elif self._meter and isinstance(reply, protocol.TrialSample):
                    self._meter.pass_ended()
                yield progress
        except WorkerEnd as end:
            attempt.fail(explain(end, attempt.phase))
            self._drop_worker()
        finally:
            self._meter = None  # a later context finds grown pools, also after a trial cut short
            attempt.log_tail = self._tail()

    def _steps(self, attempt: Attempt, window: TrialWindow | None) -> Steps:
        settings, loaded = attempt.request.settings, self._loaded
        worker, is_there = self._worker, loaded and loaded.load_key == settings.load_key
        if worker is None or not is_there or not worker.can_be_reused():
            # one process per load: some backends keep memory of an earlier one
            self._drop_worker()
            self._load_id += 1
            worker = yield from self._start()
            if window:
                window.own(worker.pid)
            attempt.enter("load")
            if _stamp(self._model.path) != self._stamp:
                attempt.fail(Cause(outcome=Outcome.LOAD_FAILED, error=_REPLACED))
                return
            load = protocol.Load(model_path=self._model.path, settings=settings)
            reply = yield from worker.ask(load, "load", self._silence_s(settings))
            if not attempt.take(reply):
                self._drop_worker()
                return
            self._loaded = settings
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

    def _start(self) -> Generator[None, None, WorkerProcess]:
        """Start a worker once the memory of earlier ones is free again."""
        if self._planner.holds_device:
            self._planner.release()
        yield from self._ended.gone(self._is_memory_back)
        if self._learn and self._free_now:
            self._meter = FootprintMeter(self._free_now, self._only or ())
        self._worker = yield from start_worker(self._launch)
        return self._worker

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
            self._ended.add(self._worker)
            self._worker = None

    def _tail(self) -> tuple[str, ...]:
        worker = self._worker or self._ended.last()
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
            self._devices = offered(found, self._only, self._free_now)
        return self._devices


def _stamp(path: str) -> tuple[int, int] | None:
    """Return what tells one file from another at the same path; ``None`` where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
