"""Watches the GUI thread: no event may hold it long, and nothing on it may block.

What blocks is a fault at once: it is read from what the thread calls, not from a clock. Time is
judged twice. The goal, ``GOAL_MS``, is proved by ``benchmarks/window.py`` on a quiet machine, which
prints the longest turns by name. In a test, which shares its cores with whatever else runs, twice
the goal is allowed, times what the core is slower than the one the goal was set on: that still
finds a page that is built in one turn, and judges neither the neighbours nor the machine.
"""

import gc
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid
from typing_extensions import override

from tests.fakes.slowness import slowdown
from tests.fakes.wine import is_wine

# A system call costs Wine a multiple of what it costs Windows.
GOAL_MS = 300.0 if is_wine() else 50.0
MAX_CPU_MS = 2 * GOAL_MS
N_LONGEST = 5
BLOCKING = frozenset({"open", "sqlite3.connect", "subprocess.Popen", "socket.connect"})


class GuiGuard:
    """Collects what the GUI thread must not do, while it is armed.

    CPU time of the thread is what counts: a busy machine makes wall time meaningless, and a wait
    shows as a blocking call. The wall time is kept for the message. On a slow core, and where two
    threads share one, the same work takes more CPU time: what a fixed piece of work takes now,
    against what it takes on a quiet one, is allowed for.
    """

    def __init__(self, slowdown: Callable[[], float] = slowdown) -> None:
        """Start disarmed; the audit hook stays for the life of the process.

        Args:
            slowdown: How many times slower than a quiet one the core is now.
        """
        self.is_armed = False
        self.faults: list[str] = []
        self.longest: list[tuple[float, str]] = []
        """The longest events so far, the longest first: ms of CPU time and what it was."""
        self.doing = ""
        """What the event at hand works on, where somebody says so: a part of its name."""
        self.is_timing = False
        self._slowdown = slowdown
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

    def begin(self) -> tuple[int, int]:
        """Begin to time an event, the events it sends included; returns what ``end`` needs."""
        self.is_timing, self.doing = True, ""
        gc.disable()  # a full round goes through all that earlier tests have left behind
        return time.thread_time_ns(), time.perf_counter_ns()

    def end(self, begun: tuple[int, int], receiver: QObject, event: QEvent) -> None:
        """Judge the event that ends."""
        cpu_ms = (time.thread_time_ns() - begun[0]) / 1e6
        wall_ms = (time.perf_counter_ns() - begun[1]) / 1e6
        self.is_timing = False
        gc.enable()
        if self.is_armed:
            self._judge(cpu_ms, wall_ms, receiver, event)

    def _judge(self, cpu_ms: float, wall_ms: float, receiver: QObject, event: QEvent) -> None:
        is_fault = cpu_ms > MAX_CPU_MS and cpu_ms > MAX_CPU_MS * self._slowdown()
        is_long = len(self.longest) < N_LONGEST or cpu_ms > self.longest[-1][0]
        if not is_fault and not is_long:
            return
        parent = type(receiver.parent()).__name__ if isValid(receiver) else "(gone)"
        what = f"{event.type().name} for {type(receiver).__name__} of {parent}"
        what += f": {self.doing}" if self.doing else ""
        self.longest = sorted([*self.longest, (cpu_ms, what)], reverse=True)[:N_LONGEST]
        if is_fault:
            self.faults.append(f"{what}: {cpu_ms:.0f} ms CPU, {wall_ms:.0f} ms")

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
        guard = self.guard
        # An event sent by an event is part of it; a card that is built sends a thousand.
        if guard is None or not guard.is_armed or guard.is_timing:
            return super().notify(receiver, event)
        begun = guard.begin()
        try:
            return super().notify(receiver, event)
        finally:
            guard.end(begun, receiver, event)
