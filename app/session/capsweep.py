"""Cap sweep of a model: what each power limit gives, or each pace where none can be set."""

import queue
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence

from app.advice.text import render_power
from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.machine import GpuInfo, GpuSample, HostSample
from app.domain.model import ModelSpec
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import BudgetName, Reason
from app.domain.trial import Workload
from app.power.admin import AdminCommand, clocks_command, limit_command, this_system
from app.power.caphand import CapHand
from app.power.caps import (
    CapChoice,
    CapPoint,
    Sustained,
    caps_to_try,
    choose_cap,
    predict_sustained,
)
from app.power.capsweep import CapSample, follow_caps
from app.power.changes import ChangeLog
from app.power.client import HelperClient
from app.power.conditions import Conditions, why_not_comparable
from app.power.devices import expected_range, reading_of
from app.power.known import Coolers
from app.power.lessons import Lessons
from app.power.records import Knob
from app.rig.chat_engine import ChatEngine
from app.rig.process import Launch
from app.session.capbench import Answering, EngineBench, Stopped

N_CAPS = {BudgetName.QUICK: 3, BudgetName.STANDARD: 6, BudgetName.THOROUGH: 8}
PACES = (1.0, 0.75, 0.5)
_POLL_S = 0.1
_LOW_CLOCK_FRAC, _LOCK_FRAC = 0.3, 0.75


class CapsStarted(Record, frozen=True, kw_only=True):
    """What will be measured: limits in watts, or paces where none can be set.

    Attributes:
        device: Its name.
        knob: ``power_limit`` or ``pacing``.
        values: From the highest down.
        why_not: Why no limit can be set, for ``pacing``.
    """

    device: str
    knob: str
    values: tuple[float, ...]
    why_not: ErrorInfo | None = None


class CapsProgress(Record, frozen=True, kw_only=True):
    """One second of it; without a sample something is being waited for.

    Attributes:
        phase: ``password``, ``load`` or ``measure``.
        value: Limit or pace in force.
        n_done: Values measured.
        sample: What was seen.
    """

    phase: str
    value: float | None = None
    n_done: int = 0
    sample: CapSample | None = None


class CapsResult(Record, frozen=True, kw_only=True):
    """What the limits give (measured), which to take, and what to expect after half an hour.

    Attributes:
        device: Name of the device; ``None`` = the model uses none that has a limit.
        key: Its key, for ``PowerChoice.caps_w``.
        knob: ``power_limit`` or ``pacing`` (then ``cap_w`` of the points is the share of time).
        points: One per value, as far as measured.
        choice: The limit to take: most tokens per joule within 5 % of the fastest.
        cap_w: That limit, W.
        sustained: Per point the speed after 30 minutes, with its interval (estimated).
        is_complete: Whether every value was measured.
        why_not: Why no limit can be set here.
        commands: For an administrator: a limit per command, with the one that undoes it.
    """

    device: str | None = None
    key: str = ""
    knob: str = "power_limit"
    points: tuple[CapPoint, ...] = ()
    choice: CapChoice | None = None
    cap_w: float | None = None
    sustained: tuple[Sustained | None, ...] = ()
    is_complete: bool = False
    why_not: ErrorInfo | None = None
    commands: tuple[AdminCommand, ...] = ()


CapsEvent = CapsStarted | CapsProgress | CapsResult


