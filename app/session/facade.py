"""``Session``: what RigTune can do, for any surface. One call at a time."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from app.domain.draft import LOOKUP
from app.domain.events import RigEvent, SweepEvent
from app.domain.finding import Check
from app.domain.machine import Machine
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.domain.sweep import GOAL_WORKLOADS, BudgetName, Goal, SweepRequest
from app.domain.trial import TrialRequest
from app.export import Command
from app.rig.lease import Lease, Room
from app.rig.process import Launch
from app.session.beside import room
from app.session.capsweep import CapsEvent
from app.session.check import CommandChecked
from app.session.choosing import Chosen, choose, profile_for
from app.session.draft import DraftTried
from app.session.engines import Engines
from app.session.estimating import Scene, default_settings, estimate
from app.session.here import Here
from app.session.landing import Landing, landing_of
from app.session.models import list_models
from app.session.opening import Bounds, measurable, runnable
from app.session.patience import resolve_and_read
from app.session.power import Power
from app.session.probing import Probing
from app.session.readings import with_ram_of_now
from app.session.results import Results
from app.session.searching import Extras, Place, replay_and_check, search_and_try
from app.session.selftest import self_test
from app.session.serving import Server
from app.session.shelf import Shelf
from app.session.talk import Chat
from app.session.views import Estimate, ModelEntry, ReadSpeeds
from app.telemetry import Telemetry


class Session(Shelf):
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
        super().__init__()
        self._here = Here(probing, replay, Launch(rpc=rpc, engine_dir=engine_dir))
        self.power = Power(self._here.governed, self.telemetry)

    # --- machine and models ----------------------------------------------------------------

    def machine(self, *, refresh: bool = False, wake: bool = False) -> Machine:
        """Return host, GPUs and engine; of a recorded machine, the engine as it was there.

        Args:
            refresh: Look again.
            wake: The engine is needed. Without it, it is not asked while a GPU sleeps: listing
                devices would wake that one.

        Raises:
            EnvironmentProblem: No worker can be had, or the recording cannot be read.
        """
        return self._here.machine(refresh=refresh, wake=wake)

    def record_machine(self, directory: Path) -> Path:
        """Write this machine as a recording (serials and host names removed)."""
        return self._here.record(directory)

    def read_speeds(self, model: str) -> ReadSpeeds:
        """Measure how fast RAM and the disk of a model are read; takes about two seconds.

        Raises:
            EnvironmentProblem: There is no such model, or this is a recording.
        """
        return self._here.read_speeds(model)

    def telemetry(self, interval_s: float | None = None) -> Telemetry:
        """Return the one telemetry, started; without an interval it reads during trials only."""
        return self._here.telemetry(interval_s)

    def doctor(self) -> Iterator[Check]:
        """Yield the steps of the self-test as they end."""
        return self_test(self._here, self.profiles)

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
        return list_models(self._scene(), self.store(), folders)

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
            reserve_bytes: What else must fit on the first device: a projector, a game.
            exact: Ask the engine's dry run instead of the formula; not while a GPU sleeps.
        """
        bounds = Bounds(headroom_bytes=headroom_bytes, reserve_bytes=reserve_bytes)
        return estimate(self._scene(), runnable(spec), settings, bounds, exact=exact)

    def default_settings(self, spec: ModelSpec, n_ctx: int, *, wake: bool = False) -> Settings:
        """Return sensible settings for an untuned model: the devices with room, all they hold.

        Args:
            spec: The model.
            n_ctx: Context over all slots, tokens.
            wake: The model will be run: a sleeping GPU may be woken to see what it holds.
        """
        return default_settings(self._scene(wake=wake), spec, n_ctx)

    # --- trials and searches ---------------------------------------------------------------

    def bench(self, model: str, request: TrialRequest) -> Iterator[RigEvent]:
        """Run one trial and yield its events."""
        self._here.must_be_here()
        spec, learned = runnable(self.inspect(model)), self._kept.learned()
        with Lease("bench"):
            yield from self._here.trial(spec, request, learned)

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

        Nothing is loaded before the event after the plan is asked for. For the rest see
        ``tune_and_try``, which has the same arguments and errors.
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
            resume: Go on with an interrupted search of the same kind, if there is one.
            record: File to write the search to, as a replay.
            cancel: Set it to stop; what was measured is kept.

        Raises:
            EnvironmentProblem: Model or engine cannot be used, or the request cannot be met.
        """
        self._here.must_be_here()
        spec = runnable(self.inspect(model))
        drafter = None if draft in (None, LOOKUP) else runnable(self.inspect(draft))
        extras = Extras(command=command, draft=draft, drafter=drafter)
        place = Place(
            machine=measurable(self.machine(wake=True)),
            launch=self._here.launch,
            telemetry=self.telemetry(),
            store=self.store(),
            ram_read=self._here.ram_read_gb_s,
            learned=self._kept.learned(),
            host_now=self._here.probes().host.identify,
        )
        with Lease("tune"):
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
            EnvironmentProblem: Model or engine failed, or this is a recording.
        """
        self._here.must_be_here()
        spec = runnable(self.inspect(model))
        with Lease("caps"):
            yield from self.power.sweep_caps(
                spec, settings, GOAL_WORKLOADS[Goal.QUIET],
                launch=self._here.launch, budget=budget, cancel=cancel,
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
        return Lease(purpose)

    # --- what was kept ---------------------------------------------------------------------

    def results(self) -> Results:
        """Return what can be done with stored searches."""
        return Results(self.store, self)

    def engines(self) -> Engines:
        """Return this RigTune's engine and the one that the last upgrade kept."""
        here = self._here
        return Engines(here.launch, self.store(), here.joined, here.rig_on, here.choose_engine)

    # --- chat ------------------------------------------------------------------------------

    def chat(self, model: str, profile_id: str | None = None) -> Chat:
        """Return a chat, not loaded yet, on a profile, the model's newest one, or defaults."""
        chosen = self._chosen(model, profile_id)
        return Chat(
            *chosen, lease=Lease("chat", room=self._room(chosen)), power=self.power,
            landing=self._landing(chosen), after_death=self._here.look_after_death,
        )  # fmt: skip

    def serve(self, model: str, profile_id: str | None = None) -> Server:
        """Return a local OpenAI-compatible server on the same settings as ``chat``, not begun."""
        chosen = self._chosen(model, profile_id)
        return Server(
            *chosen, lease=Lease("serve", room=self._room(chosen)), power=self.power,
            landing=self._landing(chosen), after_death=self._here.look_after_death,
        )  # fmt: skip

    def close(self) -> None:
        """Put limits back, stop telemetry and close the store."""
        self.power.end()
        self._here.close()
        self._kept.close()

    def _room(self, chosen: Chosen) -> Room:
        return room(lambda: self.estimate(chosen.spec, chosen.settings).estimate)

    def _landing(self, chosen: Chosen) -> Landing:
        return landing_of(chosen.spec, chosen.settings, self._scene(), self._here.window)

    def _scene(self, *, wake: bool = False) -> Scene:
        """Return the machine as an estimate sees it; nothing is woken unless asked."""
        machine = self.machine(wake=wake)
        readings = self._here.read_now(machine)
        learned = self._kept.learned()
        return Scene(with_ram_of_now(machine, readings), readings, learned, self._here.launch)

    def _chosen(self, model: str, profile_id: str | None) -> Chosen:
        self._here.must_be_here()
        spec = runnable(self.inspect(model))
        profile = profile_for(spec, profile_id, self.store)
        defaults = partial(self.default_settings, wake=True)
        return choose(spec, profile, defaults, partial(self.machine, wake=True), self._here.launch)
