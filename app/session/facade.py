"""``Session``: what RigTune can do, for any surface. One call at a time."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from app import library
from app.advice.rules import plan_findings
from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import RigEvent, SweepEvent, SweepFinished
from app.domain.finding import Check
from app.domain.machine import EngineInfo, GpuInfo, HostInfo, Machine, PowerState, ProbeSet
from app.domain.memory import Verdict
from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import GOAL_WORKLOADS, BudgetName, Goal, SweepRequest, SweepResult
from app.domain.trial import TrialRequest
from app.export import export
from app.gguf import read_model
from app.machine import aliases, join_machine
from app.rig.interface import Rig
from app.rig.lease import Lease
from app.rig.planner import ask_engine
from app.rig.process import Launch
from app.rig.replay import ReplayRig
from app.session.capsweep import CapsEvent
from app.session.doctor import examine
from app.session.doctor_history import keep_run, last_run
from app.session.opening import (
    measurable,
    memory_for,
    open_rig,
    pinned,
    runnable,
    search_host,
    usable_devices,
)
from app.session.power import Power
from app.session.power_views import governed_gpus
from app.session.recording import read_engine, write_engine
from app.session.results import Results
from app.session.same_cards import on_same_cards
from app.session.serving import Server
from app.session.talk import Chat
from app.session.tuning import Tuning, advised, follow
from app.session.views import Estimate, ModelEntry, ReadSpeeds
from app.store import Profile, Store, StoredSweep
from app.sweep.plan import make_plan
from app.telemetry import Telemetry

CHAT_N_CTX = 4096


class Probing(Protocol):
    """Finds probes: this machine's, or a recorded machine's (``probes.registry``)."""

    def detect(self) -> ProbeSet:
        """Return the probes of this machine."""
        ...

    def replay(self, directory: Path | str) -> ProbeSet:
        """Return probes that show a recorded machine."""
        ...

    def record(self, directory: Path | str) -> Path:
        """Write a recording of this machine and return its file."""
        ...

    def ram_read_gb_s(self, n_threads: int, cache_bytes: int | None = None) -> float | None:
        """Measure how fast this machine reads RAM, 10⁹ bytes per second."""
        ...

    def disk_read_mb_s(self, path: Path) -> float | None:
        """Measure how fast a file's beginning comes from its disk, 10⁶ bytes per second."""
        ...


class Session:
    """The façade. Made by a composition root, closed by it.

    Everything slow happens in the iterators and methods called; nothing here touches a GUI.

    Attributes:
        power: Heat and power: what is chosen, how it stands, what was changed.
    """

    def __init__(
        self,
        probing: Probing,
        *,
        replay: str | None = None,
        rpc: tuple[str, ...] = (),
        engine_dir: str | None = None,
    ) -> None:
        """Prepare; nothing is read or started yet.

        Args:
            probing: Finds the probes.
            replay: Folder of a recorded machine to show instead of this one.
            rpc: Endpoints of RPC servers whose devices to use.
            engine_dir: Folder of the user's own llama.cpp libraries.
        """
        self._probing = probing
        self._replay = replay
        self._launch = Launch(rpc=rpc, engine_dir=engine_dir)
        self._probes: ProbeSet | None = None
        self._machine: Machine | None = None
        self._telemetry: Telemetry | None = None
        self._store: Store | None = None
        self._ram_gb_s: float | None = None
        self.power = Power(self._governed, self.telemetry)

    # --- machine ---------------------------------------------------------------------------

    def machine(self, *, refresh: bool = False, wake: bool = False) -> Machine:
        """Return host, GPUs and engine; of a recorded machine, the engine as it was there.

        Args:
            refresh: Look again.
            wake: The engine is needed. Without it, it is not asked while a GPU sleeps: listing
                devices would wake that one.

        Raises:
            EnvironmentProblem: No worker can be had, or the recording cannot be read.
        """
        machine = self._machine
        if machine is None or refresh or (wake and machine.engine is None):
            probes = self._probe_set()
            infos = [info for probe in probes.gpus for info in probe.identify()]
            engine, problem = self._engine(wake=wake)
            joined = join_machine(probes.host.identify(), infos, engine)
            machine = msgspec.structs.replace(
                joined, engine_problem=problem, unavailable=probes.unavailable
            )
            self._machine = machine
            if self._telemetry is not None:
                self._telemetry.rename(aliases(machine))
        return machine

    def record_machine(self, directory: Path) -> Path:
        """Write this machine as a recording (serials and host names removed)."""
        file = self._probing.record(directory)
        write_engine(directory, self.machine().engine)
        return file

    def read_speeds(self, model: str) -> ReadSpeeds:
        """Measure how fast RAM and the disk of a model are read; takes about two seconds.

        Raises:
            EnvironmentProblem: There is no such model, or this is a recording.
        """
        self._must_be_here()
        path = Path(library.resolve_model(model))
        disk = self._probing.disk_read_mb_s(path)
        return ReadSpeeds(ram_gb_s=self._ram_read(), disk_mb_s=disk, folder=str(path.parent))

    def telemetry(self, interval_s: float | None = None) -> Telemetry:
        """Return the one telemetry, started; without an interval it reads during trials only."""
        if self._telemetry is None:
            probes = self._probe_set()
            self._telemetry = Telemetry(probes.gpus, probes.host, interval_s=interval_s)
            self._telemetry.start()
            if self._machine is not None:
                self._telemetry.rename(aliases(self._machine))
        return self._telemetry

    def doctor(self) -> Iterator[Check]:
        """Yield the steps of the self-test as they end."""

        def rig_on(spec: ModelSpec, devices: tuple[str, ...]) -> Rig:
            machine, telemetry = self.machine(wake=True), self.telemetry()
            return open_rig(spec, machine, self._launch, devices=devices, telemetry=telemetry)[0]

        self._must_be_here()
        with self._lease("doctor"):
            yield from examine(
                lambda: self.machine(wake=True),
                self._trial_model,
                rig_on,
                self.read_speeds,
                last_run(),
                keep_run,
            )

    # --- models ----------------------------------------------------------------------------

    def inspect(self, model: str) -> ModelSpec:
        """Return what a model file says of itself.

        Args:
            model: Path, id of a found model, or ``demo``.

        Raises:
            EnvironmentProblem: It is not there or not usable.
        """
        return read_model(library.resolve_model(model))

    def models(self, folders: tuple[str, ...] = ()) -> tuple[ModelEntry, ...]:
        """Return the models found on this machine, each with its verdict.

        Args:
            folders: Folders of the user's own to look into, besides other programs'.
        """
        return tuple(self._entry(found) for found in library.find_models(folders=folders))

    def estimate(
        self,
        spec: ModelSpec,
        settings: Settings,
        *,
        headroom_bytes: int | None = None,
        exact: bool = False,
    ) -> Estimate:
        """Return what ``settings`` need and the most that would fit.

        Args:
            spec: The model.
            settings: The configuration; its devices decide where it is placed.
            headroom_bytes: Memory to leave free per device; ``None`` = the rule.
            exact: Ask the engine's dry run instead of the formula.
        """
        runnable(spec)
        machine = self.machine(wake=True)
        if exact:
            rig, memory = open_rig(
                spec, machine, self._launch,
                devices=settings.devices, headroom_bytes=headroom_bytes,
            )  # fmt: skip
        else:
            devices = usable_devices(machine, settings.devices)
            rig, memory = None, memory_for(spec, machine, devices, headroom_bytes=headroom_bytes)
        try:
            return Estimate(
                settings=settings,
                estimate=memory.estimate(settings, exact=exact),
                max_n_gpu_layers=memory.max_n_gpu_layers(settings, exact=exact),
                max_n_ctx=memory.max_n_ctx(settings, exact=exact),
            )
        finally:
            if rig is not None:
                rig.close()

    def default_settings(self, spec: ModelSpec, n_ctx: int) -> Settings:
        """Return sensible settings for an untuned model: every layer that fits."""
        machine = self.machine(wake=True)
        devices = usable_devices(machine)
        base = Settings(
            n_gpu_layers=0,
            n_ctx=n_ctx,
            n_threads=search_host(machine).cores_physical,
            flash_attn=FlashAttn.AUTO,
        )
        layers = memory_for(spec, machine, devices).max_n_gpu_layers(base) or 0
        return msgspec.structs.replace(base, n_gpu_layers=layers)

    # --- trials and searches ---------------------------------------------------------------

    def bench(self, model: str, request: TrialRequest) -> Iterator[RigEvent]:
        """Run one trial and yield its events."""
        self._must_be_here()
        spec = runnable(self.inspect(model))
        machine = measurable(self.machine(wake=True))
        with self._lease("bench"):
            rig, _ = open_rig(
                spec, machine, self._launch,
                devices=request.settings.devices, telemetry=self.telemetry(),
            )  # fmt: skip
            try:
                yield from rig.run_trial(request)
            finally:
                rig.close()

    def tune(
        self,
        model: str,
        request: SweepRequest,
        *,
        resume: bool = False,
        record: str | None = None,
        cancel: threading.Event,
    ) -> Iterator[SweepEvent]:
        """Search the best settings; the first event is the plan, the last one the result.

        Nothing is loaded before the event after the plan is asked for. Every trial is stored
        before the next one starts.

        Args:
            model: Path, id or ``demo``.
            request: Goal, constraints and budget.
            resume: Go on with an interrupted search of the same kind, if there is one.
            record: File to write the search to, as a replay.
            cancel: Set it to stop; what was measured is kept.

        Raises:
            EnvironmentProblem: Model or engine cannot be used, or the request cannot be met.
        """
        self._must_be_here()
        spec = runnable(self.inspect(model))
        machine = measurable(self.machine(wake=True))
        with self._lease("tune"):
            rig, _ = open_rig(
                spec, machine, self._launch, devices=request.devices,
                headroom_bytes=request.headroom_bytes, telemetry=self.telemetry(),
            )  # fmt: skip
            try:
                tuning = Tuning(self._opened_store(), spec, machine, request)
                resumed = tuning.interrupted() if resume else None
                plan = make_plan(request, rig.space(), rig.dry_run)
                if resume:
                    found = tuning.changes() if resumed is None else ("resumed",)
                    notes = (*plan.notes, *(found or ("nothing_to_resume",)))
                    plan = msgspec.structs.replace(plan, notes=notes)
                plan = msgspec.structs.replace(plan, findings=plan_findings(machine, plan))
                path = Path(record) if record else None
                host_now = self._probe_set().host.identify
                yield from tuning.run(
                    plan, rig, cancel, resumed=resumed, record=path, host_now=host_now
                )
            finally:
                rig.close()

    def sweep_caps(
        self,
        model: str,
        settings: Settings,
        *,
        budget: BudgetName = BudgetName.STANDARD,
        cancel: threading.Event,
    ) -> Iterator[CapsEvent]:
        """Measure what each power limit gives on tuned settings; the last event is the result.

        The system may ask for a password. Every limit is put back, however it ends.

        Args:
            model: Path, id or ``demo``.
            settings: What the search recommended.
            budget: How many limits to try.
            cancel: Set it to stop; what was measured is kept.

        Raises:
            EnvironmentProblem: The model cannot be loaded, or the engine failed.
        """
        spec = runnable(self.inspect(model))
        with self._lease("caps"):
            yield from self.power.sweep_caps(
                spec, settings, GOAL_WORKLOADS[Goal.QUIET],
                launch=self._launch, budget=budget, cancel=cancel,
            )  # fmt: skip

    def tune_replay(
        self, path: Path, request: SweepRequest, seed: int | None, cancel: threading.Event
    ) -> Iterator[SweepEvent]:
        """Run a search against a recorded machine; no model and no engine is needed."""
        rig = ReplayRig(path, seed, headroom_bytes=request.headroom_bytes)
        plan = make_plan(request, rig.space(), rig.dry_run)
        # Of the machine it was recorded on nothing is known but what the plan holds.
        machine = Machine(host=HostInfo(os="unknown"))
        plan = msgspec.structs.replace(plan, findings=plan_findings(machine, plan))
        for event in follow(plan, rig, cancel):
            if isinstance(event, SweepFinished):
                yield SweepFinished(result=advised(event.result, machine, plan))
            else:
                yield event

    # --- what was kept ---------------------------------------------------------------------

    def sweeps(self) -> tuple[StoredSweep, ...]:
        """Return the stored searches, newest first."""
        return self._opened_store().sweeps()

    def sweep(self, sweep_id: int) -> SweepResult:
        """Return a stored search's result with its trials."""
        return self._opened_store().sweep(sweep_id)

    def profiles(self) -> tuple[Profile, ...]:
        """Return the stored profiles, newest first."""
        return self._opened_store().profiles()

    def profile(self, profile_id: str) -> Profile:
        """Return a stored profile by id or name."""
        return self._opened_store().profile(profile_id)

    def results(self) -> Results:
        """Return what can be done with stored searches."""
        return Results(self._opened_store, self)

    def export(self, profile_id: str, target: str) -> str:
        """Return a profile as another program's command or file."""
        return export(self.profile(profile_id), target)

    def store(self) -> Store:
        """Return the store, for what has no method here: renaming, deleting, conversations."""
        return self._opened_store()

    # --- chat ------------------------------------------------------------------------------

    def chat(self, model: str, profile_id: str | None = None) -> Chat:
        """Return a chat on a stored profile, the model's newest one, or defaults that fit.

        The model is loaded on entering it as a context manager (or by ``load``).
        """
        return Chat(*self._chosen(model, profile_id), power=self.power)

    def serve(self, model: str, profile_id: str | None = None) -> Server:
        """Return a local OpenAI-compatible server on the same settings as ``chat``.

        Nothing is loaded before its ``run`` is iterated.
        """
        return Server(*self._chosen(model, profile_id), power=self.power)

    def close(self) -> None:
        """Put limits back, stop telemetry and close the store."""
        self.power.end()
        if self._telemetry is not None:
            self._telemetry.stop()
        if self._store is not None:
            self._store.close()

    def _probe_set(self) -> ProbeSet:
        if self._probes is None:
            replay = self._replay
            self._probes = self._probing.replay(replay) if replay else self._probing.detect()
        return self._probes

    def _engine(self, *, wake: bool) -> tuple[EngineInfo | None, ErrorInfo | None]:
        """Return what the engine lists, or why it cannot; a sleeping GPU is not woken for that.

        Raises:
            EnvironmentProblem: It is needed (``wake``) and cannot be had.
        """
        if self._replay is not None:
            return read_engine(Path(self._replay)), None
        if not wake and self._is_a_gpu_asleep():
            return None, None
        try:
            return ask_engine(self._launch), None
        except EnvironmentProblem as problem:
            if wake:
                raise
            # Without an engine there is still a machine to show.
            return None, problem.info

    def _must_be_here(self) -> None:
        if self._replay is not None:
            message = "This is the recording of a machine: nothing can be measured on it."
            raise EnvironmentProblem("recorded_machine", message, "Start RigTune without --replay.")

    def _trial_model(self) -> ModelSpec:
        """Return what the self-test runs: the demo model, else the smallest one found.

        Raises:
            EnvironmentProblem: There is none at all.
        """
        try:
            return self.inspect("demo")
        except EnvironmentProblem:
            for found in sorted(library.find_models(), key=lambda m: m.file_bytes):
                with suppress(EnvironmentProblem):
                    return runnable(read_model(found.path))
            raise

    def _ram_read(self) -> float | None:
        """Return how fast RAM is read here, measured once; a recorded machine has no answer."""
        if self._ram_gb_s is None and self._replay is None:
            host = self.machine().host
            self._ram_gb_s = self._probing.ram_read_gb_s(host.cores_physical or 1, host.l3_bytes)
        return self._ram_gb_s

    def _is_a_gpu_asleep(self) -> bool:
        if self._telemetry is not None:
            keys = self._telemetry.keys()
            samples = [s for key in keys for s in self._telemetry.latest(key)]
        else:
            samples = [s for probe in self._probe_set().gpus for s in probe.sample()]
        return any(s.power_state is PowerState.ASLEEP for s in samples)

    def _opened_store(self) -> Store:
        if self._store is None:
            self._store = Store.open()
        return self._store

    def _governed(self, names: tuple[str, ...]) -> dict[str, GpuInfo]:
        """Return the GPUs behind engine devices; the engine is not asked only for that."""
        machine = self._machine
        if machine is None:
            probes = self._probe_set()
            infos = [info for probe in probes.gpus for info in probe.identify()]
            machine = join_machine(probes.host.identify(), infos)
            self.telemetry().rename(aliases(machine))
        return governed_gpus(machine, names)

    def _lease(self, purpose: str) -> Lease:
        return Lease(purpose)

    def _chosen(
        self, model: str, profile_id: str | None
    ) -> tuple[ModelSpec, Settings, Launch, str | None, tuple[str, ...]]:
        """Return model, settings, their profile's id, and what the user should know first."""
        self._must_be_here()
        spec = runnable(self.inspect(model))
        profile = self._profile_for(spec, profile_id)
        notes = []
        if profile is None:
            settings = self.default_settings(spec, min(CHAT_N_CTX, spec.n_ctx_train or CHAT_N_CTX))
            notes.append("No tuned profile for this model yet; using defaults that fit.")
        else:
            settings = profile.settings
        if spec.chat_template is None:
            notes.append("This model has no chat template: it completes text, it does not answer.")
        machine = self.machine(wake=True)
        if profile is not None:
            settings, gone = on_same_cards(settings, profile.device_keys, machine)
            if gone:
                lost = ", ".join(gone)
                notes.append(f"The profile's device {lost} is not there now; the others are used.")
        names = settings.devices or (d.id for d in usable_devices(machine))
        launch = pinned(self._launch, machine, names if settings.n_gpu_layers else settings.devices)
        return spec, settings, launch, profile.id if profile else None, tuple(notes)

    def _profile_for(self, spec: ModelSpec, profile_id: str | None) -> Profile | None:
        if profile_id is not None:
            return self.profile(profile_id)
        stored = self._opened_store().profiles(spec.fingerprint)
        return stored[0] if stored else None

    def _entry(self, found: library.FoundModel) -> ModelEntry:
        entry = ModelEntry(
            id=found.id,
            origin=found.origin,
            name=found.name,
            path=found.path,
            file_bytes=found.file_bytes,
        )
        try:
            spec = runnable(read_model(found.path))
            settings = Settings(n_gpu_layers=spec.max_gpu_layers)
            verdict = Verdict.UNKNOWN
            if self.machine().engine is not None:  # a list wakes no sleeping GPU
                verdict = self.estimate(spec, settings).estimate.verdict
        except EnvironmentProblem as problem:
            return msgspec.structs.replace(entry, problem=problem.info.message)
        return msgspec.structs.replace(entry, arch=spec.arch, quant=spec.ftype, verdict=verdict)
