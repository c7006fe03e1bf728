"""How a trial can end: the one table of outcomes."""

from enum import StrEnum

from app.domain.record import Record


class Outcome(StrEnum):
    """The end of a trial. Stable wire values."""

    OK = "ok"
    OUT_OF_MEMORY = "out_of_memory"
    LOAD_FAILED = "load_failed"
    UNSUPPORTED = "unsupported"
    TIMED_OUT = "timed_out"
    DEVICE_LOST = "device_lost"
    CRASHED = "crashed"
    CANCELLED = "cancelled"
    SPILLED = "spilled"
    THROTTLED = "throttled"


class OutcomeInfo(Record, frozen=True, kw_only=True):
    """What an outcome means to the search and to the user.

    Attributes:
        label: Short text for a table or a legend.
        has_speed: Whether the trial carries a usable speed.
        may_win: Whether such a trial may be recommended.
        is_memory: Whether more memory in use can only end the same way.
    """

    label: str
    has_speed: bool = False
    may_win: bool = False
    is_memory: bool = False


OUTCOMES: dict[Outcome, OutcomeInfo] = {
    Outcome.OK: OutcomeInfo(label="ok", has_speed=True, may_win=True),
    Outcome.OUT_OF_MEMORY: OutcomeInfo(label="out of memory", is_memory=True),
    Outcome.LOAD_FAILED: OutcomeInfo(label="load failed"),
    Outcome.UNSUPPORTED: OutcomeInfo(label="not supported"),
    Outcome.TIMED_OUT: OutcomeInfo(label="timed out"),
    Outcome.DEVICE_LOST: OutcomeInfo(label="device lost"),
    Outcome.CRASHED: OutcomeInfo(label="engine crashed"),
    Outcome.CANCELLED: OutcomeInfo(label="cancelled"),
    Outcome.SPILLED: OutcomeInfo(label="spilled to shared memory", has_speed=True, is_memory=True),
    Outcome.THROTTLED: OutcomeInfo(label="throttled", has_speed=True, may_win=True),
}
