"""The helper's life: what was left behind, one device, a lease, and back to how it was."""

import contextlib
import io
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from app.power.helper.gpu import DriverRefused, Gpu
from app.power.helper.guard import Guard
from app.power.helper.journal import Entry, Journal, JournalProblem
from app.power.protocol import (
    LEASE_MAX_S,
    LEASE_MIN_S,
    MAX_LINE_BYTES,
    PROTOCOL_VERSION,
    Alive,
    Bye,
    Hello,
    KeepAlive,
    Message,
    NotUnderstood,
    Open,
    Opened,
    PutBack,
    Quit,
    Refused,
    Request,
    Restore,
    Restored,
    SetClocks,
    SetPower,
    decode_request,
)

replace = msgspec.structs.replace
OPEN_WITHIN_S = 60.0
OpenGpu = Callable[[str], Gpu]


class Stop(Exception):
    """The helper ends, for this reason."""


class Helper:
    """One run of the helper, from ``hello`` to ``bye``."""

    def __init__(
        self,
        journal: Journal,
        open_gpu: OpenGpu,
        boot_id: str,
        send: Callable[[Message], None],
        clock: Callable[[], float],
    ) -> None:
        """Prepare; nothing is touched yet.

        Args:
            journal: Where the values found are kept.
            open_gpu: Opens a GPU by its PCI address.
            boot_id: This run of the system.
            send: Writes one line to RigTune.
            clock: Seconds, also counting suspended time.
        """
        self._journal = journal
        self._open_gpu = open_gpu
        self._boot_id = boot_id
        self._send = send
        self._clock = clock
        self._guard: Guard | None = None
        self._lease_s = OPEN_WITHIN_S
        self._renewed_s = clock()
        self._held = contextlib.ExitStack()

    def remaining_s(self) -> float:
        """Return how long the lease still runs, seconds."""
        return self._renewed_s + self._lease_s - self._clock()

    def begin(self) -> None:
        """Put back what an earlier run left behind, then say hello."""
        results: list[PutBack] = []
        for entry in self._journal.entries():
            results += self._recover(entry)
        self._renewed_s = self._clock()
        self._send(Hello(pid=os.getpid(), pending=tuple(results)))

    def handle(self, line: bytes) -> None:
        """Do what one line asks for.

        Raises:
            Stop: It asks to end, or it is not a request.
        """
        try:
            request = decode_request(line)
        except NotUnderstood as error:
            self._send(Refused(code="not_understood", message=str(error)[:200]))
            raise Stop("not_understood") from error
        if self.remaining_s() < 0:
            raise Stop("lease_expired")
        self._renewed_s = self._clock()
        self._send(self._answer(request))

    def end(self, reason: str) -> None:
        """Put everything back and say goodbye, as far as anybody listens."""
        results = self._guard.put_back() if self._guard else ()
        with contextlib.suppress(OSError):
            self._send(Bye(reason=reason, results=results))
        self._held.close()

    def _answer(self, request: Request) -> Message:
        match request:
            case Quit():
                raise Stop("quit")
            case KeepAlive():
                return Alive()
            case Open():
                return self._open(request)
        if self._guard is None:
            return Refused(code="not_open", message="no device is open")
        match request:
            case SetPower(watts=watts):
                return self._guard.set_power(watts, self._clock())
            case SetClocks(high_mhz=high_mhz):
                return self._guard.lock_clocks(high_mhz, self._clock())
            case Restore(knob=knob):
                return Restored(results=self._guard.put_back(knob))

    def _open(self, request: Open) -> Message:
        if self._guard is not None:
            return Refused(code="already_open", message="one device per helper")
        if request.v != PROTOCOL_VERSION:
            return Refused(code="version", message=f"this helper speaks {PROTOCOL_VERSION}")
        if not LEASE_MIN_S <= request.lease_s <= LEASE_MAX_S:
            text = f"a lease is {LEASE_MIN_S:.0f} to {LEASE_MAX_S:.0f} s"
            return Refused(code="bad_lease", message=text)
        try:
            return self._bind(request)
        except DriverRefused as error:
            return Refused(code=error.code, message=str(error))
        except (JournalProblem, OSError) as error:
            return Refused(code="journal_failed", message=str(error))

    def _bind(self, request: Open) -> Message:
        gpu = self._open_gpu(request.pci_id)
        entry = Entry(
            pci_id=request.pci_id,
            identity=gpu.identity,
            boot_id=self._boot_id,
            pid=os.getpid(),
        )
        if not self._held.enter_context(self._journal.lock(request.pci_id)):
            return Refused(code="busy", message="another RigTune controls this device")
        self._held.callback(gpu.close)
        self._guard = self._guard_of(gpu, entry)
        self._lease_s = request.lease_s
        return Opened(facts=self._guard.facts)

    def _guard_of(self, gpu: Gpu, entry: Entry) -> Guard:
        """Return the guard; what is still left behind is put back first, or goes on being owed."""
        for left in self._journal.entries():
            is_same = (left.pci_id, left.boot_id) == (entry.pci_id, entry.boot_id)
            if is_same and left.identity == entry.identity:
                guard = Guard(gpu, self._journal, replace(left, pid=entry.pid))
                if any(result.result == "failed" for result in guard.put_back()):
                    return guard
        return Guard(gpu, self._journal, entry)

    def _recover(self, entry: Entry) -> tuple[PutBack, ...]:
        with self._journal.lock(entry.pci_id) as is_free:
            if not is_free:
                return ()  # its helper lives
            if entry.boot_id != self._boot_id:
                self._journal.remove(entry.pci_id)
                return (PutBack(pci_id=entry.pci_id, knob="", result="outdated"),)
            try:
                gpu = self._open_gpu(entry.pci_id)
                try:
                    if gpu.identity != entry.identity:
                        raise DriverRefused("other_card", "another card is at this address now")
                    return Guard(gpu, self._journal, entry).put_back()
                finally:
                    gpu.close()
            except DriverRefused:
                return (PutBack(pci_id=entry.pci_id, knob="", result="failed"),)


