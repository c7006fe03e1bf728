"""After an engine's death: was the graphics driver reset under it?"""

from collections.abc import Callable

from app.advice.text import render
from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.machine import DriverReset
from app.domain.resets import event_of

LookAfterDeath = Callable[[], DriverReset | None]
"""Reads the system's log again; returns a reset of just now."""


def nothing_seen() -> DriverReset | None:
    """Return ``None``: there is no log to read."""
    return None


def explained(error: ErrorInfo, look: LookAfterDeath) -> ErrorInfo:
    """Return the error of an engine that is gone, with the driver's reset where there was one.

    The remedy is then to try another backend or driver first, not other timeouts.
    """
    reset = look()
    if reset is None:
        return error
    said = f"The graphics driver was reset under the engine ({event_of(reset)} in Windows' log)."
    hint = render("remedy", "reset_in_run", {})
    return ErrorInfo(code="driver_reset", message=f"{said} {error.message}", hint=hint)


def explained_problem(problem: EnvironmentProblem, look: LookAfterDeath) -> EnvironmentProblem:
    """Return the same for an engine that did not survive its start."""
    error = explained(problem.info, look)
    return EnvironmentProblem(error.code, error.message, error.hint)
