"""Reads of files that may never be answered: a network drive can stall for minutes.

The read happens in a thread of its own, because a read that the system does not answer cannot be
called back: who asked goes on when the budget is used up, and the thread ends with the drive's
answer or with the program. A process instead would cost each reading a start of 100 ms and could
not be ended any earlier: what Linux waits for on a network drive ends when its program does.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from app import library
from app.domain.errors import EnvironmentProblem
from app.domain.model import ModelSpec
from app.gguf import read_model

HEADER_S = 15.0
"""A header takes 30 ms from a disk and a few seconds from a slow network drive."""
LIST_S = 30.0
DEMO = "demo"

T = TypeVar("T")


def resolve_and_read(model: str) -> ModelSpec:
    """Return what the file that ``model`` means says of itself.

    Raises:
        EnvironmentProblem: It is not there, not usable, or not answered in time.
    """
    if model == DEMO:  # put together at its first use, from local files: that may take longer
        return read_model(library.resolve_model(model))
    return within(HEADER_S, model, lambda: read_model(library.resolve_model(model)))


def read_header(path: Path, budget_s: float) -> ModelSpec:
    """Return what the file at ``path`` says of itself.

    Raises:
        EnvironmentProblem: It is not usable, or not answered within ``budget_s`` seconds.
    """
    return within(budget_s, path.name, lambda: read_model(path))


def within(budget_s: float, name: str, work: Callable[[], T]) -> T:
    """Return what ``work`` returns, or raise what it raises, within ``budget_s`` seconds.

    Raises:
        EnvironmentProblem: It has not ended by then; ``name`` is what could not be read.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised where it was asked
            errors.append(error)

    thread = threading.Thread(target=run, name=f"read {name}", daemon=True)
    thread.start()
    thread.join(max(0.0, budget_s))
    if errors:
        raise errors[0]
    if results:
        return results[0]
    raise EnvironmentProblem(
        "model_stalled",
        f"{name} was not read within {budget_s:.0f} s: its drive does not answer.",
        "Check that the network or USB drive is connected, or copy the model to a local disk.",
    )
