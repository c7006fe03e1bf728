"""Errors of SQLite that the user can act on, as sentences."""

import sqlite3
from pathlib import Path

from app.domain.errors import EnvironmentProblem

_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOT_WRITABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
}


def problem(error: sqlite3.Error, path: Path) -> EnvironmentProblem | None:
    """Return the sentence for an error of the environment; ``None`` when the fault is ours."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _BROKEN:
        return broken(path)
    if code == sqlite3.SQLITE_FULL:
        hint = "Free some space, or set RIGTUNE_HOME to a folder on another disk."
        return EnvironmentProblem("disk_full", f"The disk is full: {path} was not written.", hint)
    if code in BUSY:
        hint = "Wait for the other RigTune, or close it."
        message = f"Another program keeps {path} busy."
        return EnvironmentProblem("database_busy", message, hint)
    if code in _NOT_WRITABLE:
        hint = "Check disk and permissions, or set RIGTUNE_HOME to a folder that can be written."
        return EnvironmentProblem("not_writable", f"{path} cannot be written: {error}.", hint)
    return None


def broken(path: Path) -> EnvironmentProblem:
    """Return the problem of a file whose content is damaged."""
    hint = "Restart RigTune: it sets the file aside and begins a new one."
    return EnvironmentProblem("database_broken", f"The database {path} is damaged.", hint)


def newer(path: Path) -> str:
    """Return the sentence for a file that a newer major version wrote."""
    return f"A newer RigTune wrote {path}; it is open for reading only."
