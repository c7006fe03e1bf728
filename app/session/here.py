"""The machine that a session looks at: its probes, engine and telemetry, or a recording's."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import RigEvent
from app.domain.machine import (
    DriverReset,
    EngineInfo,
    GpuInfo,
    Machine,
    PowerState,
    ProbeSet,
)
from app.domain.model import ModelSpec
from app.domain.resets import reset_between
from app.domain.trial import TrialRequest
from app.machine import aliases, join_machine
from app.rig.interface import Rig
from app.rig.process import Launch
from app.session.engines import ask, chosen_launch
from app.session.opening import Learned, measurable, open_rig
from app.session.patience import resolve_and_read
from app.session.power_views import governed_gpus
from app.session.probing import Probing
from app.session.readings import Readings, read_now
from app.session.recording import read_engine, write_engine
from app.session.views import ReadSpeeds
from app.telemetry import Telemetry, Window

JUST_NOW = timedelta(seconds=30)
"""How long before an engine's death a driver's reset may be its cause."""


class Here:
    """This machine, or a recorded one; each thing is looked at once and then known.

    Attributes:
        launch: How engines are started.
        is_recorded: Whether it is a recording: nothing can be measured on it.
    """

    def __init__(self, probing: Probing, replay: str | None, launch: Launch) -> None:
        """Prepare; nothing is read or started yet."""
        self._asked = launch
        self.launch = chosen_launch(launch)
        self.is_recorded = replay is not None
        self._probing = probing
        self._replay = replay
        self._probes: ProbeSet | None = None
        self._machine: Machine | None = None
        self._telemetry: Telemetry | None = None
        self._ram_gb_s: float | None = None

    def probes(self) -> ProbeSet:
        """Return the probes, found once."""
        if self._probes is None:
            replay = self._replay
            self._probes = self._probing.replay(replay) if replay else self._probing.detect()
        return self._probes

    def machine(self, *, refresh: bool = False, wake: bool = False) -> Machine:
        """Return host, GPUs and engine; as ``Session.machine``.

        Raises:
            EnvironmentProblem: No worker can be had, or the recording cannot be read.
        """
        machine = self._machine
        unasked = machine is None or machine.engine is None
        if machine is None or refresh or (unasked and self._may_ask(wake=wake)):
            engine, problem = self._engine(wake=wake)
            machine = msgspec.structs.replace(
                self.joined(engine),
                engine_problem=problem,
                unavailable=self.probes().unavailable,
            )
            self._machine = machine
            if self._telemetry is not None:
                self._telemetry.rename(aliases(machine))
        return machine

    def choose_engine(self) -> None:
        """Start the engine that the user has chosen now, and look at the machine with it."""
        self.launch = chosen_launch(self._asked)
        self._machine = None

    @property
    def engine(self) -> EngineInfo | None:
        """The engine, if it was asked and answered; it is not asked for this."""
        return self._machine.engine if self._machine is not None else None

    def joined(self, engine: EngineInfo | None = None) -> Machine:
        """Return what the probes see now, joined with an engine."""
        probes = self.probes()
        infos = [info for probe in probes.gpus for info in probe.identify()]
        return join_machine(probes.host.identify(), infos, engine)

    def telemetry(self, interval_s: float | None = None) -> Telemetry:
        """Return the one telemetry, started; without an interval it reads during trials only."""
        if self._telemetry is None:
            probes = self.probes()
            self._telemetry = Telemetry(probes.gpus, probes.host, interval_s=interval_s)
            self._telemetry.start()
            if self._machine is not None:
                self._telemetry.rename(aliases(self._machine))
        return self._telemetry

    def window(self) -> AbstractContextManager[Window]:
        """Open a window of telemetry, which is started for it where it does not run yet."""
        return self.telemetry().window()

    def rig_on(
        self,
        spec: ModelSpec,
        machine: Machine,
        launch: Launch,
        devices: tuple[str, ...] = (),
        learned: Learned = Learned(),  # noqa: B008 - immutable
    ) -> Rig:
        """Return a rig that this telemetry watches, on the named devices or all that make sense.

        Raises:
            UsageProblem: A named device is not there.
            EnvironmentProblem: This is a recording.
        """
        self.must_be_here()
        return open_rig(
            spec, machine, launch, devices=devices, telemetry=self.telemetry(), learned=learned
        )[0]

    def trial(self, spec: ModelSpec, request: TrialRequest, learned: Learned) -> Iterator[RigEvent]:
        """Run one trial and yield its events."""
        machine = measurable(self.machine(wake=True))
        rig = self.rig_on(spec, machine, self.launch, request.settings.devices, learned)
        try:
            yield from rig.run_trial(request)
        finally:
            rig.close()

    def look_after_death(self) -> DriverReset | None:
        """Look at the host again after an engine died; return a driver's reset of just now.

        What is known of the machine is brought up to date, so that advice sees it as well.
        """
        host = self.probes().host.identify()
        if self._machine is not None:
            self._machine = msgspec.structs.replace(self._machine, host=host)
        now = datetime.now(UTC)
        return reset_between(host, now - JUST_NOW, now)

    def read_now(self, machine: Machine) -> Readings:
        """Return what the probes read of ``machine`` now, from telemetry where it runs."""
        return read_now(machine, self.probes(), self._telemetry)

    def record(self, directory: Path) -> Path:
        """Write this machine as a recording (serials and host names removed)."""
        file = self._probing.record(directory)
        write_engine(directory, self.machine().engine)
        return file

    def read_speeds(self, model: str) -> ReadSpeeds:
        """Measure how fast RAM and the disk of a model are read; takes about two seconds.

        Raises:
            EnvironmentProblem: There is no such model, or this is a recording.
        """
        self.must_be_here()
        path = Path(resolve_and_read(model).path)
        disk = self._probing.disk_read_mb_s(path)
        return ReadSpeeds(ram_gb_s=self.ram_read_gb_s(), disk_mb_s=disk, folder=str(path.parent))

    def ram_read_gb_s(self) -> float | None:
        """Return how fast RAM is read here, measured once; a recorded machine has no answer."""
        if self._ram_gb_s is None and not self.is_recorded:
            host = self.machine().host
            self._ram_gb_s = self._probing.ram_read_gb_s(host.cores_physical or 1, host.l3_bytes)
        return self._ram_gb_s

    def governed(self, names: tuple[str, ...]) -> dict[str, GpuInfo]:
        """Return the GPUs behind engine devices; the engine is not asked only for that."""
        machine = self._machine
        if machine is None:
            machine = self.joined()
            self.telemetry().rename(aliases(machine))
        return governed_gpus(machine, names)

    def must_be_here(self) -> None:
        """Refuse to measure on a recording.

        Raises:
            EnvironmentProblem: It is one.
        """
        if self.is_recorded:
            message = "This is the recording of a machine: nothing can be measured on it."
            raise EnvironmentProblem("recorded_machine", message, "Start RigTune without --replay.")

    def close(self) -> None:
        """Stop telemetry."""
        if self._telemetry is not None:
            self._telemetry.stop()

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
            return ask(self.launch), None
        except EnvironmentProblem as problem:
            if wake:
                raise
            # Without an engine there is still a machine to show.
            return None, problem.info

    def _may_ask(self, *, wake: bool) -> bool:
        """Return whether the engine may be asked: listing devices wakes a sleeping GPU."""
        return not self.is_recorded and (wake or not self._is_a_gpu_asleep())

    def _is_a_gpu_asleep(self) -> bool:
        if self._telemetry is not None:
            keys = self._telemetry.keys()
            samples = [s for key in keys for s in self._telemetry.latest(key)]
        else:
            samples = [s for probe in self.probes().gpus for s in probe.sample()]
        return any(s.power_state is PowerState.ASLEEP for s in samples)
