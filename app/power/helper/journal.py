"""What was found before anything was set, on disk before it is set: root's own folder.

Only the account that runs the helper can write here, so what stands in it may be written back.
"""

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import Any

import msgspec

from app.domain.record import Record, encode_json
from app.power.protocol import PCI_ID

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_MAX_BYTES = 4096


class JournalProblem(Exception):
    """The journal cannot be trusted or written; nothing may be set."""


class Entry(Record, frozen=True, kw_only=True):
    """One device that was changed.

    Attributes:
        pci_id: Address.
        identity: Which card it was.
        boot_id: Run of the system; limits do not survive a restart.
        pid: The helper that wrote it.
        old_w: Limit found; ``None`` = the limit was not changed.
        ours_w: What a limit of our making may read as.
        clocks_locked: Whether the clocks were locked.
    """

    pci_id: str
    identity: str
    boot_id: str
    pid: int
    old_w: float | None = None
    ours_w: tuple[float, ...] = ()
    clocks_locked: bool = False


class Journal:
    """The folder with one file per changed device."""

    def __init__(self, folder: Path) -> None:
        """Open it, made if need be.

        Raises:
            JournalProblem: It is a link, or others may write to it.
        """
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.lstat()
        except OSError as error:
            raise JournalProblem(str(error)) from error
        if not stat.S_ISDIR(found.st_mode):
            raise JournalProblem("the journal is no folder")
        if sys.platform != "win32" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
            raise JournalProblem("others may write to the journal's folder")

    def write(self, entry: Entry) -> None:
        """Keep ``entry``, on the disk itself when this returns.

        Raises:
            JournalProblem: It could not be written.
        """
        path = self._path(entry.pci_id)
        temporary = path.with_suffix(".new")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(encode_json(entry))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            self._sync_folder()
        except OSError as error:
            raise JournalProblem(str(error)) from error

    def remove(self, pci_id: str) -> None:
        """Forget a device that is as it was found."""
        with contextlib.suppress(OSError):
            self._path(pci_id).unlink(missing_ok=True)
            self._sync_folder()

    def entries(self) -> tuple[Entry, ...]:
        """Return what is open; a file that cannot be read is set aside."""
        return tuple(
            entry
            for path in sorted(self._folder.glob("*.json"))
            if (entry := _read(path)) is not None
        )

    @contextlib.contextmanager
    def lock(self, pci_id: str) -> Any:
        """Hold the device against other helpers; yields whether it could be had."""
        fd = os.open(self._path(pci_id).with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield _try_lock(fd)
        finally:
            os.close(fd)

    def _path(self, pci_id: str) -> Path:
        if not PCI_ID.match(pci_id):
            raise JournalProblem("not a PCI address")
        return self._folder / f"{pci_id.replace(':', '-')}.json"

    def _sync_folder(self) -> None:
        if sys.platform != "win32":
            fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read(path: Path) -> Entry | None:
    try:
        with path.open("rb") as file:
            entry = msgspec.json.decode(file.read(_MAX_BYTES), type=Entry)
        if PCI_ID.match(entry.pci_id):
            return entry
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        pass
    with contextlib.suppress(OSError):
        path.replace(path.with_suffix(".bad"))
    return None