class CapSweep:
    """One cap sweep. ``run`` may be closed at any point: the limit is put back."""

    def __init__(
        self,
        spec: ModelSpec,
        settings: Settings,
        workload: Workload,
        *,
        devices: Mapping[str, GpuInfo],
        readings: Callable[[str], Sequence[GpuSample]],
        host: Callable[[], HostSample | None],
        helper: Callable[[], HelperClient],
        log: ChangeLog,
        launch: Launch | None = None,
        budget: BudgetName = BudgetName.STANDARD,
        cancel: threading.Event | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Prepare; nothing is loaded or asked yet.

        Args:
            spec: The model.
            settings: Its tuned settings.
            workload: What a request is.
            devices: GPUs in use; the first is measured.
            readings: Reads a device now.
            host: Returns power source and mode as last read.
            helper: Starts the helper.
            log: Where changes are kept.
            launch: How the worker is started.
            budget: How many limits to try.
            cancel: Set it to stop; what was measured is kept.
            clock: Seconds, steady.
        """
        self._spec, self._settings, self._workload = spec, settings, workload
        self._devices, self._readings, self._host, self._log = devices, readings, host, log
        self._helper, self._launch, self._budget = helper, launch, budget
        self._cancel, self._clock = cancel or threading.Event(), clock

    def run(self) -> Generator[CapsEvent, None, None]:
        """Yield progress; the last event is the result.

        Raises:
            EnvironmentProblem: The model cannot be loaded, or the engine failed underway.
        """
        key, info = next(iter(self._devices.items()), ("", None))
        now = reading_of(self._readings(key), None, active=False)
        if info is None or (now.temp_c is None and now.power_w is None):
            yield CapsResult(why_not=NOTHING_TO_SET)
            return
        hand, why_not = yield from self._hand_for(key, info)
        engine = ChatEngine(self._launch)
        try:
            for progress in engine.start(self._spec, self._settings):
                if hand is not None:
                    hand.keep()  # a load may take longer than the lease
                if self._cancel.is_set():
                    break
                yield CapsProgress(phase="load", value=progress.frac)
            if self._cancel.is_set():
                yield CapsResult(device=info.name or key, key=key, why_not=why_not)
                return
            yield from self.measure(engine, key, info, hand, why_not, now.temp_c)
        finally:
            engine.close()
            if hand is not None:
                hand.close()

    def measure(
        self,
        engine: Answering,
        key: str,
        info: GpuInfo,
        hand: CapHand | None,
        why_not: ErrorInfo | None,
        idle_c: float | None = None,
    ) -> Generator[CapsEvent, None, None]:
        """Measure on a loaded engine: limits through ``hand``, or paces without one.

        ``idle_c`` is the temperature before the load. What is seen of the cooler is kept for the
        governor.
        """
        is_limit = hand is not None and hand.allowed is not None
        values: tuple[float, ...] = PACES
        if hand is not None and hand.allowed is not None:
            values = caps_to_try(hand.allowed, N_CAPS[self._budget])
        knob = "power_limit" if is_limit else "pacing"
        name = info.name or key
        yield CapsStarted(device=name, knob=knob, values=values, why_not=why_not)
        bench = EngineBench(
            engine, self._workload, lambda: self._readings(key), self._cancel.is_set,
            hand=hand if is_limit else None, clock=self._clock,
        )  # fmt: skip
        points: list[CapPoint] = []
        lessons, coolers = Lessons(idle_c), Coolers(self._log.folder)
        steps, begun = follow_caps(bench, values), self._conditions()
        try:
            for step in steps:
                if reason := why_not_comparable(begun, self._conditions()):
                    why_not = refusal(reason)
                    break
                if isinstance(step, CapPoint):
                    points.append(step)
                    known = lessons.known(step, Knob(knob), begun.profile, time.time())
                    if known is not None:
                        coolers.keep(info.key, known, is_sure=False)
                    continue
                lessons.see(step)
                value = values[min(len(points), len(values) - 1)]
                yield CapsProgress(phase="measure", value=value, n_done=len(points), sample=step)
        except Stopped:
            pass
        except EnvironmentProblem as problem:
            why_not = problem.info  # what was measured before is kept
        finally:
            steps.close()
        yield self._result(key, info, knob, points, len(values), why_not)

    def _result(
        self,
        key: str,
        info: GpuInfo,
        knob: str,
        points: list[CapPoint],
        n_values: int,
        why_not: ErrorInfo | None,
    ) -> CapsResult:
        refused = next((p.refused for p in points if p.refused), None)
        measured = [p for p in points if p.refused is None]
        if refused is not None and why_not is None:
            why_not = refusal(refused)
        slowdown_c = info.temp_slowdown_c
        choice = choose_cap(measured, self._workload) if knob == "power_limit" else None
        return CapsResult(
            device=info.name or key,
            key=key,
            knob=knob,
            points=tuple(points),
            choice=choice,
            cap_w=None if choice is None else measured[choice.point].cap_w,
            sustained=tuple(
                predict_sustained(measured, i, slowdown_c) if p.refused is None else None
                for i, p in enumerate(points)
            ),
            is_complete=len(measured) == n_values,
            why_not=why_not,
            commands=self._commands(key, info) if why_not is not None else (),
        )

    def _hand_for(
        self, key: str, info: GpuInfo
    ) -> Generator[CapsEvent, None, tuple[CapHand | None, ErrorInfo | None]]:
        """Get the helper; the user may cancel while the system asks for a password."""
        if info.pci_id is None:
            return None, refusal("no_address")
        box: queue.SimpleQueue[HelperClient | EnvironmentProblem] = queue.SimpleQueue()
        is_late = threading.Event()
        # Its thread is not joined: it may wait minutes, and ends a helper that comes too late.
        ask = _asker(self._helper, info.pci_id, box, is_late)
        threading.Thread(target=ask, name="power-ask", daemon=True).start()
        while True:
            try:
                found = box.get(timeout=_POLL_S)
                break
            except queue.Empty:
                if self._cancel.is_set():
                    is_late.set()
                    return None, None
                yield CapsProgress(phase="password")
        if isinstance(found, EnvironmentProblem):
            return None, found.info
        hand = CapHand(key, found, self._log)
        if hand.allowed is not None:
            return hand, None
        why = refusal(hand.why_not or "not_supported")
        hand.close()
        return None, why

    def _conditions(self) -> Conditions:
        host = self._host()
        if host is None:
            return Conditions()
        return Conditions(source=host.power_source, profile=host.power_mode)

    def _commands(self, key: str, info: GpuInfo) -> tuple[AdminCommand, ...]:
        """Return what an administrator would type: each limit, or a clock lock where none is."""
        now, system = reading_of(self._readings(key), None, active=False), this_system()
        allowed = expected_range(info, now.power_limit_w)
        if not isinstance(allowed, str):
            caps = caps_to_try(allowed, N_CAPS[self._budget])[1:]
            found = (limit_command(info, cap, allowed.now, system) for cap in caps)
            return tuple(command for command in found if command is not None)
        if now.clock_mhz is None:
            return ()
        low, high = _LOW_CLOCK_FRAC * now.clock_mhz, _LOCK_FRAC * now.clock_mhz
        command = clocks_command(info, low, high, system)
        return () if command is None else (command,)


NOTHING_TO_SET = ErrorInfo(
    code="no_limit_here",
    message="The model runs on no device that tells its temperature or draw.",
    hint="There is nothing to measure limits by, and only GPUs are paced. Fewer threads or the "
    "system's power saving profile make the machine quieter.",
)


def refusal(why: Reason | str) -> ErrorInfo:
    """Return why no limit can be set or measured, as an error for every surface."""
    reason = Reason(code=why) if isinstance(why, str) else why
    return ErrorInfo(
        code=reason.code, message=render_power(reason), hint="Pacing works on every device."
    )


def _asker(
    helper: Callable[[], HelperClient],
    pci_id: str,
    box: "queue.SimpleQueue[HelperClient | EnvironmentProblem]",
    is_late: threading.Event,
) -> Callable[[], None]:
    def ask() -> None:
        try:
            client = helper()
            client.begin(pci_id)
        except EnvironmentProblem as problem:
            box.put(problem)
            return
        if is_late.is_set():
            client.end()
        else:
            box.put(client)

    return ask
