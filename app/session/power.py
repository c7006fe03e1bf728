"""Heat and power as the surfaces see them: what is chosen, how it stands, what was changed."""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Protocol

from app.domain.errors import EnvironmentProblem
from app.domain.machine import GpuInfo, GpuSample, HostSample
from app.domain.model import ModelSpec
from app.domain.pacing import Pace
from app.domain.settings import Settings
from app.domain.sweep import BudgetName
from app.domain.trial import Workload
from app.estimate.kv import kv_bytes_per_token
from app.estimate.weights import is_expert
from app.power.changes import Change, ChangeLog, Pending
from app.power.choice import PowerChoice, checked, load_choice, save_choice
from app.power.client import HelperClient, start_helper
from app.power.keeper import Keeper
from app.power.protocol import PutBack
from app.power.speed import Load
from app.power.start import restore_pending
from app.rig.process import Launch
from app.session.capsweep import CapsEvent, CapSweep
from app.session.power_views import PowerDevice, PowerState, device_of, report_of


class LiveReadings(Protocol):
    """What governing needs of ``app.telemetry``."""

    def sample_now(self, timeout_s: float = ...) -> bool:
        """Read every probe once."""
        ...

    def latest(self, key: str) -> tuple[GpuSample, ...]:
        """Return the newest sample of a GPU from each probe, best first."""
        ...

    def latest_host(self) -> HostSample | None:
        """Return the newest sample of the host."""
        ...

    def is_stale(self, sample: GpuSample | HostSample) -> bool:
        """Whether a sample is older than it should be."""
        ...


