"""``Session``: what RigTune can do, for any surface. One call at a time."""

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from app import library
from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import RigEvent, SweepEvent
from app.domain.finding import Check
from app.domain.machine import EngineInfo, GpuInfo, Machine, PowerState, ProbeSet
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.domain.sweep import GOAL_WORKLOADS, BudgetName, Goal, SweepRequest, SweepResult
from app.domain.trial import TrialRequest
from app.export import Command, export
from app.machine import aliases, join_machine
from app.rig.interface import Rig
from app.rig.lease import Lease
from app.rig.process import Launch
from app.session.capsweep import CapsEvent
from app.session.check import CommandChecked
from app.session.doctor import examine
from app.session.doctor_history import keep_run, last_run
from app.session.draft import LOOKUP, DraftTried
from app.session.engines import (
    MEASURED_ELSEWHERE,
    EngineName,
    Engines,
    ask,
    is_of_another,
    launch_with,
    name_in_use,
    profile_checks,
)
from app.session.estimating import Scene, default_settings, estimate
from app.session.models import Predictor, list_entry
from app.session.opening import (
    Bounds,
    Learned,
    measurable,
    open_rig,
    pinned,
    runnable,
    usable_devices,
)
from app.session.patience import HEADER_S, LIST_S, read_header, resolve_and_read, within
from app.session.power import Power
from app.session.power_views import governed_gpus
from app.session.probing import Probing
from app.session.readings import read_now, with_ram_of_now
from app.session.recording import read_engine, write_engine
from app.session.results import Results
from app.session.same_cards import on_same_cards
from app.session.searching import Extras, Place, replay_and_check, search_and_try
from app.session.serving import Server
from app.session.talk import Chat
from app.session.views import Estimate, ModelEntry, ReadSpeeds
from app.store import Calibration, Profile, Store, StoredSweep
from app.telemetry import Telemetry

