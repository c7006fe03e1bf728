"""Driver resets in the Windows event log (System). Reading it needs no rights."""

import os
import re
import subprocess

from app.domain.machine import DriverReset
from probes.reading import Absence

QUERY = (
    "*[System[(Provider[@Name='Display'] and EventID=4101) or "
    "(Provider[@Name='nvlddmkm'] and (EventID=153 or EventID=13 or EventID=14)) or "
    "Provider[@Name='amdwddmg'] or Provider[@Name='amdkmdag']]]"
)
"""4101: a driver stopped responding and recovered. 153, 13, 14: NVIDIA's own reports; 153 also
occurs without compute load."""
MAX_EVENTS = 20
TIMEOUT_S = 5.0
EVENT = re.compile(r"<Event[ >].*?</Event>", re.DOTALL)
PROVIDER = re.compile(r"<Provider[^>]*\bName=['\"]([^'\"]{1,64})['\"]")
EVENT_ID = re.compile(r"<EventID[^>]*>(\d{1,9})</EventID>")
TIME = re.compile(r"<TimeCreated[^>]*\bSystemTime=['\"]([^'\"]{1,40})['\"]")
# Not in the subprocess module of other systems.
CREATE_NO_WINDOW = 0x08000000


def resets() -> tuple[DriverReset, ...] | Absence:
    """Return the newest resets first; wevtutil answers in well under a second."""
    root = os.environ.get("SYSTEMROOT")
    if os.name != "nt" or not root:
        return Absence.NOT_APPLICABLE
    command = [
        rf"{root}\System32\wevtutil.exe",
        *("qe", "System", f"/q:{QUERY}", f"/c:{MAX_EVENTS}", "/rd:true", "/f:xml"),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL, creationflags=CREATE_NO_WINDOW,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return Absence.ERROR
    if done.returncode != 0:
        return Absence.NO_DATA
    return parse(done.stdout.decode("utf-8", "replace"))


def parse(text: str) -> tuple[DriverReset, ...]:
    """Return the resets in wevtutil's XML; what is damaged is left out."""
    found = []
    for event in EVENT.findall(text)[:MAX_EVENTS]:
        provider, number, time_ = (p.search(event) for p in (PROVIDER, EVENT_ID, TIME))
        if provider is not None and number is not None:
            found.append(
                DriverReset(
                    provider=provider[1],
                    event_id=int(number[1]),
                    time_utc=time_[1] if time_ is not None else None,
                )
            )
    return tuple(found)
