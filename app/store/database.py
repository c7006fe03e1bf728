"""One SQLite file: opening, versions, transactions, and errors a user can act on."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from app import runtime
from app.domain.errors import EnvironmentProblem
from app.domain.record import encode_json
from app.domain.units import NS_PER_S
from app.store import schema
from app.store.problems import BUSY, broken, newer, problem

FILE_NAME = "rigtune.db"
BUSY_TIMEOUT_S = 10.0

T = TypeVar("T")


class Database:
    """The open file. Any thread may use it: each has a connection of its own.

    Attributes:
        path: The file.
        read_only: Whether a newer RigTune wrote it, so that this one must not.
        notices: What the user should know about how it was opened.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file at ``path``; prefer ``Store.open``.

        Raises:
            EnvironmentProblem: It cannot be opened or written.
        """
        self.path = path
        self.read_only = False
        self.notices: tuple[str, ...] = ()
        self._connections: dict[threading.Thread, sqlite3.Connection] = {}
        self._lock = threading.Lock()
        try:
            self._prepare()
        except EnvironmentProblem as found:
            if found.info.code != "database_broken":
                raise
            self._set_aside()
            self._prepare()

    @classmethod
    def open(cls, path: Path | None = None) -> Self:
        """Open the user's database, or the one at ``path``.

        A broken file is renamed, named in ``notices`` and replaced by an empty one. A file of a
        newer major version is opened for reading only.

        Raises:
            EnvironmentProblem: It cannot be opened or written.
        """
        return cls(runtime.data_dir() / FILE_NAME if path is None else path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of all threads; no thread may use the store any more."""
        with self._lock:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction; on return it is on the disk, on an exception nothing changed."""
        if self.read_only:
            hint = "Update RigTune, or set RIGTUNE_HOME to another folder."
            raise EnvironmentProblem("database_newer", newer(self.path), hint)
        with self._errors():
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        with self._errors():
            return self._connection().execute(sql, values).fetchall()

    def _connection(self) -> sqlite3.Connection:
        thread = threading.current_thread()
        with self._lock:
            if connection := self._connections.get(thread):
                return connection
            for other in [t for t in self._connections if not t.is_alive()]:
                self._connections.pop(other).close()
            connection = _connect(self.path)
            self._connections[thread] = connection
            return connection

    def _prepare(self) -> None:
        with self._errors():
            connection = self._connection()
            version = _version(connection)
            if _is_newer(version):
                self.read_only = True
                self.notices = (newer(self.path),)
                return
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise broken(self.path)
            if version < schema.VERSION:
                self._upgrade()

    def _upgrade(self) -> None:
        with self._write() as connection:
            # another process may have done it while this one waited
            version = _version(connection)
            steps = {0: (schema.VERSION, schema.CREATE), **schema.UPGRADES}
            while version < schema.VERSION:
                version, statements = steps[version]
                for statement in statements:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version}")

    def _set_aside(self) -> None:
        self.close()
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        aside = self.path.with_name(f"{self.path.name}.broken-{stamp}")
        try:
            for suffix in ("", "-wal", "-shm"):
                part = self.path.with_name(self.path.name + suffix)
                if part.exists():
                    part.rename(aside.with_name(aside.name + suffix))
        except OSError as error:
            raise runtime.write_problem(error, self.path) from error
        self.notices = (f"The database was damaged and is now kept as {aside}; a new one began.",)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            known = problem(error, self.path)
            if known is None:
                raise
            raise known from error


def now_utc() -> str:
    """Return the time of now as RFC 3339 text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def to_text(value: object) -> str:
    """Return ``value`` as JSON text for a column."""
    return encode_json(value).decode()


def from_text(text: str, kind: type[T], path: Path) -> T:
    """Return the record in a column of the file ``path``.

    Raises:
        EnvironmentProblem: The text is not such a record.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise broken(path) from error


def _connect(path: Path) -> sqlite3.Connection:
    # any thread may close a connection, only its own uses it
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        if _is_newer(_version(connection)):
            connection.execute("PRAGMA query_only = ON")
            return connection
        _use_wal(connection)
        # a stored trial must survive a power cut too
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, which stays in the file.

    While two programs create the file at once, SQLite refuses one of them without waiting.
    """
    deadline_ns = time.perf_counter_ns() + round(BUSY_TIMEOUT_S * NS_PER_S)
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in BUSY or time.perf_counter_ns() > deadline_ns:
                raise
            time.sleep(0.01)
        else:
            return


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _is_newer(version: int) -> bool:
    return version >> 16 > schema.MAJOR
