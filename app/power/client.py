"""Talks to the power helper. One request, one answer; a helper that is gone has put things back."""

import contextlib
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Protocol

from app.domain.errors import EnvironmentProblem
from app.power.protocol import (
    MAX_LINE_BYTES,
    PROTOCOL_VERSION,
    Bye,
    Facts,
    Hello,
    Message,
    NotUnderstood,
    Open,
    Opened,
    PutBack,
    Quit,
    Refused,
    Reply,
    decode_reply,
    encode,
)
from app.power.trust import PROGRAM, distrust

PKEXEC = Path("/usr/bin/pkexec")
PASSWORD_S = 180.0
ANSWER_S = 5.0
LEASE_S = 10.0
_DISMISSED, _NOT_AUTHORISED = 126, 127


class HelperGone(Exception):
    """The helper ended or does not answer; whatever was set is put back by it or its next start."""

    def __init__(self, message: str, results: tuple[PutBack, ...] | None = None) -> None:
        """Keep how putting back went, where the helper could still say."""
        super().__init__(message)
        self.results = results


class Link(Protocol):
    """Carries lines to a helper and back; the seam between Linux and Windows."""

    def send(self, line: bytes) -> None:
        """Send one line.

        Raises:
            OSError: The other end is gone.
        """
        ...

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next line, empty at the end, ``None`` when none came in time."""
        ...

    def close(self) -> int | None:
        """End the connection, which makes the helper restore; return its exit code if known."""
        ...


class PipeLink:
    """A helper on the other end of its standard input and output."""

    def __init__(self, command: list[str]) -> None:
        """Start it.

        Raises:
            OSError: It cannot be started.
        """
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._has_ended = False
        assert self._process.stdin
        assert self._process.stdout
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout
        self._reader = threading.Thread(target=self._read, name="power-helper", daemon=True)
        self._reader.start()

    def send(self, line: bytes) -> None:
        """Send one line."""
        self._stdin.write(line)
        self._stdin.flush()

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next line, empty at the end, ``None`` when none came in time."""
        if self._has_ended:
            return b""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._has_ended = not line
        return line

    def close(self) -> int | None:
        """End it: the end of its input is all it takes, whoever's rights it has."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            code = self._process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            return None  # it has more rights than we: its lease ends it
        self._reader.join(ANSWER_S)
        self._stdout.close()
        return code

    def _read(self) -> None:
        while line := self._stdout.readline(MAX_LINE_BYTES + 1):
            self._lines.put(line)
        self._lines.put(b"")


class HelperClient:
    """A helper bound to one device."""

    def __init__(self, link: Link) -> None:
        """Take over a started helper; nothing is said yet."""
        self._link = link
        self.pending: tuple[PutBack, ...] = ()
        self.facts: Facts | None = None

    def greet(self) -> tuple[PutBack, ...]:
        """Wait for the helper (a password may be asked for); return what its start put back.

        Raises:
            EnvironmentProblem: It was not allowed, or is of another version.
        """
        try:
            hello = self._receive(PASSWORD_S)
        except HelperGone as error:
            raise self._not_started(self._link.close()) from error
        if not isinstance(hello, Hello) or hello.v != PROTOCOL_VERSION:
            self._link.close()
            message = "The installed power helper belongs to another version of RigTune."
            raise EnvironmentProblem("helper_version", message, "Install it again.")
        self.pending = hello.pending
        return hello.pending

    def begin(self, pci_id: str, lease_s: float = LEASE_S) -> Facts:
        """Wait for the helper and bind it to a device.

        Raises:
            EnvironmentProblem: It was not allowed, is of another version, or refuses the device.
        """
        self.greet()
        reply = self.ask(Open(pci_id=pci_id, lease_s=lease_s))
        if not isinstance(reply, Opened):
            self._link.close()
            text = reply.message if isinstance(reply, Refused) else "it gave no answer"
            message = f"The power helper does not control this device: {text}."
            raise EnvironmentProblem("helper_refused", message, "Pacing works without it.")
        self.facts = reply.facts
        return reply.facts

    def ask(self, message: Message) -> Reply:
        """Return the answer to a request.

        Raises:
            HelperGone: There is none.
        """
        try:
            self._link.send(encode(message))
        except (OSError, ValueError) as error:
            raise HelperGone("the helper has ended") from error
        reply = self._receive(ANSWER_S)
        if isinstance(reply, Bye) and not isinstance(message, Quit):
            raise HelperGone(f"the helper ended: {reply.reason}", reply.results)
        return reply

    def end(self) -> tuple[PutBack, ...]:
        """Have everything put back and end the helper; return how that went."""
        results: tuple[PutBack, ...] = ()
        with contextlib.suppress(HelperGone):
            reply = self.ask(Quit())
            results = reply.results if isinstance(reply, Bye) else ()
        self._link.close()
        return results

    def _receive(self, timeout_s: float) -> Reply:
        line = self._link.receive(timeout_s)
        if not line:
            raise HelperGone("no answer" if line is None else "the helper has ended")
        try:
            return decode_reply(line)
        except NotUnderstood as error:
            raise HelperGone(str(error)) from error

    def _not_started(self, code: int | None) -> EnvironmentProblem:
        if code == _DISMISSED:
            message = "The password for the power helper was not given."
            return EnvironmentProblem("helper_dismissed", message, "Pacing works without it.")
        if code == _NOT_AUTHORISED:
            message = "This account may not use the power helper."
            hint = "Pacing works without it, or ask an administrator."
            return EnvironmentProblem("helper_not_authorised", message, hint)
        return EnvironmentProblem("helper_failed", "The power helper did not start.")


def start_helper(program: Path = PROGRAM) -> HelperClient:
    """Start the installed helper with an administrator's rights (Linux: polkit asks for them).

    Raises:
        EnvironmentProblem: It is not installed, or must not be trusted.
    """
    if sys.platform == "win32":
        from app.power.windows_link import WindowsLink  # noqa: PLC0415 - exists there only

        return HelperClient(WindowsLink())
    problem = distrust(program)
    if problem == "not_installed" or not PKEXEC.is_file():
        message = "The power helper is not installed."
        hint = "Pacing works without it; docs/power.md says how to install it."
        raise EnvironmentProblem("helper_not_installed", message, hint)
    if problem is not None:
        message = f"The power helper is not used: others could have changed it ({problem})."
        raise EnvironmentProblem("helper_not_trusted", message, "Install it again.")
    # Without an agent in the session there is nobody to ask: fail at once, not on a terminal.
    return HelperClient(PipeLink([str(PKEXEC), "--disable-internal-agent", str(program)]))
