"""The governor beside one loaded model: every device it works on, once a second, on one thread."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.machine import GpuInfo, GpuSample, HostSample
from app.domain.pacing import Pace
from app.domain.record import Record
from app.power.changes import ChangeLog
from app.power.choice import PowerChoice
from app.power.client import HelperClient, start_helper
from app.power.control import PowerControl, PowerStatus
from app.power.devices import reading_of
from app.power.energy import EnergyMeter, EnergyUse
from app.power.speed import Load, SpeedWatch
from app.power.start import start_control

LOG = logging.getLogger(__name__)
TICK_S = 1.0
_NS_PER_S = 1e9

Readings = Callable[[str], Sequence[GpuSample]]
"""Returns what was read of a device, best probe first; stale readings are left out."""


class DeviceState(Record, frozen=True, kw_only=True):
    """One governed device.

    Attributes:
        key: ``GpuInfo.key``.
        name: Marketing name.
        status: Temperature, limit, action and reason; ``None`` before the first reading.
        limit_w: Limit in force, as read.
        power_w: Draw.
        problem: Why limits cannot be set, where that was asked for.
    """

    key: str
    name: str
    status: PowerStatus | None = None
    limit_w: float | None = None
    power_w: float | None = None
    problem: ErrorInfo | None = None


class Spent(Record, frozen=True, kw_only=True):
    """Energy of an answer or of a conversation, and the tokens it gave."""

    use: EnergyUse = EnergyUse()
    n_tok: int = 0


class _Kept:
    """One device: its control, once it is there, and its meter."""

    def __init__(self, key: str, info: GpuInfo) -> None:
        self.info = info
        self.control: PowerControl | None = None
        self.meter = EnergyMeter()
        self.duty = 1.0
        self.state = DeviceState(key=key, name=info.name or key)


class Keeper:
    """Governs devices while a model is loaded. ``stop`` puts everything back.

    Everything that may block (a password, a stalled probe) happens on its own thread; the other
    methods may be called by any thread.
    """

    def __init__(
        self,
        devices: Mapping[str, GpuInfo],
        choice: PowerChoice,
        *,
        readings: Readings,
        refresh: Callable[[], HostSample | None],
        set_pace: Callable[[Pace], None],
        load: Load | None = None,
        log: ChangeLog | None = None,
        helper: Callable[[], HelperClient] = start_helper,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is read or set before ``start`` (or the first ``tick``).

        Args:
            devices: What to govern, by the key that ``readings`` knows.
            choice: What the user wants.
            readings: Returns the readings of one device.
            refresh: Reads every device and the host now; returns power source and mode.
            set_pace: Passes a new pace to the engine's worker.
            load: What the model reads per token.
            log: Where changes are kept; ``None`` = the user's data folder.
            helper: Starts the helper.
            clock: Seconds, steady.
        """
        self._kept = {key: _Kept(key, info) for key, info in devices.items()}
        self._choice = choice
        self._readings, self._refresh, self._set_pace = readings, refresh, set_pace
        self._log = log or ChangeLog()
        self._helper, self._clock = helper, clock
        self._speed = SpeedWatch(load)
        self._lock, self._counts = threading.RLock(), threading.Lock()
        self._asking = threading.Lock()
        self._wake, self._is_over = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._is_active = self._was_active = False
        self._is_paused = False
        self._n_tok = self._n_prompt = 0
        self._answer, self._conversation = Spent(), Spent()

    # --- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to govern, on a thread; a password is asked for beside it."""
        if not self._kept:
            return
        self._thread = threading.Thread(target=self._run, name="power", daemon=True)
        self._thread.start()
        self._seek_beside()

    def stop(self) -> None:
        """Put everything back and end; a password prompt is not waited for."""
        self._is_over.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            self._close()

    def tick(self) -> None:
        """Take one reading of each device and act on it."""
        with self._lock:
            now_s, duty = self._clock(), self._duty()
            is_active, speed = self._is_active, None
            if is_active:
                speed = self._speed.speed(now_s, self._n_tok, self._n_prompt + self._n_tok, duty)
            else:
                self._speed.rest()
            host, spent = self._refresh(), EnergyUse()
            for key, kept in self._kept.items():
                if kept.control is None:
                    self._begin(key, kept, use_helper=False)
                before = kept.meter.use
                self._tick_one(key, kept, host, speed, is_active=is_active)
                spent += _since(before, kept.meter.use)
            with self._counts:
                self._answer = _more(self._answer, spent)
                self._conversation = _more(self._conversation, spent)
            self._was_active = is_active

    def seek_helpers(self) -> None:
        """Get the helper for every device; blocks while the system asks for a password."""
        with self._asking:  # one prompt at a time, and none for what is there already
            for key, kept in self._kept.items():
                if self._is_over.is_set() or not self._choice.use_helper:
                    return
                if kept.control is None or not kept.control.has_helper:
                    self._begin(key, kept, use_helper=True)

    # --- what the model does ---------------------------------------------------------------

    @contextlib.contextmanager
    def answering(self, n_prompt: int = 0) -> Iterator[None]:
        """Count what happens meanwhile as one answer."""
        with self._counts:
            self._answer = Spent()
        self._n_tok, self._n_prompt = 0, n_prompt
        self._is_active = True
        self._wake.set()
        try:
            yield
        finally:
            self._is_active = False
            with self._counts:
                self._answer = _more(self._answer, n_tok=self._n_tok)
                self._conversation = _more(self._conversation, n_tok=self._n_tok)
            self._wake.set()  # the last stretch is metered now, not up to a second later

    def set_active(self, *, active: bool) -> None:
        """Tell whether the engine works, where answers are not seen (a server)."""
        if active != self._is_active:
            self._is_active = active
            self._wake.set()

    def progressed(self, n_tok: int, n_prompt: int | None = None) -> None:
        """Tell how many tokens the answer has so far, and its prompt once that is known."""
        self._n_tok = max(self._n_tok, n_tok)
        self._n_prompt = self._n_prompt if n_prompt is None else n_prompt

    def new_conversation(self) -> None:
        """Count energy from nothing again."""
        with self._counts:
            self._answer = self._conversation = Spent()

    # --- what the user sees and wants --------------------------------------------------------

    @property
    def states(self) -> tuple[DeviceState, ...]:
        """Each device as it stands."""
        return tuple(kept.state for kept in self._kept.values())

    @property
    def answer(self) -> Spent:
        """Energy of the last answer."""
        return self._answer

    @property
    def conversation(self) -> Spent:
        """Energy of the conversation so far."""
        return self._conversation

    def choose(self, choice: PowerChoice) -> None:
        """Follow another choice from the next reading on.

        Raises:
            UsageProblem: A device does not allow the limit; the earlier choice stays.
        """
        with self._lock:
            before = self._choice
            if before.use_helper and not choice.use_helper:
                self._close()
            for key, kept in self._kept.items():
                if kept.control is not None:
                    kept.control.set_wish(choice.wish(key))
            self._choice = choice
        if choice.use_helper and not before.use_helper and self._thread is not None:
            self._seek_beside()
        self._wake.set()

    def restore(self) -> None:
        """Put everything back now and act no more until ``resume``."""
        with self._lock:
            self._is_paused = True
            for kept in self._kept.values():
                if kept.control is not None:
                    kept.control.restore()

    def resume(self) -> None:
        """Govern again."""
        with self._lock:
            self._is_paused = False
            for kept in self._kept.values():
                if kept.control is not None:
                    kept.control.resume()
        self._wake.set()

    # --- inside ------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self.tick()
            except Exception:  # top frame of the thread: nothing may stay set
                LOG.exception("the governor failed and gives everything back")
                with self._lock:
                    self._close()
                return
            self._wake.wait(TICK_S)
            self._wake.clear()

    def _seek_beside(self) -> None:
        if self._choice.use_helper and self._kept:
            # Not joined: it may wait minutes for a password, and undoes itself if it is too late.
            threading.Thread(target=self.seek_helpers, name="power-ask", daemon=True).start()

    def _begin(self, key: str, kept: _Kept, *, use_helper: bool) -> None:
        def pace(pace: Pace) -> None:
            kept.duty = pace.duty
            self._set_pace(Pace(duty=self._duty()))

        control, problem = None, None
        try:
            control, problem = start_control(
                kept.info, self._choice.wish(key), set_pace=pace, use_helper=use_helper,
                log=self._log, helper=self._helper, clock=self._clock,
            )  # fmt: skip
        except EnvironmentProblem as error:
            problem = error.info
        with self._lock:
            if use_helper and (self._is_over.is_set() or not self._choice.use_helper):
                if control is not None:
                    control.close()
                return
            self._take(kept, control, problem)

    def _take(self, kept: _Kept, control: PowerControl | None, problem: ErrorInfo | None) -> None:
        if control is not None:
            if kept.control is not None:
                control.learn_from(kept.control.cooling)
                kept.control.close()
            if self._is_paused:
                control.restore()
            kept.control = control
        kept.state = msgspec.structs.replace(kept.state, problem=problem or kept.state.problem)

    def _tick_one(
        self,
        key: str,
        kept: _Kept,
        host: HostSample | None,
        speed: float | None,
        *,
        is_active: bool,
    ) -> None:
        samples = self._readings(key)
        reading = reading_of(samples, host, active=is_active, speed=speed)
        status = kept.control.tick(reading) if kept.control is not None else None
        kept.state = msgspec.structs.replace(
            kept.state, status=status, limit_w=reading.power_limit_w, power_w=reading.power_w
        )
        if is_active or self._was_active:
            energy = next((s.energy_j for s in samples if s.energy_j is not None), None)
            t_s = samples[0].t_ns / _NS_PER_S if samples else time.perf_counter()
            kept.meter.add(t_s, reading.power_w, energy)
        if not is_active:
            kept.meter.rest()

    def _duty(self) -> float:
        return min((kept.duty for kept in self._kept.values()), default=1.0)

    def _close(self) -> None:
        for kept in self._kept.values():
            control, kept.control = kept.control, None
            if control is not None:
                control.close()


def _since(before: EnergyUse, now: EnergyUse) -> EnergyUse:
    return EnergyUse(
        joules=now.joules - before.joules,
        elapsed_s=now.elapsed_s - before.elapsed_s,
        covered_s=now.covered_s - before.covered_s,
        counted_s=now.counted_s - before.counted_s,
    )


def _more(spent: Spent, use: EnergyUse | None = None, n_tok: int = 0) -> Spent:
    return Spent(use=spent.use + (use or EnergyUse()), n_tok=spent.n_tok + n_tok)
