"""The child's end of the protocol: one descriptor out, one thread in, one heartbeat."""

import os
import queue
import sys
import threading
import time
from typing import BinaryIO

from app.domain.errors import ErrorInfo
from app.domain.outcome import Outcome
from app.domain.pacing import Pace
from app.worker.cancel import CancelFlag
from app.worker.protocol import (
    MAX_LINE_BYTES,
    Cancel,
    Codec,
    Failed,
    Heartbeat,
    Log,
    Message,
    ProtocolError,
    Request,
    SetPace,
    Shutdown,
    decode_request,
)

HEARTBEAT_S = 1.0
EXIT_PROTOCOL = 4


class Channel:
    """Sends replies and receives requests.

    ``cancel`` is set from the reading thread while native code runs. The end of stdin means
    that the parent is gone: the process ends at once, whatever it is doing.
    """

    def __init__(self, fd: int, cancel: CancelFlag) -> None:
        """Speak on descriptor ``fd``."""
        self._fd = fd
        self._cancel = cancel
        self._codec = Codec()
        self._lock = threading.Lock()
        self._requests: queue.Queue[Request] = queue.Queue()
        self._busy = threading.Event()
        self._pace: Pace | None = None

    def start(self, stdin: BinaryIO) -> None:
        """Begin to read requests and to send heartbeats."""
        threading.Thread(target=self._read, args=(stdin,), daemon=True, name="requests").start()
        threading.Thread(target=self._beat, daemon=True, name="heartbeat").start()

    def send(self, message: Message) -> None:
        """Write one line; callable from every thread. A parent that is gone ends the process."""
        with self._lock:
            line = self._codec.encode(message, time.perf_counter_ns())
            try:
                while line:
                    line = line[os.write(self._fd, line) :]
            except OSError:
                os._exit(0)

    def new_pace(self) -> Pace | None:
        """Return the pace asked for since the last call, if any."""
        pace = self._pace
        if pace is not None:
            self._pace = None
        return pace

    def next_request(self) -> Request:
        """Wait for the next request; others are refused until ``finish``."""
        return self._requests.get()

    def finish(self, message: Message) -> None:
        """Send the last line of the running request, ready for the next one.

        A ``cancel`` that comes too late for this request must not hit the next.
        """
        self._busy.clear()
        self._cancel.clear()
        self.send(message)

    def _beat(self) -> None:
        while True:
            time.sleep(HEARTBEAT_S)
            self.send(Heartbeat())

    def _read(self, stdin: BinaryIO) -> None:
        while True:
            line = stdin.readline(MAX_LINE_BYTES + 1)
            if not line:
                os._exit(0)
            try:
                self._accept(decode_request(line))
            except ProtocolError as error:
                self._refuse(str(error))

    def _accept(self, request: Request) -> None:
        if isinstance(request, Cancel):
            if self._busy.is_set():
                self._cancel.set()
        elif isinstance(request, SetPace):
            self._pace = request.pace
        elif isinstance(request, Shutdown):
            self._cancel.set()
            self._requests.put(request)
        elif self._busy.is_set():
            kind = type(request).__name__
            self.send(Log(level="error", text=f"refused {kind}: another request is running"))
        else:
            self._busy.set()
            self._requests.put(request)

    def _refuse(self, reason: str) -> None:
        """End: after a line that was not understood nothing that follows can be trusted."""
        message = f"The worker received something that is not a request: {reason}"
        hint = "Both programs must come from the same RigTune version."
        error = ErrorInfo(code="protocol", message=message, hint=hint)
        self.send(Failed(outcome=Outcome.UNSUPPORTED, error=error))
        sys.stderr.flush()
        os._exit(EXIT_PROTOCOL)
