"""The measured process for the GUI thread: the longest turns of each heavy moment, ms of its CPU.

Each turn has a name: the event and, where the turn worked off slices, the calls that took longest.
The work behind the window is made up, so that the window's own calls are all that is measured.
Anything that blocks (a file, a process, a socket) on the GUI thread ends the program as a fault.
"""

import gc
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec
from window_child import run_loop, wait_until

from app.domain.machine import Machine
from tests.fakes import window_data as data
from tests.fakes.gui_guard import GuardedApplication, GuiGuard
from tests.fakes.session import FakeSession
from views.icons import Icons
from views.late_pages import LatePagesBuilder
from views.main_window import MainWindow
from views.slices import Slices
from views.state import WindowState
from views.theme import Theme
from views.widgets import Kit

N_GPUS = 8
NAMED_MS = 5.0
PAGES = ("tune", "chat", "results", "advice", "settings", "dashboard")
SIZES = tuple((width, 600 + width // 10) for width in range(900, 1500, 60))


class Watch:
    """The guard, the window, and what each moment cost."""

    def __init__(self, app: GuardedApplication) -> None:
        """Open the window on eight made-up GPUs."""
        self.guard = app.guard = GuiGuard()
        gpus = tuple(msgspec.structs.replace(data.DISCRETE, key=f"GPU-{i}") for i in range(N_GPUS))
        self.session = FakeSession(Machine(host=data.HOST, gpus=gpus, engine=data.MACHINE.engine))
        theme = Theme(app)
        self.kit = Kit(theme, Icons(theme))
        self.window = MainWindow(self.kit, lambda: self.session, WindowState())
        self.window.pages_built.connect(gc.freeze)  # as the program does
        self.figures: dict[str, float] = {}
        self.longest: dict[str, list[tuple[float, str]]] = {}

    @contextmanager
    def moment(self, name: str) -> Iterator[None]:
        """Watch one moment."""
        self.guard.longest = []
        self.guard.is_armed = True
        yield
        self.guard.is_armed = False
        self.longest[name] = self.guard.longest
        self.figures[name] = self.guard.longest[0][0]

    def until(self, is_done: Callable[[], bool], what: str) -> None:
        """Wait until ``is_done`` and every job has ended."""
        wait_until(lambda: is_done() and not self.window.jobs.running(), what)

    def click(self, call: Callable[[], object]) -> None:
        """Do what a click would do, as an event that the guard sees."""
        from PySide6.QtCore import QTimer  # noqa: PLC0415, TID251 - measures the window

        waiting = [call]

        def run() -> None:
            waiting.pop()()

        QTimer.singleShot(0, run)
        wait_until(lambda: not waiting, "a click")

    def settled(self) -> bool:
        """Whether no look is being put on."""
        return self.kit.theme.is_settled and self.kit.icons.is_settled


def name_turns(guard: GuiGuard) -> None:
    """Have the slow parts of long turns said by name: slices, and pages while they are built."""
    add, build = Slices.add, LatePagesBuilder._build  # noqa: SLF001 - what is timed

    def say(call: Callable[[], object]) -> None:
        begin = time.thread_time()
        call()
        took_ms = 1000 * (time.thread_time() - begin)
        if took_ms > NAMED_MS:
            inner = getattr(call, "func", call)
            words = [type(arg).__name__ for arg in getattr(call, "args", ())]
            name = getattr(inner, "__qualname__", type(inner).__name__)
            guard.doing += f"{name}({', '.join(words)}) {took_ms:.0f} "

    def add_named(self: Slices, calls: Iterable[Callable[[], object]]) -> None:
        add(self, [partial(say, call) for call in calls])

    def build_named(self: LatePagesBuilder) -> Iterator[object]:
        for part in build(self):
            guard.doing = type(part).__name__
            yield part

    Slices.add = add_named  # type: ignore[method-assign]
    LatePagesBuilder._build = build_named  # type: ignore[method-assign]  # noqa: SLF001


def main() -> int:
    """Go through the heavy moments; print the figures and fail on a blocking call."""
    watch = Watch(GuardedApplication([]))
    name_turns(watch.guard)
    window = watch.window
    window.show()
    with watch.moment("start_ms"):
        watch.click(window.start)
        watch.until(lambda: window.is_ready, "the pages")
    late = window.late
    assert late is not None
    with watch.moment("pages_ms"):
        for page in PAGES:
            watch.click(partial(window.open_page, page))
            watch.until(lambda: True, f"page {page}")
            run_loop(0.2)
    with watch.moment("search_ms"):
        watch.click(lambda: (window.open_page("tune"), late.wizard.start_quick("demo")))
        watch.until(lambda: late.wizard.step == "result", "the search")
    with watch.moment("chat_ms"):
        watch.click(lambda: window.open_page("chat"))
        watch.click(lambda: late.chat.offer(data.SPEC.path, "ab12"))
        wait_until(lambda: not window.jobs.running("profiles"), "the profiles")
        watch.click(lambda: late.chat.send("What is a KV cache?"))
        wait_until(lambda: not late.chat.scene.is_answering, "the answer")
    with watch.moment("look_ms"):
        for change in ({"theme": "dark"}, {"contrast": "high"}, {"theme": "light"}):
            watch.click(partial(watch.kit.options.change, **change))
            wait_until(watch.settled, "the look")
    with watch.moment("resize_ms"):
        watch.click(lambda: window.open_page("dashboard"))
        for width, height in SIZES:
            watch.click(partial(window.resize, width, height))
    watch.click(window.finish)
    wait_until(lambda: not window.isVisible(), "the window to close")
    blocking = [fault for fault in watch.guard.faults if "ms CPU" not in fault]
    if blocking:
        sys.exit("\n".join(blocking))
    print(json.dumps({**watch.figures, "turns": watch.longest}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