def serve(helper: Helper, source: io.FileIO) -> str:
    """Serve until the end and return its reason; everything is put back whatever happens.

    Args:
        helper: What to serve.
        source: Lines from RigTune, unbuffered (a thread still waits in it at the end, which a
            buffered one does not survive); its end means that RigTune is gone.
    """
    lines: queue.SimpleQueue[bytes | str] = queue.SimpleQueue()
    _stop_on_signals(lines)
    reason = "error"
    try:
        helper.begin()
        threading.Thread(target=_read, args=(source, lines), daemon=True).start()
        while True:
            helper.handle(_next_line(lines, helper.remaining_s()))
    except Stop as stop:
        reason = str(stop)
    except OSError:
        reason = "parent_gone"  # nobody reads our answers any more
    finally:
        helper.end(reason)
    return reason


def clock_s() -> float:
    """Return seconds that go on while the machine sleeps, where the system can say."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def boot_id(root: Path) -> str:
    """Return the id of this run of the system; empty where there is none."""
    try:
        return (root / "proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _next_line(lines: "queue.SimpleQueue[bytes | str]", timeout_s: float) -> bytes:
    try:
        item = lines.get(timeout=max(0.0, timeout_s))
    except queue.Empty:
        raise Stop("lease_expired") from None
    if isinstance(item, str):
        raise Stop(item)
    return item


def _read(source: io.FileIO, lines: "queue.SimpleQueue[bytes | str]") -> None:
    while True:
        try:
            line = source.readline(MAX_LINE_BYTES + 1)
        except (OSError, ValueError):
            line = b""
        if not line.endswith(b"\n"):
            # The end, or a line too long to be one of ours.
            lines.put("not_understood" if len(line) > MAX_LINE_BYTES else "parent_gone")
            return
        lines.put(line)


def _stop_on_signals(lines: "queue.SimpleQueue[bytes | str]") -> None:
    def stop(_number: int, _frame: Any) -> None:
        lines.put("signal")

    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)