CHAT_N_CTX = 4096


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
        launch = Launch(rpc=rpc, engine_dir=engine_dir)
        name = EngineName.CURRENT if engine_dir else name_in_use()
        self._launch = launch_with(name, launch) if name is EngineName.PREVIOUS else launch
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
        unasked = machine is None or machine.engine is None
        if machine is None or refresh or (unasked and self._may_ask(wake=wake)):
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
        engine = self._machine.engine if self._machine else None
        if engine is not None:
            yield from profile_checks(engine, self.profiles())

    # --- models ----------------------------------------------------------------------------

    def inspect(self, model: str) -> ModelSpec:
        """Return what a model file says of itself.

        Args:
            model: Path, id of a found model, or ``demo``.

        Raises:
            EnvironmentProblem: It is not there or not usable.
        """
        return resolve_and_read(model)

    def models(self, folders: tuple[str, ...] = ()) -> tuple[ModelEntry, ...]:
        """Return the models found on this machine, each with its verdict and predicted speed.

        Args:
            folders: Folders of the user's own to look into, besides other programs'.
        """
        scene = self._scene()
        predictor = Predictor(scene.machine, self._opened_store())
        deadline_s = time.monotonic() + LIST_S
        find = partial(library.find_models, folders=folders)
        found = within(LIST_S, "The model folders", find)
        # one drive that stalls costs its own entry, and a few of them no more than the deadline
        return tuple(
            list_entry(scene, each, predictor, min(HEADER_S, deadline_s - time.monotonic()))
            for each in found
        )

    def estimate(
        self,
        spec: ModelSpec,
        settings: Settings,
        *,
        headroom_bytes: int | None = None,
        reserve_bytes: int = 0,
        exact: bool = False,
    ) -> Estimate:
        """Return what ``settings`` need and the most that would fit; a sleeping GPU sleeps on.

        Args:
            spec: The model.
            settings: The configuration; its devices decide where it is placed.
            headroom_bytes: Memory to leave free per device; ``None`` = the rule.
            reserve_bytes: What else must fit on the first device (a projector, a draft model, a
                game): the dry run does not count it.
            exact: Ask the engine's dry run instead of the formula; not while a GPU sleeps.
        """
        bounds = Bounds(headroom_bytes=headroom_bytes, reserve_bytes=reserve_bytes)
        return estimate(self._scene(), runnable(spec), settings, bounds, exact=exact)

    def default_settings(self, spec: ModelSpec, n_ctx: int, *, wake: bool = False) -> Settings:
        """Return sensible settings for an untuned model: every layer that fits.

        Args:
            spec: The model.
            n_ctx: Context over all slots, tokens.
            wake: The model will be run: a sleeping GPU may be woken to see what it holds.
        """
        return default_settings(self._scene(wake=wake), spec, n_ctx)

    # --- trials and searches ---------------------------------------------------------------

    def bench(self, model: str, request: TrialRequest) -> Iterator[RigEvent]:
        """Run one trial and yield its events."""
        self._must_be_here()
        spec = runnable(self.inspect(model))
        machine = measurable(self.machine(wake=True))
        with self._lease("bench"):
            rig, _ = open_rig(
                spec, machine, self._launch, devices=request.settings.devices,
                telemetry=self.telemetry(), learned=self._learned(),
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
        for event in self.tune_and_try(model, request, resume=resume, record=record, cancel=cancel):
            if not isinstance(event, CommandChecked | DraftTried):
                yield event

    def tune_and_try(
        self,
        model: str,
        request: SweepRequest,
        *,
        command: Command | None = None,
        draft: str | None = None,
        resume: bool = False,
        record: str | None = None,
        cancel: threading.Event,
    ) -> Iterator[SweepEvent | CommandChecked | DraftTried]:
        """Search as ``tune`` does, then try something of the user's beside the answer.

        Args:
            model: Path, id or ``demo``.
            request: Goal, constraints and budget.
            command: A llama.cpp command line, measured in turns with the answer.
            draft: ``lookup`` or a draft model, compared with decoding without.
            resume: As for ``tune``.
            record: As for ``tune``.
            cancel: Set it to stop; what was measured is kept.

        Raises:
            EnvironmentProblem: Model or engine cannot be used, or the request cannot be met.
        """
        self._must_be_here()
        spec = runnable(self.inspect(model))
        drafter = None if draft in (None, LOOKUP) else runnable(self.inspect(draft))
        machine = measurable(self.machine(wake=True))
        extras = Extras(command=command, draft=draft, drafter=drafter)
        place = Place(
            machine=machine,
            launch=self._launch,
            telemetry=self.telemetry(),
            store=self._opened_store(),
            ram_read=self._ram_read,
            learned=self._learned(),
            host_now=self._probe_set().host.identify,
        )
        with self._lease("tune"):
            yield from search_and_try(
                spec, request, place, cancel, extras=extras, resume=resume, record=record
            )

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
        for event in replay_and_check(path, request, seed, cancel):
            if not isinstance(event, CommandChecked):
                yield event

    def check_replay(
        self,
        path: Path,
        command: Command,
        request: SweepRequest,
        seed: int | None,
        cancel: threading.Event,
    ) -> Iterator[SweepEvent | CommandChecked]:
        """Search and check a command line against a recorded machine."""
        yield from replay_and_check(path, request, seed, cancel, command)

    def measuring(self, purpose: str) -> Lease:
        """Return what holds the devices for ``purpose`` as a context manager."""
        return self._lease(purpose)

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

    def engines(self) -> Engines:
        """Return this RigTune's engine and the one that the last upgrade kept."""

        def machine_with(engine: EngineInfo) -> Machine:
            probes = self._probe_set()
            infos = [info for probe in probes.gpus for info in probe.identify()]
            return join_machine(probes.host.identify(), infos, engine)

        def rig_for(spec: ModelSpec, machine: Machine, launch: Launch) -> Rig:
            return open_rig(spec, machine, launch, telemetry=self.telemetry())[0]

        return Engines(self._launch, self._opened_store(), machine_with, rig_for)

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
        if not self._may_ask(wake=wake):
            return None, None
        try:
            return ask(self._launch), None
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
                    return runnable(read_header(Path(found.path), HEADER_S))
            raise

    def _ram_read(self) -> float | None:
        """Return how fast RAM is read here, measured once; a recorded machine has no answer."""
        if self._ram_gb_s is None and self._replay is None:
            host = self.machine().host
            self._ram_gb_s = self._probing.ram_read_gb_s(host.cores_physical or 1, host.l3_bytes)
        return self._ram_gb_s

    def _may_ask(self, *, wake: bool) -> bool:
        """Return whether the engine may be asked: listing devices wakes a sleeping GPU."""
        return self._replay is None and (wake or not self._is_a_gpu_asleep())

    def _is_a_gpu_asleep(self) -> bool:
        if self._telemetry is not None:
            keys = self._telemetry.keys()
            samples = [s for key in keys for s in self._telemetry.latest(key)]
        else:
            samples = [s for probe in self._probe_set().gpus for s in probe.sample()]
        return any(s.power_state is PowerState.ASLEEP for s in samples)

    def _scene(self, *, wake: bool = False) -> Scene:
        """Return the machine as an estimate sees it; nothing is woken unless asked."""
        machine = self.machine(wake=wake)
        readings = read_now(machine, self._probe_set(), self._telemetry)
        return Scene(with_ram_of_now(machine, readings), readings, self._learned(), self._launch)

    def _learned(self) -> Learned:
        """Return the calibrations; an estimate needs no store, and a trial fails for none."""

        def keep(seen: Calibration) -> None:
            with contextlib.suppress(EnvironmentProblem):
                self._opened_store().add_calibration(seen)

        with contextlib.suppress(EnvironmentProblem):
            return Learned(self._opened_store().calibrations(), keep)
        return Learned()

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
            n_ctx = min(CHAT_N_CTX, spec.n_ctx_train or CHAT_N_CTX)
            settings = self.default_settings(spec, n_ctx, wake=True)
            notes.append("No tuned profile for this model yet; using defaults that fit.")
        else:
            settings = profile.settings
            if is_of_another(profile, self._machine.engine if self._machine else None):
                notes.append(MEASURED_ELSEWHERE)
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
