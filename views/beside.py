"""What the window does beside its own thread: each function runs in a job."""

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from app.advice.said import said
from app.advice.text import LANGUAGES, catalogue
from app.domain.errors import EnvironmentProblem
from app.runtime import atomic_write
from views.on_demand import MODULES
from views.port import SessionPort
from views.state import WindowState, save_state


class Opened:
    """The session is there."""

    def __init__(self, session: SessionPort) -> None:
        """Hand over ``session``."""
        self.session = session


def look_at_machine(
    session: SessionPort | None,
    open_session: Callable[[], SessionPort],
    interval_s: float,
    *,
    refresh: bool,
) -> Callable[[threading.Event], Iterator[object]]:
    """Return the work: session (if there is none yet), machine, live readings."""

    def work(_cancel: threading.Event) -> Iterator[object]:
        found = session
        if found is None:
            for language in LANGUAGES:  # read here, because the GUI thread opens no file
                catalogue(language)
                said(" ", language)
            found = open_session()
            yield Opened(found)
        yield found.machine(refresh=refresh)
        yield found.telemetry(interval_s)

    return work


def import_pages(_cancel: threading.Event) -> Iterator[object]:
    """Import the other pages' code: pyqtgraph and numpy take longer than a frame."""
    for module in MODULES.values():
        importlib.import_module(module)
    for module in ("app.advice.rules", "views.self_test"):
        importlib.import_module(module)
    yield importlib.import_module("views.late_pages")


def write_text(path: str, make: Callable[[], str]) -> str:
    """Write what ``make`` returns to ``path``, and return that."""
    atomic_write(Path(path), make().encode("utf-8"))
    return path


def close_session(session: SessionPort | None, state: WindowState) -> None:
    """Keep ``state`` and end the session; the undo of deleted results ends with it."""
    save_state(state)
    if session is not None:
        with suppress(EnvironmentProblem):
            session.results().purge()
        session.close()
