"""Watches the GUI thread: no event may hold it long, and nothing on it may block."""

import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid
from typing_extensions import override

from tests.fakes.wine import is_wine

# A system call costs Wine a multiple of what it costs Windows.
MAX_CPU_MS = 300.0 if is_wine() else 50.0
BLOCKING = frozenset({"open", "sqlite3.connect", "subprocess.Popen", "socket.connect"})


def _fixed_work_ns() -> int:
    begin_ns = time.thread_time_ns()
    for _ in range(20_000):
        pass
    return time.thread_time_ns() - begin_ns


class GuiGuard:
    """Collects what the GUI thread must not do, while it is armed.

    CPU time of the thread is what counts: a busy machine makes wall time meaningless, and a
    wait shows as a blocking call. The wall time is kept for the message. Where two threads share a
    core, the same work takes more CPU time: what a fixed piece of work takes now, against the least
    it ever took, is allowed for.
    """

    def __init__(self) -> None:
        """Start disarmed; the audit hook stays for the life of the process."""
        self.is_armed = False
        self.faults: list[str] = []
        self.longest_cpu_ms = 0.0
        self._depth = 0
        self._fixed_ns = min(_fixed_work_ns() for _ in range(50))
        self._thread = threading.get_ident()
        sys.addaudithook(self._audit)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the test itself read or write files."""
        was, self.is_armed = self.is_armed, False
        try:
            yield
        finally:
            self.is_armed = was

    @contextmanager
    def event(self, receiver: QObject, event: QEvent) -> Iterator[None]:
        """Time one event, the events it sends included."""
        self._depth += 1
        cpu_ns, wall_ns = time.thread_time_ns(), time.perf_counter_ns()
        try:
            yield
        finally:
            self._depth -= 1
            cpu_ms = (time.thread_time_ns() - cpu_ns) / 1e6
            wall_ms = (time.perf_counter_ns() - wall_ns) / 1e6
            if self.is_armed and self._depth == 0:
                self.longest_cpu_ms = max(self.longest_cpu_ms, cpu_ms)
                if cpu_ms > MAX_CPU_MS and cpu_ms > MAX_CPU_MS * self._slowdown():
                    parent = type(receiver.parent()).__name__ if isValid(receiver) else "(gone)"
                    name = f"{type(receiver).__name__} of {parent}"
                    self.faults.append(
                        f"{event.type().name} for {name}: {cpu_ms:.0f} ms CPU, {wall_ms:.0f} ms"
                    )

    def _slowdown(self) -> float:
        """Return how much longer than at best the same work takes at this moment, 1 or more."""
        now_ns = sorted(_fixed_work_ns() for _ in range(9))
        self._fixed_ns = min(self._fixed_ns, now_ns[0])
        return max(1.0, now_ns[4] / self._fixed_ns)

    def _audit(self, event: str, args: tuple[object, ...]) -> None:
        if not self.is_armed or event not in BLOCKING:
            return
        if threading.get_ident() == self._thread:
            with self.paused():  # naming the place reads source files
                stack = traceback.format_stack()[:-1]
            if any("shibokensupport" in frame for frame in stack):
                return  # the binding reads the source of what a library imports late
            where = "".join(stack[-8:])
            self.faults.append(f"{event} {args[:1]} on the GUI thread:\n{where}")


class GuardedApplication(QApplication):
    """An application whose every event the guard sees."""

    guard: GuiGuard | None = None

    @override
    def notify(self, receiver: QObject, event: QEvent) -> bool:
        if self.guard is None or not self.guard.is_armed:
            return super().notify(receiver, event)
        with self.guard.event(receiver, event):
            return super().notify(receiver, event)
