"""What can go wrong, split by who can act on it.

::

    RigTuneError
    ├── EnvironmentProblem   the user can act: file truncated, no driver, model too big…
    │   └── UsageProblem     the request itself cannot be met as asked (exit code 2)
    └── Bug                  ours: a report is written

A trial that runs out of memory is not an error but a result (``Outcome.OUT_OF_MEMORY``).
"""

from app.domain.record import Record


class ErrorInfo(Record, frozen=True, kw_only=True):
    """An error as data: what crosses a process or ends up in JSON.

    Attributes:
        code: Stable snake_case name of the cause.
        message: One sentence: what happened, to what.
        hint: What to do about it.
    """

    code: str
    message: str
    hint: str = ""


class RigTuneError(Exception):
    """Base of the errors RigTune raises on purpose."""


class EnvironmentProblem(RigTuneError):
    """Something outside the program stands in the way and the user can act on it."""

    exit_code = 3

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        """Keep the three parts apart so that JSON, terminal and window can each show them.

        Args:
            code: Stable snake_case name of the cause.
            message: One sentence: what happened, to what.
            hint: What to do about it.
        """
        super().__init__(message)
        self.info = ErrorInfo(code=code, message=message, hint=hint)


class UsageProblem(EnvironmentProblem):
    """The request contradicts itself or a limit known before anything is loaded."""

    exit_code = 2


class Bug(RigTuneError):
    """A state that must not occur."""
