"""What the chat page costs: streaming, and scrolling through a long conversation.

usage: chat_window.py [--seconds S] [--tok-s N] [--tokens N]

Goals: streaming at 200 tok/s costs < 10 % of one core in the window's process, in a new
conversation and at the end of one of 100,000 tokens; scrolling through that one holds the GUI
thread ≤ 50 ms CPU per event (16.7 ms per step is 60 pictures a second). The real window plays a
session whose engine is ``paced_worker.py``, so that all CPU time measured is the window's: its GUI
thread, the threads that read the worker's pipe, and the chat's own thread with its database writes.
Everything is drawn into memory (offscreen): a real screen adds what its compositor costs.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from paced_worker import ANSWER, CHARS_PER_TOKEN  # noqa: E402
from PySide6.QtCore import QEventLoop, QTimer  # noqa: E402, TID251 - after the path
from PySide6.QtWidgets import QApplication  # noqa: E402, TID251
from typing_extensions import override  # noqa: E402

from app.chat.thread import Thread  # noqa: E402
from app.domain.events import ChatEvent, TrialProgress  # noqa: E402
from app.rig.chat_engine import ChatEngine  # noqa: E402
from app.rig.process import Launch  # noqa: E402
from app.worker.protocol import ChatMessage, Sampling  # noqa: E402
from tests.fakes.session import FakeChat, FakeSession  # noqa: E402
from views.chat.history import Entry  # noqa: E402
from views.chat.page import ChatPage  # noqa: E402
from views.chat.turns import TurnView  # noqa: E402
from views.colors import Scheme  # noqa: E402
from views.icons import Icons  # noqa: E402
from views.main_window import MainWindow  # noqa: E402
from views.state import WindowState  # noqa: E402
from views.theme import Theme  # noqa: E402
from views.widgets import Kit  # noqa: E402

STEPS = 400
WORKER = Path(__file__).resolve().parent / "paced_worker.py"


class TimedChat(FakeChat):
    """Streams from a worker's pipe, at a fixed pace until told to stop."""

    tok_s = 200.0

    @override
    def __init__(self, session: FakeSession) -> None:
        """Prepare; nothing runs yet."""
        super().__init__(session)
        command = (sys.executable, str(WORKER), str(self.tok_s))
        self._engine = ChatEngine(Launch(command=command))

    @override
    def load(self) -> Iterator[TrialProgress]:
        """Start the worker."""
        yield from self._engine.start(self.spec, self.settings)
        yield from super().load()

    @override
    def close(self) -> None:
        """End the worker."""
        super().close()
        self._engine.close()

    @override
    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Stream four characters a token."""
        return self._engine.generate(messages, sampling, max_tokens)


class TimedSession(FakeSession):
    """Gives timed chats."""

    @override
    def chat(self, model: str, profile_id: str | None = None) -> FakeChat:
        """Return one."""
        return TimedChat(self)


def main() -> None:
    """Print both measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--tok-s", type=float, default=200.0)
    parser.add_argument("--tokens", type=int, default=100_000)
    options = parser.parse_args()
    TimedChat.tok_s = options.tok_s
    with tempfile.TemporaryDirectory() as home:
        os.environ["RIGTUNE_HOME"] = home
        print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
        app = QApplication([])
        theme = Theme(app, Scheme.LIGHT)
        window = MainWindow(Kit(theme, Icons(theme)), TimedSession, WindowState())
        window.resize(900, 600)
        window.show()
        window.start()
        _until(app, lambda: window.is_ready and not window.jobs.running())
        window.open_page("chat")
        assert window.late is not None
        chat = window.late.chat
        _until(app, lambda: not window.jobs.running())
        _stream(app, chat, options.seconds, options.tok_s, "a new conversation")
        n_turns = _open_long(app, chat, options.tokens)
        _stream(app, chat, options.seconds, options.tok_s, f"one of {n_turns} turns")
        _scroll(app, chat, options.tokens)
        window.finish()
        _until(app, lambda: not window.isVisible())


