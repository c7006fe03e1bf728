"""Who uses an NVIDIA card, and what share of the time it was held back: NVML's own accounts."""

import re
from collections.abc import Callable
from typing import Any

from app.domain.record import Record
from probes.nvidia_answers import absence_of, first, part
from probes.reading import Absence

Ask = Callable[..., Any]

COUNTERS = {"sw_power_cap": 74, "sw_thermal": 269, "hw_thermal": 270, "hw_power_brake": 271}
"""Reason → field id of the time it held clocks back, ns since the driver was loaded."""
HEAT_FIELDS_SINCE = (580, 82)
"""Driver from which 269-271 mean this; in some before it they belong to power smoothing, and the
counters have other numbers (NVIDIA's own binding, releases 570 to 580)."""
POLICIES = {"sw_power_cap": 0, "sw_thermal": 1}
"""The same in older drivers: policy of ``nvmlDeviceGetViolationStatus``, ns as well."""
MAX_NS = 1 << 60
"""36 years: above any counter, below the sentinels for "unknown"."""
MIN_NS = 900_000_000
"""Shortest time a share is taken over: the counters do not step evenly."""
UNEVEN_FRAC = 0.05
"""A share may exceed the whole by this much, because clock and counters are read in turn."""
MAX_PID = (1 << 31) - 1
RECENT_US = 10_000_000
"""Age up to which a sample of a program's load counts."""


class LimitedTime:
    """Turns the time counters into shares since the reading before."""

    def __init__(self) -> None:
        """Know nothing yet: one reading of a counter is no share."""
        self.driver: str | None = None
        self._t_ns = 0
        self._last: dict[str, int] = {}
        self._shares: object = Absence.NO_DATA

    def read(self, ask: Ask, t_ns: int) -> object:
        """Return per cent of the time by reason since the last reading, or why there is none.

        Args:
            ask: Asks NVML about the card.
            t_ns: Time of now; it stands still in a recording, where counters do as well.
        """
        elapsed = t_ns - self._t_ns
        if self._last and 0 <= elapsed < MIN_NS:
            return self._shares
        answers = {name: _counter(ask, name, self.driver) for name in COUNTERS}
        now = {k: n for k, n in answers.items() if isinstance(n, int) and 0 <= n < MAX_NS}
        self._shares = _shares(self._last, now, elapsed) if now else absence_of(answers[_FIRST])
        self._t_ns, self._last = t_ns, now
        return self._shares


_FIRST = next(iter(COUNTERS))


def _counter(ask: Ask, name: str, driver: str | None) -> Any:
    known = name == _FIRST or tells_heat(driver)
    field = ("nvmlDeviceGetFieldValues", COUNTERS[name])
    answer = ask(*field) if known else Absence.NOT_SUPPORTED
    if name not in POLICIES:
        return answer
    older = ("nvmlDeviceGetViolationStatus", POLICIES[name])
    return first(answer, lambda: part(ask(*older), "violationTime"))


def tells_heat(driver: str | None) -> bool:
    """Return whether a driver, ``nvidia 580.95.05``, has the fields of heat where we look."""
    found = re.match(r"nvidia (\d{1,5})\.(\d{1,5})", driver or "")
    return found is not None and (int(found[1]), int(found[2])) >= HEAT_FIELDS_SINCE


def _shares(last: dict[str, int], now: dict[str, int], elapsed_ns: int) -> object:
    both = last.keys() & now.keys()
    if not both or elapsed_ns < MIN_NS:
        return Absence.NO_DATA
    shares = {name: (now[name] - last[name]) / elapsed_ns for name in now if name in both}
    # A counter that ran backwards started anew with the driver.
    if any(not 0 <= share <= 1 + UNEVEN_FRAC for share in shares.values()):
        return Absence.NO_DATA
    return {name: min(100.0, 100 * share) for name, share in shares.items()}


class Use(Record, frozen=True, kw_only=True):
    """What one program takes of a card: memory, bytes, and share of its time, per cent."""

    vram_bytes: int | None = None
    busy_pct: float | None = None


def programs(ask: Ask) -> dict[int, Use] | Absence:
    """Return who holds memory on the card, by process, or why that is not told."""
    held: dict[int, int | None] = {}
    answers = [_running(ask, kind) for kind in ("Compute", "Graphics")]
    for answer in answers:
        for entry in answer if isinstance(answer, list) else []:
            pid, used = part(entry, "pid"), part(entry, "usedGpuMemory")
            if isinstance(pid, int) and 0 < pid < MAX_PID:
                held[pid] = used if isinstance(used, int) else None
    if not any(isinstance(answer, list) for answer in answers):
        return absence_of(answers[0])
    busy = _busy(ask) if held else {}
    return {pid: Use(vram_bytes=n, busy_pct=busy.get(pid)) for pid, n in held.items()}


def _running(ask: Ask, kind: str) -> Any:
    name = f"nvmlDeviceGet{kind}RunningProcesses"
    # The binding's call without a version asks for version 3 as well.
    return first(ask(f"{name}_v3"), lambda: ask(f"{name}_v2"))


def _busy(ask: Ask) -> dict[int, float]:
    """Return the mean load of each program over the driver's newest samples of it.

    "Not found" means that nothing ran lately; a program without a sample has no figure.
    """
    answer = ask("nvmlDeviceGetProcessUtilization", 0)
    entries = [e for e in answer if isinstance(e, dict)] if isinstance(answer, list) else []
    times = [t for e in entries if isinstance(t := part(e, "timeStamp"), int)]
    newest = max(times, default=0)
    loads: dict[int, list[int]] = {}
    for entry in entries:
        pid, at, load = (part(entry, name) for name in ("pid", "timeStamp", "smUtil"))
        if not (isinstance(pid, int) and isinstance(at, int) and isinstance(load, int)):
            continue
        if newest - at <= RECENT_US and 0 <= load <= 100:
            loads.setdefault(pid, []).append(load)
    return {pid: sum(found) / len(found) for pid, found in loads.items()}
