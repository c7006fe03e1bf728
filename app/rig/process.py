"""One worker process: starts it, talks to it, and sees it gone."""

import subprocess
import threading
import time
from collections.abc import Callable, Generator
from typing import TypeVar

from app.domain.errors import ErrorInfo
from app.domain.machine import EngineInfo
from app.domain.record import Record
from app.rig.budgets import Budgets
from app.rig.ends import WorkerAbsent, WorkerDied, WorkerEnd, WorkerRefused, WorkerSilent
from app.rig.environment import worker_environment
from app.rig.pins import Pin, arguments, missing_card
from app.rig.pipes import END, Pipes
from app.rig.process_tree import CREATION_FLAGS, ProcessTree
from app.runtime import sibling_command
from app.worker.protocol import (
    Cancel,
    Codec,
    DryRunFinished,
    Failed,
    GenerateFinished,
    Hello,
    LoadFinished,
    Message,
    OutputChecked,
    ProtocolError,
    Reply,
    ServeFinished,
    Shutdown,
    Speculated,
    TemplateChecked,
    Tokenize,
    TokenizeFinished,
    TrialFinished,
)

TICK_S = 0.1
_PING_S = 5.0
_EXIT_CODE_S = 1.0

T = TypeVar("T")
Final = (
    LoadFinished
    | DryRunFinished
    | TrialFinished
    | GenerateFinished
    | TokenizeFinished
    | TemplateChecked
    | OutputChecked
    | Speculated
    | ServeFinished
    | Failed
)
OTHER_QUESTION = ErrorInfo(
    code="protocol",
    message="The engine's process answered another question than the one asked.",
    hint="Both programs must come from the same RigTune version: reinstall it.",
)
Exchange = Generator[Reply | None, None, Final]


class Launch(Record, frozen=True, kw_only=True):
    """How workers are started.

    Attributes:
        rpc: Endpoints of RPC servers whose devices to join.
        engine_dir: Folder of another llama.cpp build.
        command: Program and arguments; ``None`` = RigTune's own worker.
        budgets: How long a worker may be silent.
        pins: The only cards to use, by identity; ``None`` = all, as the engine lists them.
    """

    rpc: tuple[str, ...] = ()
    engine_dir: str | None = None
    command: tuple[str, ...] | None = None
    budgets: Budgets = Budgets()
    pins: tuple[Pin, ...] | None = None

    def arguments(self) -> list[str]:
        """Return the whole command line."""
        line = list(self.command or sibling_command("worker"))
        for endpoint in self.rpc:
            line += ["--rpc", endpoint]
        line += arguments(self.pins or ())
        return line + (["--engine-dir", self.engine_dir] if self.engine_dir else [])


