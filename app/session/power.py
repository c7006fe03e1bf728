"""Heat and power as the surfaces see them: what is chosen, how it stands, what was changed."""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Protocol

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.machine import GpuInfo, GpuKind, GpuSample, HostSample, Machine
from app.domain.model import ModelSpec
from app.domain.pacing import Pace
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import BudgetName
from app.domain.trial import Workload
from app.estimate.kv import kv_bytes_per_token
from app.machine import kind_of
from app.power.admin import AdminCommand, limit_command, this_system
from app.power.changes import Change, ChangeLog, Pending
from app.power.choice import PowerChoice, checked, load_choice, save_choice
from app.power.client import HelperClient, start_helper
from app.power.devices import expected_range, reading_of
from app.power.keeper import DeviceState, Keeper, Spent
from app.power.protocol import PutBack
from app.power.speed import Load
from app.power.start import restore_pending
from app.rig.process import Launch
from app.session.capsweep import CapsEvent, CapSweep

SUGGESTED_FRAC = 0.8
"""Of the limit found: published curves lose under 2 % of decode there (cards with room below)."""


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


class EnergyReport(Record, frozen=True, kw_only=True):
    """What an answer or a conversation cost; measured, ``None`` where too little was seen.

    Attributes:
        n_tok: Tokens generated.
        joules: Energy of the GPUs in use.
        j_per_tok: Joules per generated token.
        watt_hours: The same energy in Wh.
        cost_per_1000: Price of 1,000 tokens by the user's tariff.
        currency: What the price is in.
        source: ``counter`` (the device's own), ``draw`` (its draw added up) or ``None``.
    """

    n_tok: int
    joules: float | None
    j_per_tok: float | None
    watt_hours: float | None
    cost_per_1000: float | None
    currency: str
    source: str | None


class PowerState(Record, frozen=True, kw_only=True):
    """The status line and what stands beside it.

    Attributes:
        choice: What the user chose.
        devices: Devices that a loaded model works on; empty = nothing is governed now.
        is_paused: Whether the user put everything back and nothing is turned until they resume.
        answer: Energy of the last answer; ``None`` while nothing is loaded.
        conversation: Energy of the conversation.
    """

    choice: PowerChoice
    devices: tuple[DeviceState, ...] = ()
    is_paused: bool = False
    answer: EnergyReport | None = None
    conversation: EnergyReport | None = None


class PowerDevice(Record, frozen=True, kw_only=True):
    """What is known of a device's heat and limit without any rights.

    Attributes:
        key: ``Gpu.key``.
        name: Marketing name.
        temp_c: Core temperature now.
        slowdown_c: Where its firmware slows it down.
        power_w: Draw now.
        limit_w: Limit in force.
        range_w: Limits that the helper may be able to set; only its set and read back proves it.
        why_not: Code of why there is none (``power`` texts).
        commands: For an administrator: what sets four fifths of the limit, and what undoes it.
    """

    key: str
    name: str
    temp_c: float | None = None
    slowdown_c: float | None = None
    power_w: float | None = None
    limit_w: float | None = None
    range_w: tuple[float, float] | None = None
    why_not: str | None = None
    commands: tuple[AdminCommand, ...] = ()


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
        load = Load(
            weights_bytes=spec.weights_bytes, kv_bytes_per_token=kv_bytes_per_token(spec, settings)
        )
        try:
            keeper = Keeper(
                devices, self.choice, readings=self._latest, refresh=self._refresh,
                set_pace=set_pace,
                load=load, log=self._log_now(), helper=self._helper,
            )  # fmt: skip
        except EnvironmentProblem:
            return None
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
            return PowerState(choice=choice)
        return PowerState(
            choice=choice,
            devices=keeper.states,
            is_paused=keeper.is_paused,
            answer=report_of(keeper.answer, choice),
            conversation=report_of(keeper.conversation, choice),
        )

    def restore(self) -> None:
        """Put everything back now (one click) and turn nothing until ``resume``."""
        if self._keeper is not None:
            self._keeper.restore()

    def resume(self) -> None:
        """Govern again after ``restore``."""
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
            spec, settings, workload, readings=self._read, helper=self._helper,
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


def report_of(spent: Spent, choice: PowerChoice) -> EnergyReport:
    """Return what ``spent`` means at the user's tariff."""
    use, price = spent.use, choice.price_per_kwh
    return EnergyReport(
        n_tok=spent.n_tok,
        joules=use.joules if use.is_complete else None,
        j_per_tok=use.joules_per_token(spent.n_tok),
        watt_hours=use.watt_hours,
        cost_per_1000=None if price is None else use.cost_per_1000(spent.n_tok, price),
        currency=choice.currency,
        source=use.source,
    )


def device_of(key: str, info: GpuInfo, samples: Sequence[GpuSample]) -> PowerDevice:
    """Return what is known of a device, and what an administrator could do about its limit."""
    now = reading_of(samples, None, active=False)
    limit_w = now.power_limit_w
    allowed = expected_range(info, limit_w)
    if isinstance(allowed, str):
        return PowerDevice(
            key=key, name=info.name or key, temp_c=now.temp_c, slowdown_c=info.temp_slowdown_c,
            power_w=now.power_w, limit_w=limit_w, why_not=allowed,
        )  # fmt: skip
    wanted = max(allowed.low, round(SUGGESTED_FRAC * allowed.high))
    command = limit_command(info, wanted, allowed.now, this_system())
    return PowerDevice(
        key=key, name=info.name or key, temp_c=now.temp_c, slowdown_c=info.temp_slowdown_c,
        power_w=now.power_w, limit_w=limit_w, range_w=(allowed.low, allowed.high),
        commands=() if command is None else (command,),
    )  # fmt: skip


def governed_gpus(machine: Machine, names: tuple[str, ...]) -> dict[str, GpuInfo]:
    """Return the GPUs to govern, by key: those behind ``names``, or those an engine would take.

    Args:
        machine: The machine; before the engine was asked only the probes' view is there.
        names: Engine devices; empty = every discrete GPU, or the integrated one without any.
    """
    known = [gpu for gpu in machine.gpus if gpu.info is not None]
    named = [gpu for gpu in known if {d.name for d in gpu.engine} & set(names)]
    discrete = [gpu for gpu in known if kind_of(gpu) is GpuKind.DISCRETE]
    used = named or discrete or known
    return {gpu.key: gpu.info for gpu in used if gpu.info is not None}


def problem_of(state: PowerState) -> ErrorInfo | None:
    """Return why limits cannot be set, where that was asked for."""
    return next((d.problem for d in state.devices if d.problem is not None), None)
