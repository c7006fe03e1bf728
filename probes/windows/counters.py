"""Makes readings of a GPU from the performance counters, joined by the adapter's LUID."""

import math
import re
from collections.abc import Iterator

from probes.reading import Absence
from probes.windows.facts import Counters

INSTANCE = re.compile(
    r"(?:pid_(?P<pid>\d+)_)?luid_0x(?P<high>[0-9a-f]+)_0x(?P<low>[0-9a-f]+)_phys_\d+"
    r"(?:_part_\d+)?(?:_eng_(?P<engine>\d+)_engtype_(?P<type>.+))?",
    re.IGNORECASE,
)
MAX_SHARE = 150.0
ENGINES = r"\GPU Engine(*)\Utilization Percentage"
DEDICATED = r"\GPU Adapter Memory(*)\Dedicated Usage"
SHARED = r"\GPU Adapter Memory(*)\Shared Usage"
PROCESS_DEDICATED = r"\GPU Process Memory(*)\Dedicated Usage"
PROCESS_SHARED = r"\GPU Process Memory(*)\Shared Usage"


def of_adapter(counters: Counters, path: str, luid: str) -> Iterator[tuple[re.Match[str], float]]:
    """Yield the instances of a counter that belong to an adapter, whatever suffix they have."""
    for name, value in counters.get(path, {}).items():
        match = INSTANCE.match(name)
        if match is not None and _luid(match) == luid:
            yield match, value


def _luid(match: re.Match[str]) -> str:
    return ":".join(f"{int(match[part], 16):08x}" for part in ("high", "low"))


def usage(counters: Counters, path: str, luid: str) -> int | Absence:
    """Return bytes in use on an adapter."""
    values = [value for _, value in of_adapter(counters, path, luid)]
    if not values:
        return Absence.NO_DATA
    total = sum(values)
    return int(total) if math.isfinite(total) else Absence.IMPLAUSIBLE


def busy_pct(counters: Counters, luid: str) -> float | Absence:
    """Return the busiest engine's share, per cent, as Windows' own task manager does.

    Programs' shares of one engine add up; CUDA work shows under ``Compute`` or ``Cuda``.
    """
    engines: dict[str, float] = {}
    for match, value in of_adapter(counters, ENGINES, luid):
        engine = match["engine"] or ""
        engines[engine] = engines.get(engine, 0.0) + value
    if not engines:
        # No program has an engine open: nothing runs. Without the counter nothing is known.
        return 0.0 if ENGINES in counters else Absence.NOT_SUPPORTED
    # Windows itself reports a little more than 100 now and then.
    if not all(0 <= share < MAX_SHARE for share in engines.values()):
        return Absence.IMPLAUSIBLE
    return min(100.0, max(engines.values()))


def processes(counters: Counters, luid: str) -> dict[int, tuple[int, int]] | Absence:
    """Return pid → (dedicated, shared) bytes of the programs on an adapter."""
    if PROCESS_DEDICATED not in counters:
        return Absence.NOT_SUPPORTED
    found: dict[int, tuple[int, int]] = {}
    for path, column in ((PROCESS_DEDICATED, 0), (PROCESS_SHARED, 1)):
        for match, value in of_adapter(counters, path, luid):
            if match["pid"] is None or not 0 <= value < 1 << 60:
                continue
            used = list(found.get(int(match["pid"]), (0, 0)))
            used[column] += int(value)
            found[int(match["pid"])] = (used[0], used[1])
    return {pid: used for pid, used in found.items() if any(used)}