class WorkerProcess:
    """A running worker. Used by one thread at a time; its reading threads are private."""

    def __init__(self, launch: Launch) -> None:
        """Start it.

        Raises:
            WorkerAbsent: The program cannot be started.
        """
        self.budgets = launch.budgets
        self._pins = launch.pins or ()
        self.engine: EngineInfo | None = None
        self.chat_templates: tuple[str, ...] = ()
        self.is_suspect = False
        try:
            self._process = subprocess.Popen(
                launch.arguments(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=worker_environment(launch.pins),
                start_new_session=True,
                creationflags=CREATION_FLAGS,
            )
        except OSError as error:
            raise WorkerAbsent(error.strerror or str(error)) from error
        self._tree = ProcessTree(self._process)
        self._pipes = Pipes(self._process)
        self._codec = Codec()
        self._stopper: threading.Thread | None = None
        self._end_seen_s: float | None = None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def tail(self) -> tuple[str, ...]:
        """Return the last lines of log and standard error, oldest first."""
        return tuple(self._pipes.lines)

    def is_gone(self) -> bool:
        """Whether the process has ended and was seen to."""
        return self._process.poll() is not None

    def greet(self) -> Generator[None, None, EngineInfo]:
        """Wait for ``hello``, yielding every ``TICK_S``; return what it says of the engine.

        Raises:
            WorkerDied: It ended instead.
            WorkerSilent: It took too long.
            WorkerRefused: It cannot work and says why, or does not see a pinned card.
        """
        deadline_s = time.monotonic() + self.budgets.hello_s
        while time.monotonic() < deadline_s:
            match self._next():
                case Hello() as hello:
                    gone = missing_card(self._pins, hello.engine)
                    if gone is not None:
                        raise WorkerRefused(gone)
                    self.engine, self.chat_templates = hello.engine, hello.chat_templates
                    return hello.engine
                case Failed() as failed:
                    raise WorkerRefused(failed)
                case _:
                    yield None
        raise WorkerSilent("start", self.budgets.hello_s)

    def ask(self, request: Message, phase: str, silence_s: Callable[[str], float]) -> Exchange:
        """Send ``request`` and yield what comes back, ``None`` every ``TICK_S`` without.

        Returns the final reply. Closing the generator early cancels the request; a worker that
        does not react to that is ended in the background.

        Args:
            request: What to do.
            phase: Phase it begins with; ``progress`` replies change it.
            silence_s: Seconds of silence allowed per phase.

        Raises:
            WorkerDied: It ended instead of answering.
            WorkerSilent: It made no progress in time.
            ProtocolError: The request is larger than the protocol allows.
        """
        self._send(request)
        is_over = False
        try:
            heard_s = time.monotonic()
            while True:
                reply = self._next()
                now_s = time.monotonic()
                if isinstance(reply, Final):
                    self.is_suspect = isinstance(reply, Failed)
                    is_over = True
                    return reply
                if reply is not None:
                    heard_s = now_s
                    phase = getattr(reply, "phase", phase)
                elif self._end_seen_s is None and now_s - heard_s > silence_s(phase):
                    raise WorkerSilent(phase, silence_s(phase))
                yield reply
        except WorkerEnd:
            is_over = True
            raise
        finally:
            if not is_over:
                self._interrupt()

    def tell(self, message: Message) -> None:
        """Send what has no reply, while a request runs or not."""
        self._send(message)

    def can_be_reused(self) -> bool:
        """Whether it still answers; asked after a failure, because an abort takes its time."""
        if self.is_gone() or self._stopper:
            return False
        if not self.is_suspect:
            return True
        try:
            drain(self.ask(Tokenize(text=""), "start", lambda _: _PING_S))
        except WorkerEnd:
            return False
        self.is_suspect = False
        return not self.is_gone()

    def stop_soon(self) -> None:
        """Begin to end the process in the background."""
        if self._stopper is None:
            self._pipes.drop_replies()
            self._stopper = threading.Thread(target=self._end, daemon=True, name="worker-stop")
            self._stopper.start()

    def close(self) -> None:
        """End the process: politely, then by force; return when it is gone."""
        self.stop_soon()
        assert self._stopper is not None
        self._stopper.join()

    def _end(self) -> None:
        self._send(Shutdown())
        if not self._wait(self.budgets.shutdown_s):
            self._tree.terminate()
            if not self._wait(self.budgets.terminate_s):
                self._tree.kill()
        # a process in an unkillable state (driver, dead network mount) is waited for here
        self._process.wait()
        self._tree.kill()  # what the worker left behind would keep the pipes open
        self._pipes.close()
        self._tree.close()

    def _wait(self, timeout_s: float) -> bool:
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _interrupt(self) -> None:
        """Cancel the running request; what is still underway then ends in the background."""
        self._send(Cancel())
        deadline_s = time.monotonic() + self.budgets.cancel_s
        while time.monotonic() < deadline_s:
            try:
                reply = self._next()
            except WorkerDied:
                break
            if isinstance(reply, Final):
                self.is_suspect = isinstance(reply, Failed)
                return
        self.stop_soon()

    def _send(self, message: Message) -> None:
        self._pipes.send(self._codec.encode(message, time.perf_counter_ns()))

    def _next(self) -> Reply | None:
        """Return the next reply, or ``None`` after ``TICK_S``.

        Raises:
            WorkerDied: There will be none.
        """
        if self._end_seen_s is not None:
            # its pipe is closed; give the exit code a moment to arrive
            waited_s = time.monotonic() - self._end_seen_s
            if self._wait(TICK_S) or waited_s > _EXIT_CODE_S:
                raise self._died(None)
            return None
        item = self._pipes.receive(TICK_S)
        if item is END:
            self._end_seen_s = time.monotonic()
            return None
        if isinstance(item, ProtocolError):
            raise self._died(str(item))
        return item

    def _died(self, protocol: str | None) -> WorkerDied:
        lines = self._pipes.last_words()
        code = self._process.poll()
        self.stop_soon()
        return WorkerDied(code, lines, protocol)


def start_worker(launch: Launch) -> Generator[None, None, WorkerProcess]:
    """Start a worker and wait for its ``hello``, yielding every ``TICK_S``.

    Raises:
        WorkerEnd: It cannot be started or cannot work.
    """
    worker = WorkerProcess(launch)
    is_ready = False
    try:
        yield from worker.greet()
        is_ready = True
    finally:
        if not is_ready:
            worker.stop_soon()
    return worker


def drain(generator: Generator[object, None, T]) -> T:
    """Run ``generator`` to its end and return its value."""
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            value: T = stop.value
            return value
