"""The threads that carry lines between RigTune and one worker."""

import contextlib
import os
import queue
import subprocess
import threading
from collections import deque
from enum import Enum
from typing import Final

from app.worker.protocol import (
    MAX_LINE_BYTES,
    Bye,
    Heartbeat,
    Log,
    ProtocolError,
    Reply,
    decode_reply,
)

KEPT_LINES = 20
_QUEUED_REPLIES = 10_000
_LINE_BYTES = 4096
_FULL_S = 0.1
_LAST_WORDS_S = 0.1


class End(Enum):
    """The worker's pipe was closed."""

    END = "end"


END: Final = End.END
Item = Reply | ProtocolError | End


class Pipes:
    """Reads and writes a worker's pipes, so that no one else ever waits for them.

    Attributes:
        lines: Last lines of its log and standard error, oldest first.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Begin to read and write."""
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._process = process
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._replies: queue.Queue[Item] = queue.Queue(_QUEUED_REPLIES)
        self._dropping = threading.Event()
        self._errors = threading.Thread(target=self._read_errors, daemon=True, name="worker-stderr")
        self._threads = [
            self._errors,
            threading.Thread(target=self._read_replies, daemon=True, name="worker-replies"),
            threading.Thread(target=self._write_requests, daemon=True, name="worker-requests"),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, line: bytes) -> None:
        """Write ``line`` as soon as the worker reads."""
        self._requests.put(line)

    def receive(self, timeout_s: float) -> Item | None:
        """Return the next reply, what was wrong with it, or the end; ``None`` = none yet."""
        try:
            return self._replies.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def last_words(self) -> tuple[str, ...]:
        """Return ``lines`` once those still in the pipe of a dead worker are read."""
        self._errors.join(_LAST_WORDS_S)
        return tuple(self.lines)

    def drop_replies(self) -> None:
        """Let the worker go on although nobody takes its replies any more."""
        self._dropping.set()

    def close(self) -> None:
        """Close the pipes of a worker that is gone."""
        self._dropping.set()
        self._requests.put(None)
        for thread in self._threads:
            thread.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()

    def _write_requests(self) -> None:
        """Write from a thread of its own: a worker that does not read must not block us."""
        assert self._process.stdin is not None
        with self._process.stdin as pipe:
            while (line := self._requests.get()) is not None:
                # past the buffer, which would fail again when it is closed
                with contextlib.suppress(OSError):  # it is gone: the reading thread says so
                    while line:
                        line = line[os.write(pipe.fileno(), line) :]

    def _read_replies(self) -> None:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline(MAX_LINE_BYTES + 1):
            try:
                reply = decode_reply(line)
            except ProtocolError as error:
                self._put(error)
                return
            if isinstance(reply, Log):
                self.lines.append(reply.text)
            elif not isinstance(reply, Heartbeat | Bye):
                self._put(reply)
        self._put(END)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        while line := self._process.stderr.readline(_LINE_BYTES):
            text = line.decode(errors="replace").rstrip()
            if text:
                self.lines.append(text)

    def _put(self, item: Item) -> None:
        """Hand ``item`` over; while nobody takes it the worker waits, which bounds memory."""
        while not self._dropping.is_set():
            with contextlib.suppress(queue.Full):
                self._replies.put(item, timeout=_FULL_S)
                return
