"""Two engines: this RigTune's, and the one from before the last upgrade, kept to go back to.

An upgrade may make a working setup slower, or end it. So profiles that another engine measured are
measured again, with both engines in turns, and the user may stay with the earlier one.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from app.domain.errors import EnvironmentProblem, ErrorInfo, UsageProblem
from app.domain.events import RigEvent, TrialFinished
from app.domain.finding import Check, CheckStatus
from app.domain.machine import EngineInfo, Machine
from app.domain.model import ModelSpec
from app.domain.record import Record
from app.domain.trial import Trial, TrialRequest
from app.domain.units import counted
from app.gguf import read_model
from app.rig.interface import Rig
from app.rig.planner import ask_engine
from app.rig.process import Launch
from app.runtime import atomic_write, data_dir, missing_files, previous_worker, write_problem
from app.session.engine_verdict import EngineChecked, judge, renewed, workload_of
from app.store import Profile, Store
from app.store.records import engine_name, is_same_build

MARKER = "previous-engine-in-use"
"""File in the data folder; while it is there, the earlier engine serves. Installers look for it."""
MARKER_TEXT = b"The engine from before the last upgrade is in use: rigtune engine --use current\n"
GO_BACK = "The engine from before the last upgrade is still there: rigtune engine --use previous"

MEASURED_ELSEWHERE = (
    "Another engine build measured this profile; `rigtune engine --check` measures it again."
)


class EngineName(StrEnum):
    """Which of the two."""

    CURRENT = "current"
    PREVIOUS = "previous"

    @property
    def other(self) -> "EngineName":
        """The other one."""
        return EngineName.PREVIOUS if self is EngineName.CURRENT else EngineName.CURRENT


# each engine loads twice, in an order that favours neither when the machine grows warm
TURNS = (EngineName.PREVIOUS, EngineName.CURRENT, EngineName.CURRENT, EngineName.PREVIOUS)


class EngineState(Record, frozen=True, kw_only=True):
    """One of the two engines.

    Attributes:
        name: Which one.
        in_use: Whether searches and chats run on it.
        build: What identifies the build, as profiles name it; ``None`` where it does not start.
        error: Why it does not.
    """

    name: EngineName
    in_use: bool
    build: str | None = None
    error: ErrorInfo | None = None


class EngineStanding(Record, frozen=True, kw_only=True):
    """Which engine serves, and what it means for what is stored; nothing was started for it.

    Attributes:
        in_use: Which of the two; ``None`` = libraries of the user's own.
        has_previous: Whether the engine from before the last upgrade was kept.
        build: Build in use; ``None`` where it does not start, or was not asked (a GPU sleeps).
        error: Why it does not start.
        outdated: Profiles that another build than the one in use measured.
    """

    in_use: EngineName | None
    has_previous: bool
    build: str | None = None
    error: ErrorInfo | None = None
    outdated: tuple[Profile, ...] = ()


def name_in_use() -> EngineName:
    """Return the engine that the user chose, if it is still there."""
    with suppress(EnvironmentProblem):
        if previous_worker() is not None and (data_dir() / MARKER).exists():
            return EngineName.PREVIOUS
    return EngineName.CURRENT


def launch_with(name: EngineName, launch: Launch) -> Launch:
    """Return ``launch`` with one of the two engines instead of any other."""
    command = previous_worker() if name is EngineName.PREVIOUS else None
    return msgspec.structs.replace(launch, command=command, engine_dir=None)


def chosen_launch(launch: Launch) -> Launch:
    """Return ``launch`` with the engine that the user chose; a folder of their own goes first."""
    is_earlier = not launch.engine_dir and name_in_use() is EngineName.PREVIOUS
    return launch_with(EngineName.PREVIOUS, launch) if is_earlier else launch


def ask(launch: Launch) -> EngineInfo:
    """Return the engine's build and devices.

    Raises:
        EnvironmentProblem: No worker can be had; the hint names the way back, if there is one.
    """
    try:
        return ask_engine(launch)
    except EnvironmentProblem as problem:
        if launch.command is not None or launch.engine_dir:
            raise
        info, lost = problem.info, missing_files()
        hint = info.hint
        if lost:
            hint = f"Parts of RigTune are missing ({', '.join(lost[:3])}): install it again."
        if previous_worker() is not None:
            hint = f"{hint} {GO_BACK}".strip()
        raise EnvironmentProblem(info.code, info.message, hint) from problem


def profile_checks(engine: EngineInfo, profiles: Sequence[Profile]) -> Iterator[Check]:
    """Yield what the self-test says of profiles that another engine build measured."""
    others = [p for p in profiles if is_of_another(p, engine)]
    if others:
        names = ", ".join(p.name for p in others[:3]) + (", …" if len(others) > 3 else "")
        were = counted(len(others), "stored profile was", "stored profiles were")
        text = f"{were} measured by another engine build: {names}"
        hint = "`rigtune engine --check` measures them again and can go back."
        yield Check(id="profiles_engine", status=CheckStatus.WARNING, text=text, hint=hint)


def is_of_another(profile: Profile, engine: EngineInfo | None) -> bool:
    """Whether another engine build measured the profile."""
    return engine is not None and _is_other(profile, engine_name(engine))


def _is_other(profile: Profile, build: str) -> bool:
    return bool(profile.engine) and not is_same_build(profile.engine, build)


class Engines:
    """Shows the two engines, measures profiles again with both, and switches."""

    def __init__(
        self,
        launch: Launch,
        store: Store,
        machine_with: Callable[[EngineInfo], Machine],
        open_rig: Callable[[ModelSpec, Machine, Launch], Rig],
        on_switch: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            launch: How workers are started.
            store: Holds the profiles.
            machine_with: Joins this machine with an engine.
            open_rig: Opens a rig for a model on a machine with that engine.
            on_switch: Called when the other engine was chosen.
        """
        self._launch = launch
        self._store = store
        self._machine_with = machine_with
        self._open_rig = open_rig
        self._on_switch = on_switch

    def standing(self, machine: Machine) -> EngineStanding:
        """Return which engine serves ``machine``, without starting one."""
        engine = machine.engine
        return EngineStanding(
            in_use=None if self._launch.engine_dir else name_in_use(),
            has_previous=previous_worker() is not None,
            build=engine_name(engine) if engine else None,
            error=machine.engine_problem,
            outdated=tuple(p for p in self._store.profiles() if is_of_another(p, engine)),
        )

    def states(self) -> tuple[EngineState, ...]:
        """Return this RigTune's engine, and the earlier one if it was kept."""
        kept = previous_worker() is not None
        names = (EngineName.CURRENT, *((EngineName.PREVIOUS,) if kept else ()))
        return tuple(self._state(name) for name in names)

    def outdated(self, states: Sequence[EngineState]) -> tuple[Profile, ...]:
        """Return the profiles that another build than this RigTune's engine measured."""
        build = next((s.build for s in states if s.name is EngineName.CURRENT), None)
        return tuple(p for p in self._store.profiles() if build and _is_other(p, build))

    def use(self, name: EngineName) -> None:
        """Let searches and chats run on one of the two from now on.

        Raises:
            UsageProblem: No earlier engine was kept.
            EnvironmentProblem: The choice cannot be stored.
        """
        marker = data_dir() / MARKER
        if name is EngineName.CURRENT:
            try:
                marker.unlink(missing_ok=True)
            except OSError as error:
                raise write_problem(error, marker) from error
            self._on_switch()
            return
        if previous_worker() is None:
            message = "No engine from before an upgrade was kept here."
            raise UsageProblem("no_previous_engine", message, "An upgrade keeps it by itself.")
        atomic_write(marker, MARKER_TEXT)
        self._on_switch()

    def check(self, profile_id: str) -> Generator[RigEvent | EngineChecked, None, None]:
        """Measure a profile with both engines in turns; the last event is the comparison.

        Without an earlier engine the stored figures are what is compared with. A profile that is
        not slower gets the new figures; otherwise those of the last good engine stay.

        Raises:
            EnvironmentProblem: The model is not there any more, or is another one now.
        """
        profile = self._store.profile(profile_id)
        spec = read_model(Path(profile.model_path))
        if spec.fingerprint != profile.model_fingerprint:
            message = f"{spec.path} is another model than the profile's ({profile.model_name})."
            raise EnvironmentProblem("another_model", message, "Tune that model.")
        stored = () if profile.sweep_id is None else self._store.trials(profile.sweep_id)
        request = TrialRequest(
            stage="engine", settings=profile.settings, workload=workload_of(profile, stored)
        )
        has_previous = previous_worker() is not None
        measured: dict[EngineName, list[Trial]] = {name: [] for name in EngineName}
        build, problem = "", None
        for load_id, name in enumerate(TURNS if has_previous else TURNS[1:3], start=1):
            try:
                engine = ask_engine(launch_with(name, self._launch))
                trial = yield from self._trial(spec, engine, name, request)
            except EnvironmentProblem as found:
                if name is EngineName.CURRENT:
                    problem = found.info
                continue
            if name is EngineName.CURRENT:
                build = engine_name(engine)
            measured[name].append(msgspec.structs.replace(trial, load_id=load_id))
        checked = judge(
            profile, stored, measured[EngineName.CURRENT], measured[EngineName.PREVIOUS]
        )
        if checked.verdict == "broken" and checked.error is None:
            checked = msgspec.structs.replace(checked, error=problem)
        new = renewed(profile, checked, build)
        if new is not None:
            self._store.renew_profile(new)
        yield msgspec.structs.replace(checked, renewed=new is not None)

    def _trial(
        self, spec: ModelSpec, engine: EngineInfo, name: EngineName, request: TrialRequest
    ) -> Generator[RigEvent, None, Trial]:
        rig = self._open_rig(spec, self._machine_with(engine), launch_with(name, self._launch))
        try:
            for event in rig.run_trial(request):
                yield event
                if isinstance(event, TrialFinished):
                    return event.trial
        finally:
            rig.close()
        raise EnvironmentProblem("no_result", "The trial ended without a result.", "Try again.")

    def _state(self, name: EngineName) -> EngineState:
        in_use = name is name_in_use() and not self._launch.engine_dir
        try:
            engine = ask_engine(launch_with(name, self._launch))
        except EnvironmentProblem as problem:
            return EngineState(name=name, in_use=in_use, error=problem.info)
        return EngineState(name=name, in_use=in_use, build=engine_name(engine))
