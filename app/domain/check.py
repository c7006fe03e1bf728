"""A command line of the user's measured beside the search's answer."""

from enum import StrEnum

from app.domain.errors import ErrorInfo
from app.domain.outcome import Outcome
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import Reason
from app.domain.trial import Rate, Workload


class CheckVerdict(StrEnum):
    """How the command line compares with the search's answer."""

    SAME = "same"
    SLOWER = "slower"
    FASTER = "faster"
    NOT_SEPARATED = "not_separated"
    NOT_MEASURED = "not_measured"


class CheckSide(Record, frozen=True, kw_only=True):
    """One of the two configurations as measured (``outcome`` ``None`` = not launched)."""

    settings: Settings
    outcome: Outcome | None = None
    prefill_tok_s: Rate | None = None
    decode_tok_s: Rate | None = None
    request_s: float | None = None
    device_bytes: dict[str, int] = {}
    error: ErrorInfo | None = None


class Difference(Record, frozen=True, kw_only=True):
    """A setting in which the two differ."""

    name: str
    theirs: str
    ours: str


class Checked(Record, frozen=True, kw_only=True):
    """The comparison.

    Attributes:
        program: Program of the command line.
        verdict: How the command line compares.
        theirs: The command line's configuration.
        ours: The search's answer, measured again in turns with it.
        workload: What both were timed with.
        slower_frac: How much longer a request takes with the command line; its 95 % interval is
            ``slower_low_frac`` … ``slower_high_frac``.
        differences: Settings in which they differ.
        notes: What was taken differently or could not be represented, as codes of ``[check]``.
        ignored: Flags without a part in speed or memory, or unknown.
        n_model_loads: Loads the comparison took.
    """

    program: str
    verdict: CheckVerdict
    theirs: CheckSide
    ours: CheckSide
    workload: Workload
    slower_frac: float | None = None
    slower_low_frac: float | None = None
    slower_high_frac: float | None = None
    differences: tuple[Difference, ...] = ()
    notes: tuple[Reason, ...] = ()
    ignored: tuple[str, ...] = ()
    n_model_loads: int = 0
