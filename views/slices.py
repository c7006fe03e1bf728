"""Long work of the GUI thread in small pieces, between which the window answers."""

import time
from collections import deque
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, QTimer, Slot

BUDGET_NS = 8_000_000


class Slices(QObject):
    """Calls functions one after another, some milliseconds per turn of the event loop."""

    def __init__(self, parent: QObject) -> None:
        """Start with nothing to do."""
        super().__init__(parent)
        self._waiting: deque[Callable[[], object]] = deque()
        self._turn = QTimer(self)
        self._turn.setInterval(0)
        self._turn.timeout.connect(self._on_turn)

    @property
    def is_busy(self) -> bool:
        """Whether something waits."""
        return bool(self._waiting)

    def add(self, calls: Iterable[Callable[[], object]]) -> None:
        """Call ``calls`` after what waits already, from the next turn on."""
        self._waiting.extend(calls)
        if self._waiting:
            self._turn.start()

    def clear(self) -> None:
        """Forget what waits."""
        self._waiting.clear()
        self._turn.stop()

    def finish(self) -> None:
        """Do now what waits: nobody looks."""
        while self._waiting:
            self._waiting.popleft()()
        self._turn.stop()

    @Slot()
    def _on_turn(self) -> None:
        begin_ns = time.perf_counter_ns()
        while self._waiting:
            self._waiting.popleft()()
            if time.perf_counter_ns() - begin_ns > BUDGET_NS:
                return
        self._turn.stop()
