"""Whose limit it is: the governor never fights the firmware, the user or another program."""

import msgspec

from app.domain.record import Record
from app.power.knobs import Knobs
from app.power.records import Knob, Reading
from app.power.sensing import usable

TOLERANCE_W, TOLERANCE_FRAC = 1.0, 0.01
GRACE_S = 5.0
"""How long a driver may take until a new limit is read back."""

READINGS_NEEDED = 3
CLOCK_TOLERANCE_MHZ = 45.0
"""Three steps of 15 MHz: locked clocks are kept to the device's own steps."""


class Watch(Record, frozen=True, kw_only=True):
    """What was seen of the limit.

    Attributes:
        seen_w: The limit while we have not set one.
        moved: How often it moved by itself.
        strange: Readings in a row that contradict what we set.
        withheld: Knobs not to be used any more, with the code of the reason.
    """

    seen_w: float | None = None
    moved: int = 0
    strange: int = 0
    withheld: dict[Knob, str] = {}

    def withhold(self, knob: Knob, why: str) -> "Watch":
        """Return the watch with ``knob`` no longer used."""
        return msgspec.structs.replace(self, withheld={**self.withheld, knob: why}, strange=0)

    def rebased(self) -> "Watch":
        """Return the watch for a new power situation, in which limits differ rightly."""
        return Watch(withheld=self.withheld)


def check(
    watch: Watch, knobs: Knobs, reading: Reading, now_s: float, changed_s: float | None
) -> tuple[Watch, Knob | None]:
    """Return what was learnt, and the knob to let go of because somebody else turned it.

    Args:
        watch: What was seen so far.
        knobs: What we have set.
        reading: The machine now.
        now_s: Time of the reading.
        changed_s: When we last turned a knob.
    """
    limit_w = usable(reading.power_limit_w)
    if knobs.limit_w is None and limit_w is not None:
        watch = _see(watch, limit_w)
    if changed_s is not None and now_s - changed_s < GRACE_S:
        return watch, None
    knob = _contradicted(knobs, reading, limit_w)
    if knob is None:
        return msgspec.structs.replace(watch, strange=0), None
    if watch.strange + 1 < READINGS_NEEDED:
        return msgspec.structs.replace(watch, strange=watch.strange + 1), None
    why = "limit_changed_elsewhere" if knob is Knob.POWER_LIMIT else "clocks_not_kept"
    return watch.withhold(knob, why), knob


def _see(watch: Watch, limit_w: float) -> Watch:
    """Note the limit found; one that moves by itself (Dynamic Boost) is not ours to set."""
    if watch.seen_w is None or _same(limit_w, watch.seen_w):
        return msgspec.structs.replace(watch, seen_w=limit_w)
    moved = msgspec.structs.replace(watch, seen_w=limit_w, moved=watch.moved + 1)
    if Knob.POWER_LIMIT in watch.withheld:
        return moved
    return moved.withhold(Knob.POWER_LIMIT, "limit_moves")


def _contradicted(knobs: Knobs, reading: Reading, limit_w: float | None) -> Knob | None:
    if knobs.limit_w is not None and limit_w is not None and not _same(limit_w, knobs.limit_w):
        return Knob.POWER_LIMIT
    clock, lock = reading.clock_mhz, knobs.clock_mhz
    if lock is not None and clock is not None and clock > lock + CLOCK_TOLERANCE_MHZ:
        return Knob.CLOCKS
    return None


def _same(one_w: float, other_w: float) -> bool:
    return abs(one_w - other_w) <= max(TOLERANCE_W, TOLERANCE_FRAC * other_w)
