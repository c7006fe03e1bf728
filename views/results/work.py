"""Work of the results page beside the window: names, deleting, files."""

from pathlib import Path
from typing import TYPE_CHECKING

from app.domain.errors import EnvironmentProblem
from app.runtime import atomic_write

if TYPE_CHECKING:
    from app.domain.sweep import SweepResult
    from app.store.records import StoredSweep
    from views.port import ResultsPort, SessionPort


def read(session: "SessionPort", sweep: "StoredSweep") -> "tuple[StoredSweep, SweepResult]":
    """Return a search with its answer."""
    return sweep, session.sweep(sweep.id)


def rename(results: "ResultsPort", sweep_id: int, name: str) -> None:
    """Give a search a name."""
    results.rename(sweep_id, name)


def delete(results: "ResultsPort", sweep_id: int) -> None:
    """Hide a search."""
    results.delete(sweep_id)


def restore(results: "ResultsPort", sweep_id: int) -> None:
    """Undo ``delete``."""
    results.restore(sweep_id)


def save(session: "SessionPort", sweep_id: int, path: str) -> str:
    """Write a search to ``path``, and return that."""
    atomic_write(Path(path), session.results().write_json(sweep_id))
    return path


def load(session: "SessionPort", path: str) -> int:
    """Store the search in ``path`` and return its number.

    Raises:
        EnvironmentProblem: The file cannot be read, or is something else.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}."
        raise EnvironmentProblem("unreadable", message, "Choose another file.") from error
    return session.results().read_json(data)
