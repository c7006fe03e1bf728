"""Sets one device's limit and puts it back: every rule of the helper in one place."""

import contextlib

import msgspec

from app.power.helper.gpu import DriverRefused, Gpu
from app.power.helper.journal import Entry, Journal, JournalProblem
from app.power.protocol import (
    SET_INTERVAL_S,
    TOLERANCE_W,
    Applied,
    Facts,
    PutBack,
    Refused,
    within,
)

LIMIT, CLOCKS = "power_limit", "clocks"
EXACT_W = 0.001
"""Drivers count in milliwatts at best."""

replace = msgspec.structs.replace


class Guard:
    """Holds one opened GPU. Whatever it sets is in the journal first."""

    def __init__(self, gpu: Gpu, journal: Journal, entry: Entry) -> None:
        """Start with what is set; for a fresh device ``entry`` says that nothing is.

        Raises:
            DriverRefused: The device does not answer.
        """
        self._gpu = gpu
        self._journal = journal
        self._entry = entry
        self._set_s: float | None = None
        self.facts: Facts = gpu.facts()

    def set_power(self, watts: float, now_s: float) -> Applied | Refused:
        """Set the power limit, or say why not."""
        allowed = self.facts.power
        if allowed is None:
            return _refused(self.facts.power_why or "not_supported", "no limit can be set here")
        if not within(watts, allowed):
            text = f"allowed are {allowed.low:.1f} to {allowed.high:.1f} W"
            return _refused("out_of_range", text)
        if self._is_too_soon(now_s):
            return _refused("too_soon", f"one change per {SET_INTERVAL_S:.0f} s")
        before = self._gpu.read_power()
        if before is None:
            return _refused("limit_not_readable", "the limit cannot be read back")
        old = allowed.now if self._entry.old_w is None else self._entry.old_w
        if not _any_close(before, (old, *self._entry.ours_w)):
            return _refused("changed_elsewhere", f"somebody else set it to {before:.1f} W")
        return self._write_power(watts, before, old, now_s)

    def lock_clocks(self, high_mhz: float, now_s: float) -> Applied | Refused:
        """Lock the core clock, or say why not. The lock cannot be read back."""
        allowed = self.facts.clocks
        if allowed is None:
            return _refused(self.facts.clocks_why or "not_supported", "clocks cannot be locked")
        if not within(high_mhz, allowed):
            text = f"allowed are {allowed.low:.0f} to {allowed.high:.0f} MHz"
            return _refused("out_of_range", text)
        if self._is_too_soon(now_s):
            return _refused("too_soon", f"one change per {SET_INTERVAL_S:.0f} s")
        try:
            self._keep(replace(self._entry, clocks_locked=True))
            self._set_s = now_s
            self._gpu.lock_clocks(allowed.low, high_mhz)
        except JournalProblem as error:
            return _refused("journal_failed", str(error))
        except DriverRefused as error:
            self.put_back()
            return _refused(error.code, str(error))
        return Applied(knob=CLOCKS, requested=high_mhz, before=None, after=None)

    def put_back(self, knob: str | None = None) -> tuple[PutBack, ...]:
        """Restore what was set, unless somebody else has changed it since.

        Args:
            knob: ``power_limit`` or ``clocks``; ``None`` = both.
        """
        results, entry = [], self._entry
        if entry.old_w is not None and knob in {None, LIMIT}:
            results.append(self._put_back_power(entry.old_w))
            if results[-1].result != "failed":
                entry = replace(entry, old_w=None, ours_w=())
        if entry.clocks_locked and knob in {None, CLOCKS}:
            results.append(self._put_back_clocks())
            if results[-1].result != "failed":
                entry = replace(entry, clocks_locked=False)
        self._entry = entry
        if results and entry.old_w is None and not entry.clocks_locked:
            self._journal.remove(entry.pci_id)
        elif results:
            # The older journal would put back more than is left: harmless if this fails.
            with contextlib.suppress(JournalProblem):
                self._journal.write(entry)
        return tuple(results)

    def _write_power(
        self, watts: float, before: float, old: float, now_s: float
    ) -> Applied | Refused:
        try:
            # Until it is read back, the limit may be either of the two.
            self._keep(replace(self._entry, old_w=old, ours_w=(before, watts)))
        except JournalProblem as error:
            return _refused("journal_failed", str(error))
        self._set_s = now_s
        try:
            self._gpu.write_power(watts)
        except DriverRefused as error:
            self.put_back()
            return _refused(error.code, str(error))
        after = self._gpu.read_power()
        if after is None or not _close(after, watts):
            kept = () if after is None else (after,)
            self._entry = replace(self._entry, ours_w=(*self._entry.ours_w, *kept))
            self.put_back()
            return _refused("not_applied", f"the driver took {watts:.1f} W but shows {after} W")
        return Applied(knob=LIMIT, requested=watts, before=before, after=after)

    def _put_back_power(self, old_w: float) -> PutBack:
        now = self._gpu.read_power()
        if now is not None and abs(now - old_w) < EXACT_W:
            return self._result(LIMIT, "unchanged", now)
        # A limit of ours may lie next to the one found: near is not yet as it was.
        if now is not None and not _any_close(now, (*self._entry.ours_w, old_w)):
            return self._result(LIMIT, "left", now)
        try:
            self._gpu.write_power(old_w)
        except DriverRefused:
            return self._result(LIMIT, "failed", now)
        before, now = now, self._gpu.read_power()
        # As found, or as near as the driver's rounding leaves it; one that did not move is not.
        has_moved = now is not None and (before is None or abs(now - before) >= EXACT_W)
        is_exact = now is not None and abs(now - old_w) < EXACT_W
        is_back = is_exact or (has_moved and now is not None and _close(now, old_w))
        return self._result(LIMIT, "restored" if is_back else "failed", now)

    def _put_back_clocks(self) -> PutBack:
        try:
            self._gpu.reset_clocks()
        except DriverRefused:
            return self._result(CLOCKS, "failed", None)
        return self._result(CLOCKS, "restored", None)

    def _result(self, knob: str, result: str, value: float | None) -> PutBack:
        return PutBack(pci_id=self._entry.pci_id, knob=knob, result=result, value=value)

    def _keep(self, entry: Entry) -> None:
        self._journal.write(entry)
        self._entry = entry

    def _is_too_soon(self, now_s: float) -> bool:
        return self._set_s is not None and 0 <= now_s - self._set_s < SET_INTERVAL_S


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= TOLERANCE_W


def _any_close(value: float, others: tuple[float, ...]) -> bool:
    return any(_close(value, other) for other in others)


def _refused(code: str, message: str) -> Refused:
    return Refused(code=code, message=message)
