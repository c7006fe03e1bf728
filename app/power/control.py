"""Runs the governor over readings and carries out what it decides. One thread, once a second."""

import time
from collections.abc import Callable

import msgspec

from app.domain.pacing import Pace
from app.domain.record import Record
from app.domain.sweep import Reason
from app.power.changes import Change, ChangeLog, now_utc
from app.power.client import LEASE_S, HelperClient, HelperGone
from app.power.cooling import SAME_C, Cooling, recall
from app.power.devices import check_cap
from app.power.governor import completed, govern, release, settle
from app.power.holding import relearn
from app.power.kept import Kept
from app.power.known import Coolers, known_of
from app.power.protocol import (
    Applied,
    KeepAlive,
    Message,
    PutBack,
    Refused,
    Reply,
    Restored,
    SetClocks,
    SetPower,
)
from app.power.protocol import Restore as RestoreKnob
from app.power.records import (
    Action,
    Forget,
    GovernedDevice,
    Knob,
    LockClocks,
    Mode,
    Reading,
    Restore,
    SetDuty,
    SetPowerLimit,
    Wish,
)
from app.power.state import GovernorState
from app.power.steady import is_sure
from app.power.targets import effective_mode, targets

KEEP_S = 600.0
"""How often what was learnt is kept, should the program be killed."""

AIMED_S = 1200.0
"""What is seen sooner after another target still shows the fan and the case of the one before."""


class PowerStatus(Record, frozen=True, kw_only=True):
    """The status line.

    Attributes:
        temp_c: Smoothed core temperature.
        target_c: Target temperature.
        mode: Mode in force (battery and profile considered).
        limit_w: Power limit set by us; ``None`` = as found.
        clock_mhz: Highest clock set by us; ``None`` = as found.
        duty: Share of the time the engine works.
        action: Why the last change was made.
        notes: What the user should know.
        has_helper: Whether hardware can be set.
    """

    temp_c: float | None
    target_c: float
    mode: Mode
    limit_w: float | None
    clock_mhz: float | None
    duty: float
    action: Reason | None
    notes: tuple[Reason, ...]
    has_helper: bool


