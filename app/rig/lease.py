"""One holder of the devices per user: two measurements at once would falsify each other."""

import contextlib
import errno
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from app.domain.errors import EnvironmentProblem
from app.domain.record import Record, encode_json
from app.runtime import runtime_dir, write_problem

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FILE = "devices.lock"
_READ_BYTES = 4096
# Windows locks bytes against reading, so the one that is locked lies beyond the text
_LOCKED_BYTE = 1 << 20
_BUSY = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}


class Holder(Record, frozen=True, kw_only=True):
    """Who holds the devices: process id and what for (``tune``, ``chat``…)."""

    pid: int
    purpose: str


class Lease:
    """Holds the devices while it is entered.

    The operating system drops the lock with the process, however that ends; the text in the
    file only says who it is.
    """

    def __init__(self, purpose: str, path: Path | None = None) -> None:
        """Prepare.

        Args:
            purpose: What for, shown to whoever finds them busy.
            path: Lock file; ``None`` = the user's.
        """
        self._purpose = purpose
        self._path = path
        self._fd: int | None = None

    def __enter__(self) -> Self:
        """Take the devices.

        Raises:
            EnvironmentProblem: Another RigTune holds them (``busy``), or there is no place for
                the lock file.
        """
        path = self._path or runtime_dir() / _FILE
        fd = None
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            _lock(fd)
            os.ftruncate(fd, 0)
            _write(fd, encode_json(Holder(pid=os.getpid(), purpose=self._purpose)))
        except OSError as error:
            holder = _read_holder(fd)
            if fd is not None:
                os.close(fd)
            if fd is not None and error.errno in _BUSY:
                raise _busy(holder) from error
            raise write_problem(error, path) from error
        self._fd = fd
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the devices back."""
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None


def _lock(fd: int) -> None:
    if sys.platform == "win32":
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:  # only one reason, and not every C runtime names it
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    else:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write(fd: int, text: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, text)


def _read_holder(fd: int | None) -> Holder | None:
    if fd is None:
        return None
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        return msgspec.json.decode(os.read(fd, _READ_BYTES), type=Holder)
    except (OSError, msgspec.DecodeError):
        return None


def _busy(holder: Holder | None) -> EnvironmentProblem:
    detail = f" ({holder.purpose}, process {holder.pid})" if holder else ""
    message = f"The devices are in use by another RigTune{detail}."
    return EnvironmentProblem("busy", message, "Wait until it has finished, or end it.")
