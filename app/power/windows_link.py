"""Windows: starts the helper through the UAC prompt and talks to it over named pipes.

The pipes have a random name, accept one local client, are open to this user and administrators
only, and are made before the helper starts, so nobody else can own their names. Run under Wine; the
prompt itself is written from Microsoft's documentation.
"""

import ctypes
import os
import secrets
import sys
import threading
from collections.abc import Callable
from ctypes import wintypes
from pathlib import Path
from queue import Empty, SimpleQueue

from app.domain.errors import EnvironmentProblem
from app.power.protocol import MAX_LINE_BYTES

assert sys.platform == "win32"

PIPE_PREFIX = r"\\.\pipe\rigtune-power-"
_PIPE_ACCESS_INBOUND, _PIPE_ACCESS_OUTBOUND = 0x00000001, 0x00000002
_FIRST_PIPE_INSTANCE = 0x00080000
_REJECT_REMOTE_CLIENTS = 0x00000008
_INVALID_HANDLE = ctypes.c_void_p(-1).value
_SDDL_REVISION = 1
_SE_ERR_LIMIT = 32
_CONNECTED = 535

# owner (this user), administrators and the system; nobody else, nothing inherited
_SDDL = "D:P(A;;GA;;;OW)(A;;GA;;;BA)(A;;GA;;;SY)"


class _SecurityAttributes(ctypes.Structure):
    _fields_ = (
        ("length", wintypes.DWORD),
        ("descriptor", ctypes.c_void_p),
        ("inherit", wintypes.BOOL),
    )


def program() -> Path:
    """Return the installed helper: below Program Files, where users cannot write."""
    folder = os.environ.get("ProgramFiles", r"C:\Program Files")  # noqa: SIM112 - its real name
    return Path(folder) / "RigTune" / "power" / "rigtune-power-helper.exe"


class WindowsLink:
    """A helper on the other end of two named pipes.

    Two, because Windows makes a write wait while another thread reads the same handle.
    """

    def __init__(self, start: Callable[[str], None] | None = None) -> None:
        """Make the pipes and start the helper.

        Args:
            start: Starts it, given the pipes' name; ``None`` = elevated, by Windows' own prompt.

        Raises:
            EnvironmentProblem: It is not installed, or the prompt was declined.
        """
        self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        name = PIPE_PREFIX + secrets.token_hex(16)
        self._requests = self._make_pipe(name + "-requests", _PIPE_ACCESS_OUTBOUND)
        self._replies = self._make_pipe(name + "-replies", _PIPE_ACCESS_INBOUND)
        try:
            (start or _start_elevated)(name)
        except BaseException:
            self._close_pipes()
            raise
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._read, name="power-helper", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Send one line; the helper speaks first, so both pipes are connected by then."""
        written = wintypes.DWORD()
        if not self._kernel.WriteFile(self._requests, line, len(line), ctypes.byref(written), None):
            raise ctypes.WinError(ctypes.get_last_error())

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next line, empty at the end, ``None`` when none came in time."""
        try:
            return self._lines.get(timeout=timeout_s)
        except Empty:
            return None

    def close(self) -> int | None:
        """Close the pipes, which makes the helper restore and end."""
        self._close_pipes()
        return None

    def _close_pipes(self) -> None:
        for pipe in (self._requests, self._replies):
            # A thread that waits in the pipe (for a helper that never came) keeps it from closing.
            self._kernel.CancelIoEx(pipe, None)
            self._kernel.DisconnectNamedPipe(pipe)
            self._kernel.CloseHandle(pipe)

    def _make_pipe(self, name: str, direction: int) -> wintypes.HANDLE:
        create = self._kernel.CreateNamedPipeW
        create.restype = wintypes.HANDLE
        attributes = _only_this_user()
        mode, size = direction | _FIRST_PIPE_INSTANCE, MAX_LINE_BYTES
        pipe = create(
            name, mode, _REJECT_REMOTE_CLIENTS, 1, size, size, 0, ctypes.byref(attributes)
        )
        if pipe == _INVALID_HANDLE:
            raise ctypes.WinError(ctypes.get_last_error())
        return wintypes.HANDLE(pipe)

    def _connect(self, pipe: wintypes.HANDLE) -> bool:
        is_connected = bool(self._kernel.ConnectNamedPipe(pipe, None))
        return is_connected or ctypes.get_last_error() == _CONNECTED

    def _read(self) -> None:
        kept = b""
        buffer, n_read = ctypes.create_string_buffer(MAX_LINE_BYTES), wintypes.DWORD()
        if self._connect(self._requests) and self._connect(self._replies):
            while self._kernel.ReadFile(
                self._replies, buffer, MAX_LINE_BYTES, ctypes.byref(n_read), None
            ):
                *lines, kept = (kept + buffer.raw[: n_read.value]).split(b"\n")
                for line in lines:
                    self._lines.put(line + b"\n")
        self._lines.put(b"")


def _only_this_user() -> _SecurityAttributes:
    advapi = ctypes.WinDLL("advapi32", use_last_error=True)
    descriptor = ctypes.c_void_p()
    convert = advapi.ConvertStringSecurityDescriptorToSecurityDescriptorW
    if not convert(_SDDL, _SDDL_REVISION, ctypes.byref(descriptor), None):
        raise ctypes.WinError(ctypes.get_last_error())
    size = ctypes.sizeof(_SecurityAttributes)
    return _SecurityAttributes(size, descriptor, wintypes.BOOL(0))


def _start_elevated(pipe_name: str) -> None:
    path = program()
    if not path.is_file():
        message = "The power helper is not installed."
        raise EnvironmentProblem("helper_not_installed", message, "Pacing works without it.")
    shell = ctypes.WinDLL("shell32")
    started = shell.ShellExecuteW(None, "runas", str(path), pipe_name, str(path.parent), 0)
    if started <= _SE_ERR_LIMIT:
        message = "The power helper was not allowed to start."
        raise EnvironmentProblem("helper_dismissed", message, "Pacing works without it.")