def _stream(app: QApplication, chat: ChatPage, seconds: float, tok_s: float, where: str) -> None:
    n_turns = len(chat.transcript.turns) + 2
    chat.send("Tell me about caches.")
    _until(
        app, lambda: len(chat.transcript.turns) == n_turns and chat.transcript.turns[-1].has_text
    )
    _run(2.0)
    before, clock, cpu, gui = (
        len(chat.transcript.turns[-1].text), time.perf_counter(), time.process_time(),
        time.thread_time(),
    )  # fmt: skip
    _run(seconds)
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    gui = time.thread_time() - gui
    n_tok = (len(chat.transcript.turns[-1].text) - before) / CHARS_PER_TOKEN
    verdict = "reached" if cpu / clock < 0.10 else "missed"
    print(
        f"streaming in {where}, {n_tok / clock:.0f} tok/s (asked {tok_s:.0f}) for {clock:.0f} s: "
        f"{100 * cpu / clock:.1f} % of a core ({100 * gui / clock:.1f} % GUI thread, the rest "
        f"the threads that read the worker and keep the text); goal < 10 % {verdict}"
    )
    chat._on_stop_requested()  # noqa: SLF001 - what the Stop button does
    _until(app, lambda: not chat.scene.is_answering)


def _turns(n_tok: int) -> list[TurnView]:
    return [
        TurnView(id=n, role=("user", "assistant")[n % 2], content=ANSWER if n % 2 else f"What {n}?")
        for n in range(2 * (n_tok * CHARS_PER_TOKEN // (len(ANSWER) + 40) + 1))
    ]


def _open_long(app: QApplication, chat: ChatPage, n_tok: int) -> int:
    """Store a long conversation and open it from the list; return how many turns it has."""
    thread = Thread(chat._session.store())  # noqa: SLF001 - the one the page reads
    for turn in _turns(n_tok):
        thread.add(turn.role, turn.content)
    thread.save()
    n_turns = len(thread.turns)
    chat.history.opened.emit(Entry(conversation_id=thread.id or 0, title="", when=""))
    _until(app, lambda: len(chat.transcript.turns) == n_turns)
    _run(1.0)
    return n_turns


def _scroll(app: QApplication, chat: ChatPage, n_tok: int) -> None:
    turns = _turns(n_tok)
    begin = time.thread_time()
    chat.transcript.show_turns(turns)
    opened = time.thread_time() - begin
    _run(1.0)
    n_chars = sum(len(t.content) for t in turns)
    bar = chat.transcript.verticalScrollBar  # asked for anew: the binding may drop one
    steps: list[float] = []
    for step in range(STEPS):
        bar().setValue(bar().maximum() - (step + 1) * 120)
        steps += _drained(app)
    for step in range(100):
        bar().setValue(bar().maximum() * (step * 37 % 100) // 100)
        steps += _drained(app)
    steps.sort()
    worst = steps[-1]
    verdict = "reached" if worst <= 0.05 and opened <= 0.05 else "missed"
    print(
        f"scrolling {n_chars / CHARS_PER_TOKEN:,.0f} tokens, {len(turns)} turns: opened in "
        f"{1e3 * opened:.0f} ms; {len(steps)} steps, CPU median {1e3 * median(steps):.1f} ms, "
        f"99 % ≤ {1e3 * steps[int(len(steps) * 0.99)]:.1f} ms, worst {1e3 * worst:.1f} ms; "
        f"goal ≤ 50 ms {verdict}"
    )


def _drained(app: QApplication) -> list[float]:
    """Let the window draw; return the CPU seconds of each turn of its loop."""
    found = []
    for _ in range(4):
        begin = time.thread_time()
        app.processEvents()
        found.append(time.thread_time() - begin)
    return found


def _run(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0:
        loop = QEventLoop()
        QTimer.singleShot(int(left * 1000) + 1, loop.quit)
        loop.exec()


def _until(app: QApplication, is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_done():
        if time.monotonic() > end:
            raise TimeoutError
        app.processEvents()
        time.sleep(0.005)


if __name__ == "__main__":
    main()