class Power:
    """The part of the façade about heat and power. One model is governed at a time."""

    def __init__(
        self,
        devices: Callable[[tuple[str, ...]], Mapping[str, GpuInfo]],
        telemetry: Callable[[], LiveReadings],
        *,
        helper: Callable[[], HelperClient] = start_helper,
        log: ChangeLog | None = None,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            devices: Returns the GPUs behind engine devices (none named: all that it would use).
            telemetry: Returns the session's readings.
            helper: Starts the power helper.
            log: Where changes are kept; ``None`` = the user's data folder.
        """
        self._devices, self._telemetry, self._helper = devices, telemetry, helper
        self._log = log
        self._keeper: Keeper | None = None
        self._choice: PowerChoice | None = None
        self._is_paused = False

    # --- choice ----------------------------------------------------------------------------

    @property
    def choice(self) -> PowerChoice:
        """What the user chose, now or in an earlier run."""
        if self._choice is None:
            self._choice = load_choice()
        return self._choice

    def choose(self, choice: PowerChoice, *, keep: bool = True) -> None:
        """Follow another choice from now on.

        Args:
            choice: What is wanted.
            keep: Whether later runs follow it, too.

        Raises:
            UsageProblem: A figure makes no sense, or the device does not allow it.
            EnvironmentProblem: It cannot be written down.
        """
        checked(choice)
        if self._keeper is not None:
            self._keeper.choose(choice)
        self._choice = choice
        if keep:
            save_choice(choice)

    # --- in use ----------------------------------------------------------------------------

    def begin(
        self, spec: ModelSpec, settings: Settings, set_pace: Callable[[Pace], None]
    ) -> Keeper | None:
        """Govern the devices of a model that was just loaded; ``end`` puts everything back.

        Args:
            spec: The model.
            settings: What it runs on.
            set_pace: Passes a pace to its worker.

        Returns:
            What to tell about its answers; ``None`` where nothing can be kept on disk.
        """
        self.end()
        self._telemetry()  # made here, because the keeper's thread must not make a second one
        devices = self._devices(settings.devices) if settings.n_gpu_layers else {}
        try:
            keeper = Keeper(
                devices, self.choice, readings=self._latest, refresh=self._refresh,
                set_pace=set_pace,
                load=load_of(spec, settings), log=self._log_now(), helper=self._helper,
            )  # fmt: skip
        except EnvironmentProblem:
            return None
        if self._is_paused:
            keeper.restore()  # what the user said holds for the next model, too
        self._keeper = keeper
        keeper.start()
        return keeper

    def end(self) -> None:
        """Put everything back and govern no more."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.stop()

    def measure(self) -> None:
        """Take a reading now, so that the energy of the answer just ended is complete."""
        if self._keeper is not None:
            self._keeper.tick()

    def new_conversation(self) -> None:
        """Count energy anew."""
        if self._keeper is not None:
            self._keeper.new_conversation()

    @property
    def state(self) -> PowerState:
        """How things stand; reads no file, so it may be asked on any thread."""
        keeper, choice = self._keeper, self._choice or PowerChoice()
        if keeper is None:
            return PowerState(choice=choice, is_paused=self._is_paused)
        return PowerState(
            choice=choice,
            devices=keeper.states,
            is_paused=self._is_paused,
            answer=report_of(keeper.answer, choice),
            conversation=report_of(keeper.conversation, choice),
        )

    def restore(self) -> None:
        """Put everything back now (one click) and turn nothing until ``resume``."""
        self._is_paused = True
        if self._keeper is not None:
            self._keeper.restore()

    def resume(self) -> None:
        """Govern again after ``restore``."""
        self._is_paused = False
        if self._keeper is not None:
            self._keeper.resume()

    def devices(self) -> tuple[PowerDevice, ...]:
        """Return every GPU with what can be said of its heat and limit now; wakes none."""
        found = self._devices(())
        self._telemetry().sample_now()
        return tuple(device_of(key, info, self._latest(key)) for key, info in found.items())

    def sweep_caps(
        self,
        spec: ModelSpec,
        settings: Settings,
        workload: Workload,
        *,
        launch: Launch,
        budget: BudgetName = BudgetName.STANDARD,
        cancel: threading.Event,
    ) -> Generator[CapsEvent, None, None]:
        """Measure what each power limit gives (or each pace); the last event is the result.

        Nothing else of RigTune may use the devices meanwhile.
        """
        sweep = CapSweep(
            spec, settings, workload, readings=self._read,
            host=lambda: self._telemetry().latest_host(), helper=self._helper,
            devices=self._devices(settings.devices) if settings.n_gpu_layers else {},
            log=self._log_now(), launch=launch, budget=budget, cancel=cancel,
        )  # fmt: skip
        yield from sweep.run()

    # --- what was done -----------------------------------------------------------------------

    def history(self, n: int = 50) -> tuple[Change, ...]:
        """Return the newest changes with what was read before and after, oldest first."""
        return self._log_now().history(n)

    def pending(self) -> tuple[Pending, ...]:
        """Return devices that an earlier run left changed; asks nobody for anything."""
        governed = {state.key for state in self.state.devices}
        return tuple(p for p in self._log_now().pending() if p.key not in governed)

    def restore_pending(self) -> tuple[PutBack, ...]:
        """Put back what an earlier run left behind; the system asks for a password.

        Raises:
            EnvironmentProblem: The helper cannot be started.
        """
        return restore_pending(self._log_now(), self._helper)

    def _log_now(self) -> ChangeLog:
        if self._log is None:
            self._log = ChangeLog()
        return self._log

    def _read(self, key: str) -> Sequence[GpuSample]:
        self._telemetry().sample_now()
        return self._latest(key)

    def _latest(self, key: str) -> Sequence[GpuSample]:
        telemetry = self._telemetry()
        return [s for s in telemetry.latest(key) if not telemetry.is_stale(s)]

    def _refresh(self) -> HostSample | None:
        telemetry = self._telemetry()
        telemetry.sample_now()
        return telemetry.latest_host()


def load_of(spec: ModelSpec, settings: Settings) -> Load:
    """Return what ``spec`` reads per token: of the experts only those used."""
    share = spec.n_expert_used / spec.n_expert if spec.n_expert and spec.n_expert_used else 1.0
    read = sum(t.n_bytes * (share if is_expert(t) else 1.0) for t in spec.tensors)
    return Load(weights_bytes=round(read), kv_bytes_per_token=kv_bytes_per_token(spec, settings))
