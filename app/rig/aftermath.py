"""What is left after a worker was told to end: its process, and memory that drivers still hold."""

import time
from collections.abc import Callable, Generator

from app.rig.ends import WorkerSilent
from app.rig.process import TICK_S, WorkerProcess

# drivers give memory back some time after a process has ended
_MEMORY_BACK_S = 10.0
_GONE_S = 20.0


class Ended:
    """Workers that were told to end, until they are gone."""

    def __init__(self) -> None:
        """Begin with none."""
        self._workers: list[WorkerProcess] = []

    def add(self, worker: WorkerProcess) -> None:
        """End ``worker`` in the background."""
        worker.stop_soon()
        self._workers.append(worker)

    def last(self) -> WorkerProcess | None:
        """Return the worker that was ended last, if it is not forgotten yet."""
        return self._workers[-1] if self._workers else None

    def gone(self, is_memory_back: Callable[[], bool]) -> Generator[None, None, None]:
        """Yield until all are gone and, for a bounded time, until their memory is free again.

        Raises:
            WorkerSilent: One does not end.
        """
        deadline_s = time.monotonic() + _GONE_S
        while any(not w.is_gone() for w in self._workers):
            if time.monotonic() > deadline_s:
                raise WorkerSilent("start", _GONE_S)
            yield None
            time.sleep(TICK_S)
        had_one, self._workers = bool(self._workers), []
        deadline_s = time.monotonic() + _MEMORY_BACK_S
        while had_one and time.monotonic() < deadline_s and not is_memory_back():
            yield None
            time.sleep(TICK_S)

    def close(self) -> None:
        """Wait until every one is gone."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()
