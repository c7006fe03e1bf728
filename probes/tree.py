"""Reads the kernel's small text files below a root, so that a recording can stand in for them."""

import os
import time
from pathlib import Path
from typing import Protocol

from probes.reading import Absence

MAX_TEXT_BYTES = 256 * 1024


class Tree(Protocol):
    """The part of the file system that probes read. Never raises."""

    def text(self, path: str, limit: int = MAX_TEXT_BYTES) -> str | Absence:
        """Return the stripped text of a file (``limit`` bytes), or why it cannot be had."""
        ...

    def head(self, path: str, n_bytes: int) -> bytes | Absence:
        """Return the first ``n_bytes`` of a binary file, or why they cannot be had."""
        ...

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a folder; none when it is not there."""
        ...

    def target(self, path: str) -> str:
        """Return ``path`` with its links followed, absolute within the tree."""
        ...

    def drm_clients(self) -> tuple[tuple[int, str], ...]:
        """Return the programs that hold a GPU open: process and the kernel's text about it."""
        ...

    def time_ns(self) -> int:
        """Return the time of counters read from the tree; it stands still in a recording."""
        ...


class FileTree:
    """The real thing, below ``root`` (``/``, or a folder shaped like it)."""

    def __init__(self, root: Path = Path("/")) -> None:
        """Read below ``root``."""
        self._root = root

    def text(self, path: str, limit: int = MAX_TEXT_BYTES) -> str | Absence:
        """Return the stripped text of a file (``limit`` bytes), or why it cannot be had."""
        raw = self.head(path, limit)
        if isinstance(raw, Absence):
            return raw
        # Some drivers pad with NUL after the newline.
        return raw.decode("utf-8", "replace").replace("\0", "").strip()

    def head(self, path: str, n_bytes: int) -> bytes | Absence:
        """Return the first ``n_bytes`` of a binary file, or why they cannot be had."""
        try:
            # Unbuffered: sysfs makes the text anew on each read call.
            with (self._root / path.lstrip("/")).open("rb", buffering=0) as file:
                return file.read(n_bytes) or b""
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return Absence.NOT_SUPPORTED
        except PermissionError:
            return Absence.NO_PERMISSION
        except OSError:
            return Absence.NO_DATA

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a folder; none when it is not there."""
        try:
            return tuple(sorted(p.name for p in (self._root / path.lstrip("/")).iterdir()))
        except OSError:
            return ()

    def target(self, path: str) -> str:
        """Return ``path`` with its links followed, absolute within the tree."""
        try:
            real = (self._root / path.lstrip("/")).resolve()
            return "/" + real.relative_to(self._root.resolve()).as_posix()
        except (OSError, ValueError, RuntimeError):
            # A circle of links is a RuntimeError up to Python 3.12.
            return path

    def drm_clients(self) -> tuple[tuple[int, str], ...]:
        """Return this user's programs that hold a GPU open (others' are not readable)."""
        return tuple(
            (int(entry.name), text)
            for entry in _entries(str(self._root / "proc"))
            if entry.name.isdigit()
            for text in self._clients_of(entry.path)
        )

    def _clients_of(self, process: str) -> list[str]:
        texts = []
        for link in _entries(f"{process}/fd"):
            try:
                # Called for every open file of the user: a Path object each would cost most of it.
                if os.readlink(link.path).startswith("/dev/dri/"):  # noqa: PTH115
                    texts.append(Path(process, "fdinfo", link.name).read_text(encoding="ascii"))
            except (OSError, ValueError):
                # Closed meanwhile, or the program ended.
                continue
        return texts

    def time_ns(self) -> int:
        """Return the time of now."""
        return time.perf_counter_ns()


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []
