"""``Session``: what RigTune can do, for any surface. One call at a time."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from app import library
from app.domain.errors import EnvironmentProblem
from app.domain.events import RigEvent, SweepEvent
from app.domain.finding import Check
from app.domain.machine import Machine, PowerState, ProbeSet
from app.domain.memory import Verdict
from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import SweepRequest, SweepResult
from app.domain.trial import TrialRequest
from app.export import export
from app.gguf import read_model
from app.machine import aliases, join_machine
from app.rig.interface import Rig
from app.rig.lease import Lease
from app.rig.planner import ask_engine
from app.rig.process import Launch
from app.rig.replay import ReplayRig
from app.session.doctor import examine
from app.session.opening import (
    measurable,
    memory_for,
    open_rig,
    runnable,
    search_host,
    usable_devices,
)
from app.session.results import Results
from app.session.serving import Server
from app.session.talk import Chat
from app.session.tuning import Tuning, follow
from app.session.views import Estimate, ModelEntry
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


class Session:
    """The façade. Made by a composition root, closed by it.

    Everything slow happens in the iterators and methods called; nothing here touches a GUI.
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

    # --- machine ---------------------------------------------------------------------------

    def machine(self, *, refresh: bool = False, wake: bool = False) -> Machine:
        """Return host, GPUs and engine; a recorded machine has no engine.

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
            is_resting = self._replay is not None or (not wake and self._is_a_gpu_asleep())
            engine = None if is_resting else ask_engine(self._launch)
            joined = join_machine(probes.host.identify(), infos, engine)
            machine = msgspec.structs.replace(joined, unavailable=probes.unavailable)
            self._machine = machine
            if self._telemetry is not None:
                self._telemetry.rename(aliases(machine))
        return machine

    def record_machine(self, directory: Path) -> Path:
        """Write this machine as a recording (serials and host names removed)."""
        return self._probing.record(directory)

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

        with self._lease("doctor"):
            yield from examine(
                lambda: self.machine(wake=True), lambda: self.inspect("demo"), rig_on
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
                path = Path(record) if record else None
                yield from tuning.run(plan, rig, cancel, resumed=resumed, record=path)
            finally:
                rig.close()

    def tune_replay(
        self, path: Path, request: SweepRequest, seed: int | None, cancel: threading.Event
    ) -> Iterator[SweepEvent]:
        """Run a search against a recorded machine; no model and no engine is needed."""
        rig = ReplayRig(path, seed, headroom_bytes=request.headroom_bytes)
        plan = make_plan(request, rig.space(), rig.dry_run)
        yield from follow(plan, rig, cancel)

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
        return Chat(*self._chosen(model, profile_id))

    def serve(self, model: str, profile_id: str | None = None) -> Server:
        """Return a local OpenAI-compatible server on the same settings as ``chat``.

        Nothing is loaded before its ``run`` is iterated.
        """
        return Server(*self._chosen(model, profile_id))

    def close(self) -> None:
        """Stop telemetry and close the store."""
        if self._telemetry is not None:
            self._telemetry.stop()
        if self._store is not None:
            self._store.close()

    def _probe_set(self) -> ProbeSet:
        if self._probes is None:
            replay = self._replay
            self._probes = self._probing.replay(replay) if replay else self._probing.detect()
        return self._probes

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

    def _lease(self, purpose: str) -> Lease:
        return Lease(purpose)

    def _chosen(
        self, model: str, profile_id: str | None
    ) -> tuple[ModelSpec, Settings, Launch, str | None, tuple[str, ...]]:
        """Return model, settings, their profile's id, and what the user should know first."""
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
        return spec, settings, self._launch, profile.id if profile else None, tuple(notes)

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
