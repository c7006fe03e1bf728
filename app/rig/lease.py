"""Who uses the devices: one measurement alone, or up to two models where both fit."""

import contextlib
import errno
import os
import sys
from collections.abc import Callable
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
_SECOND = "devices-2.lock"
_READ_BYTES = 4096
# Windows locks bytes against reading, so the one that is locked lies beyond the text
_LOCKED_BYTE = 1 << 20
_BUSY = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}


class Holder(Record, frozen=True, kw_only=True):
    """Who holds the devices: process id and what for (``tune``, ``chat``…); 0 = not known."""

    pid: int
    purpose: str

    @property
    def words(self) -> str:
        """How it is named to the user."""
        if self.pid == os.getpid():
            return f"this RigTune itself ({self.purpose})"
        detail = f" ({self.purpose}, process {self.pid})" if self.pid else ""
        return f"another RigTune{detail}"


_UNKNOWN = Holder(pid=0, purpose="")


Room = Callable[[Holder], None]
"""Raises when there is no room beside a holder."""


class Lease:
    """Holds the devices while it is entered.

    There are two places, a lock file each. A measurement takes both: two at once would falsify
    each other. A model that only answers takes one, and the second only where ``room`` agrees.
    The operating system drops the locks with the process, however that ends; the text in the
    files only says who it is.

    Attributes:
        beside: Who used the devices already when they were taken; ``None`` = nobody.
    """

    def __init__(self, purpose: str, path: Path | None = None, *, room: Room | None = None) -> None:
        """Prepare.

        Args:
            purpose: What for, shown to whoever finds them busy.
            path: First lock file, the other lies beside it; ``None`` = the user's.
            room: Agrees to share them with another; ``None`` = they are needed alone.
        """
        self._purpose = purpose
        self._path = path
        self._room = room
        self._fds: list[int] = []
        self.beside: Holder | None = None

    def __enter__(self) -> Self:
        """Take the devices.

        Raises:
            EnvironmentProblem: Another RigTune holds them (``busy``) or leaves no room, or there
                is no place for the lock file.
        """
        path = self._path or runtime_dir() / _FILE
        self.beside = None
        is_taken = False
        try:
            self._take(path, path.with_name(_SECOND))
            is_taken = True
        finally:
            if not is_taken:
                self._give_back()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the devices back."""
        self._give_back()

    def _take(self, *places: Path) -> None:
        found = [self._lock(place) for place in places]
        others = [holder for holder in found if holder is not None]
        if others and (self._room is None or not self._fds):
            raise _busy(others[0])
        if self._room is None:
            return
        if others:
            self.beside = others[0]
            self._room(self.beside)
        for fd in self._fds[1:]:
            _release(fd)  # the other place is for whoever comes next
        del self._fds[1:]

    def _lock(self, path: Path) -> Holder | None:
        """Take one place, or return who has it."""
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
                return holder or _UNKNOWN
            raise write_problem(error, path) from error
        self._fds.append(fd)
        return None

    def _give_back(self) -> None:
        for fd in self._fds:
            _release(fd)
        self._fds.clear()


def _release(fd: int) -> None:
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
    os.close(fd)


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


def _busy(holder: Holder) -> EnvironmentProblem:
    message = f"The devices are in use by {holder.words}."
    return EnvironmentProblem("busy", message, "Wait until it has finished, or end it.")