class PowerControl:
    """The governor in use on one device. Leaving it puts everything back."""

    def __init__(
        self,
        device: GovernedDevice,
        wish: Wish,
        *,
        set_pace: Callable[[Pace], None],
        log: ChangeLog,
        helper: HelperClient | None = None,
        coolers: Coolers | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start; nothing is set before the first reading.

        Args:
            device: What may be done.
            wish: What the user asked for.
            set_pace: Passes a new pace to the engine's worker.
            log: Where changes are kept.
            helper: A begun helper; ``None`` = pacing only.
            coolers: What earlier sessions learnt; ``None`` = nothing, and nothing is kept.
            clock: Seconds, steady.

        Raises:
            EnvironmentProblem: It cannot be noted that the device is being controlled.
        """
        self._device, self._wish = device, wish
        self._set_pace, self._log, self._helper, self._clock = set_pace, log, helper, clock
        self._state = GovernorState()
        self._coolers = coolers
        self._recalled: tuple[float, str | None] | None = None
        self._kept_s = clock()
        self._aimed_s: float | None = None
        self._last = Reading()
        self._said_s = clock()
        self._is_paused = False
        self._pci_id = helper.facts.pci_id if helper is not None and helper.facts else ""
        if self._pci_id:
            log.mark(device.key, self._pci_id)

    @property
    def has_helper(self) -> bool:
        """Whether hardware can be set."""
        return self._helper is not None

    def set_wish(self, wish: Wish) -> None:
        """Follow another mode, target or cap from the next reading on.

        Raises:
            UsageProblem: The cap is outside what the device allows.
        """
        if self._helper is None:
            wish = msgspec.structs.replace(wish, cap_w=None)
        elif wish.cap_w is not None:
            check_cap(self._device, wish.cap_w)
        if wish == self._wish:
            return
        self._keep()  # what was learnt belongs to the target until now
        self._state = msgspec.structs.replace(self._state, kept=Kept())
        self._wish = wish

    @property
    def cooling(self) -> Cooling:
        """What is known of the device's cooler."""
        return self._state.cooling

    def learn_from(self, cooling: Cooling) -> None:
        """Go on with what an earlier control saw of the same device; it is warm by now."""
        self._state = msgspec.structs.replace(self._state, cooling=cooling.turned())

    def tick(self, reading: Reading) -> PowerStatus:
        """Take one reading, act on it, renew the lease, and return the status line."""
        now_s = self._clock()
        reading = completed(self._state, reading)
        self._recall(reading)
        if not self._is_paused:
            self._state, actions = govern(self._device, self._wish, self._state, reading, now_s)
            for action in actions:
                self._carry_out(action)
        if self._helper is not None and self._clock() - self._said_s > LEASE_S / 4:
            self._ask(KeepAlive())
        if abs(now_s - self._kept_s) > KEEP_S:
            self._keep()
        return self._status(reading)

    def restore(self) -> None:
        """Put everything back now (one click) and act no more until ``resume``."""
        self._is_paused = True
        self._state, actions = release(self._state, "restored_by_user")
        for action in actions:
            if isinstance(action, SetDuty):
                self._pace(action)
        reply = self._ask(RestoreKnob())
        if isinstance(reply, Restored):
            self._log_results(reply.results, Reason(code="restored_by_user"))

    def resume(self) -> None:
        """Govern again after ``restore``."""
        self._is_paused = False

    def close(self) -> tuple[PutBack, ...]:
        """Put everything back and end the helper; return how that went."""
        self._keep()
        self._state, actions = release(self._state)
        for action in actions:
            if isinstance(action, SetDuty):
                self._pace(action)
        results: tuple[PutBack, ...] = ()
        helper, self._helper = self._helper, None
        if helper is not None:
            results = helper.end()
            self._finish(results, Reason(code="ended"))
        return results

    def _recall(self, reading: Reading) -> None:
        """Begin with what was learnt at this target; another one needs what was learnt there."""
        self._last = reading
        wanted = (targets(self._device, self._wish, reading)[0], reading.profile)
        if self._coolers is None or wanted == self._recalled:
            return
        if self._recalled is not None:
            self._aimed_s = self._clock()
        is_first = self._recalled is None and self._state.cooling.room_c is None
        self._recalled = wanted
        known = self._coolers.find(self._device.key, *wanted)
        if known is not None and is_first:
            self._state = msgspec.structs.replace(self._state, cooling=recall(known, time.time()))
        elif known is not None and abs(known.target_c - wanted[0]) <= SAME_C:
            self._state = relearn(self._state, known)

    def _keep(self) -> None:
        self._kept_s = now_s = self._clock()
        is_new = self._aimed_s is not None and 0.0 <= now_s - self._aimed_s < AIMED_S
        if self._coolers is None or is_new:
            return
        known = known_of(self._state, self._device, self._wish, self._last, time.time())
        if known is not None:
            cooling = self._state.cooling
            self._coolers.keep(self._device.key, known, is_sure=is_sure(cooling))

    def _carry_out(self, action: Action) -> None:
        match action:
            case SetDuty():
                self._pace(action)
            case SetPowerLimit(watts=watts):
                self._set(Knob.POWER_LIMIT, watts, SetPower(watts=watts), action.reason)
            case LockClocks(high_mhz=mhz):
                self._set(Knob.CLOCKS, mhz, SetClocks(high_mhz=mhz), action.reason)
            case Restore():
                self._put_back(action)
            case Forget():
                # The helper sees the same: its device is gone, so its restore finds nothing.
                self.close()

    def _pace(self, action: SetDuty) -> None:
        self._set_pace(Pace(duty=action.duty))
        self._add("pacing", action.duty, "applied", action.reason)

    def _set(self, knob: Knob, value: float, message: Message, reason: Reason) -> None:
        reply = self._ask(message)
        if isinstance(reply, Applied):
            self._add(knob, value, "applied", reason, reply.before, reply.after)
            return
        why = reply.code if isinstance(reply, Refused) else "helper_gone"
        self._add(knob, value, why, reason)
        self._state = settle(self._state, knob, why)
        # What was set before the refusal must not stay behind.
        self._put_back(Restore(knob=knob, reason=reason))

    def _put_back(self, action: Restore) -> None:
        reply = self._ask(RestoreKnob(knob=action.knob))
        if isinstance(reply, Restored):
            self._log_results(reply.results, action.reason)

    def _ask(self, message: Message) -> Reply | None:
        """Return the helper's answer; without one, hardware is withheld from now on."""
        self._said_s = self._clock()
        if self._helper is None:
            return None
        try:
            return self._helper.ask(message)
        except HelperGone as gone:
            self._helper.end()
            self._helper = None
            self._finish(gone.results, Reason(code="helper_gone"))
            for knob in (Knob.POWER_LIMIT, Knob.CLOCKS):
                self._state = settle(self._state, knob, "helper_gone")
            return None

    def _finish(self, results: tuple[PutBack, ...] | None, reason: Reason) -> None:
        """Note how the helper's end went; unknown or failed stays pending for the next start."""
        self._log_results(results or (), reason)
        if results is not None and all(result.result != "failed" for result in results):
            self._log.unmark(self._pci_id)

    def _log_results(self, results: tuple[PutBack, ...], reason: Reason) -> None:
        for result in results:
            self._add(result.knob, None, result.result, reason, None, result.value)

    def _add(
        self,
        knob: str,
        requested: float | None,
        result: str,
        reason: Reason,
        before: float | None = None,
        after: float | None = None,
    ) -> None:
        change = Change(
            at_utc=now_utc(),
            key=self._device.key,
            knob=knob,
            requested=requested,
            before=before,
            after=after,
            result=result,
            reason=reason,
        )
        self._log.add(change)

    def _status(self, reading: Reading) -> PowerStatus:
        state = self._state
        return PowerStatus(
            temp_c=state.sensed.core_c,
            target_c=targets(self._device, self._wish, reading)[0] - state.shift_c,
            mode=effective_mode(self._wish.mode, reading),
            limit_w=state.knobs.limit_w,
            clock_mhz=state.knobs.clock_mhz,
            duty=state.knobs.duty,
            action=state.last,
            notes=state.notes,
            has_helper=self._helper is not None,
        )
