"""Bounded access to the bytes of one file.

The file is read in windows instead of being mapped: a file that shrinks while it is read then
ends in an error instead of SIGBUS, and memory stays at one window however long the header is.
"""

import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from app.domain.errors import EnvironmentProblem
from app.domain.units import MIB

WINDOW_BYTES = MIB
MAX_HEADER_BYTES = 64 * MIB
"""The largest real headers (500k words with merges) stay below 25 MiB."""


class Source:
    """One open file with its size and a movable window of its bytes.

    Attributes:
        path: The file.
        name: Its name without folders, for messages.
        size: Bytes, when it was opened.
        window: Bytes from ``base`` on.
        base: Position of the window in the file.
    """

    def __init__(self, path: Path) -> None:
        """Open ``path``.

        Raises:
            EnvironmentProblem: It is missing, not a regular file, unreadable or empty.
        """
        self.path = path
        self.name = display_name(path)
        try:
            self._stat = _regular_file(path)
            self._file = path.open("rb", buffering=0)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        self.size = self._stat.st_size
        self.window = b""
        self.base = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def move_to(self, pos: int, n_bytes: int) -> int:
        """Put the window where it holds ``n_bytes`` from ``pos``; return ``pos`` inside it.

        Raises:
            EnvironmentProblem: The file ends before, or this is beyond any real header.
        """
        end = pos + n_bytes
        offset = pos - self.base
        if offset >= 0 and offset + n_bytes <= len(self.window):
            return offset
        if end > self.size:
            raise self.truncated()
        if end > MAX_HEADER_BYTES:
            raise self.damaged(
                "gguf_header_too_large", f"its header claims more than {MAX_HEADER_BYTES} bytes"
            )
        self.window = self.read_at(pos, max(WINDOW_BYTES, n_bytes))
        self.base = pos
        if len(self.window) < n_bytes:
            raise self.changed()
        return 0

    def read_at(self, pos: int, n_bytes: int) -> bytes:
        """Return up to ``n_bytes`` from ``pos``; fewer only at the end of the file."""
        try:
            self._file.seek(pos)
            return self._file.read(n_bytes) or b""
        except (OSError, OverflowError) as error:
            raise _unreadable(self.path, error) from error

    def check_unchanged(self) -> None:
        """Raise when the file was written to, replaced or cut since it was opened."""
        try:
            now = os.fstat(self._file.fileno())
        except OSError as error:
            raise _unreadable(self.path, error) from error
        before = self._stat
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise self.changed()

    def changed(self) -> EnvironmentProblem:
        """Return the error of a file that is still being written."""
        return EnvironmentProblem(
            "gguf_changed",
            f"{self.name} changed while it was read.",
            "Wait until the download or conversion has finished, then try again.",
        )

    def damaged(self, code: str, what: str) -> EnvironmentProblem:
        """Return the error of a file whose content contradicts the format."""
        return EnvironmentProblem(
            code,
            f"{self.name} is damaged: {what}.",
            "Download or convert the model again; llama.cpp cannot load this file either.",
        )

    def truncated(self) -> EnvironmentProblem:
        """Return the error of a file that ends inside its header."""
        return EnvironmentProblem(
            "gguf_incomplete",
            f"{self.name}: download incomplete: the file ends inside its header, after "
            f"{self.size} bytes.",
            incomplete_hint(self.path),
        )


def display_name(path: Path) -> str:
    """Return the file's name without bytes that cannot be shown or encoded."""
    return _encodable(path.name)


def incomplete_hint(path: Path) -> str:
    """Return what to do about a file that is too short, judged by its name."""
    stem, part, rest = display_name(path).rpartition(".part")
    number, of, count = rest.partition("of")
    if part and of and number.isdigit() and count.isdigit():
        return (
            f"This is part {number} of {count} of a file that was cut for uploading: join the "
            f"parts in order (Linux: cat {stem}.part*of{count} > {stem}; "
            f"Windows: copy /b) and open {stem}."
        )
    return "Resume or repeat the download; if it finished, compare the size with the source's."


def _regular_file(path: Path) -> os.stat_result:
    """Return the status of ``path`` without opening what could block (pipes, devices)."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise EnvironmentProblem(
            "model_is_directory",
            f"{display_name(path) or path} is a folder, not a model file.",
            "Choose the .gguf file inside it.",
        )
    if not stat.S_ISREG(status.st_mode):
        raise EnvironmentProblem(
            "model_not_a_file",
            _what_it_is(path, status.st_mode),
            "Choose a .gguf file on a disk.",
        )
    if status.st_size == 0:
        raise EnvironmentProblem(
            "gguf_empty",
            f"{display_name(path)} is empty (0 bytes).",
            "The download did not start or the disk was full; download it again.",
        )
    return status


def _what_it_is(path: Path, mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return f"{display_name(path)} is a pipe, not a file."
    return f"{display_name(path)} is a device or a socket, not a file."


def _unreadable(path: Path, error: Exception) -> EnvironmentProblem:
    is_nowhere = isinstance(error, OSError) and error.errno in {errno.ENOENT, errno.ELOOP}
    if is_nowhere and path.is_symlink():
        target = _encodable(str(path.readlink()))
        return EnvironmentProblem(
            "model_not_found",
            f"{display_name(path)} is a link to {target}, where there is no file.",
            "Connect the drive or restore the file it points to, or choose another model.",
        )
    if isinstance(error, FileNotFoundError):
        return EnvironmentProblem(
            "model_not_found",
            f"There is no file {_encodable(str(path))}.",
            "Check the path; a link may point to a file that was moved or deleted.",
        )
    if isinstance(error, PermissionError):
        return EnvironmentProblem(
            "model_unreadable",
            f"{display_name(path)} cannot be read: permission denied.",
            "Give your user read access to the file, or copy it to your own folder.",
        )
    return EnvironmentProblem(
        "model_unreadable",
        f"{display_name(path)} cannot be read: {error}.",
        "Check that the disk or network drive is still connected.",
    )


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
