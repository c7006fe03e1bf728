"""The log of every change with what was read before and after, and what is still to be put back."""

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil

from app.domain.record import Record, encode_json
from app.domain.sweep import Reason
from app.runtime import atomic_write, data_dir

LOG_BYTES_MAX = 1 << 20
HISTORY_MAX = 200
_TAIL_BYTES = 1 << 17


class Change(Record, frozen=True, kw_only=True):
    """One change of hardware or pace.

    Attributes:
        at_utc: RFC 3339 time.
        key: Device.
        knob: What was turned.
        requested: Watts, MHz or duty asked for; ``None`` = put back.
        before: Read before, where it can be read.
        after: Read after.
        result: ``applied``, ``restored``, ``unchanged``, ``left`` or the code of a refusal.
        reason: Why.
    """

    at_utc: str
    key: str
    knob: str
    requested: float | None = None
    before: float | None = None
    after: float | None = None
    result: str
    reason: Reason


class Pending(Record, frozen=True, kw_only=True):
    """A device that was being controlled when RigTune last ran.

    Attributes:
        key: Device.
        pci_id: Its address.
        boot_id: Run of the system; limits do not survive a restart.
        since_utc: Since when.
        pid: The RigTune that controlled it; while that one lives nothing is left behind.
        started_s: When that process began, so that a number used again is not taken for it.
    """

    key: str
    pci_id: str
    boot_id: str
    since_utc: str
    pid: int = 0
    started_s: float = 0.0


class ChangeLog:
    """Appends to ``power.jsonl``; one file beside it per device that is being controlled."""

    def __init__(self, folder: Path | None = None) -> None:
        """Write into ``folder``; ``None`` = the user's data folder."""
        self._folder = folder or data_dir()

    @property
    def folder(self) -> Path:
        """Where it writes."""
        return self._folder

    def add(self, change: Change) -> None:
        """Keep a change; a log that cannot be written stops nothing."""
        path = self._folder / "power.jsonl"
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size > LOG_BYTES_MAX:
                path.replace(path.with_suffix(".old.jsonl"))
            with path.open("ab") as file:
                file.write(encode_json(change) + b"\n")

    def history(self, n: int = HISTORY_MAX) -> tuple[Change, ...]:
        """Return the newest ``n`` changes, also of earlier runs, oldest first."""
        found: list[Change] = []
        with contextlib.suppress(OSError), (self._folder / "power.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            for line in file:
                # The first line may be cut, the last one half written.
                with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                    found.append(msgspec.json.decode(line, type=Change))
        return tuple(found[-n:])

    def mark(self, key: str, pci_id: str) -> None:
        """Note that a device is being controlled, before anything is set.

        Raises:
            EnvironmentProblem: It cannot be noted; then nothing may be set.
        """
        pending = Pending(
            key=key,
            pci_id=pci_id,
            boot_id=boot_id(),
            since_utc=now_utc(),
            pid=os.getpid(),
            started_s=psutil.Process().create_time(),
        )
        atomic_write(self._path(pci_id), encode_json(pending))

    def unmark(self, pci_id: str) -> None:
        """Note that a device is as it was found."""
        with contextlib.suppress(OSError):
            self._path(pci_id).unlink(missing_ok=True)

    def pending(self) -> tuple[Pending, ...]:
        """Return what earlier runs left unfinished; a restart of the machine finishes it.

        Putting it back needs the helper, so the password is asked for again.
        """
        found = []
        for path in sorted(self._folder.glob("power-pending-*.json")):
            pending = _read(path)
            if pending is None or pending.boot_id != boot_id():
                with contextlib.suppress(OSError):
                    path.unlink()
            elif not _lives(pending):
                found.append(pending)
        return tuple(found)

    def _path(self, pci_id: str) -> Path:
        return self._folder / f"power-pending-{pci_id.replace(':', '-')}.json"


def _read(path: Path) -> Pending | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Pending)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _lives(pending: Pending) -> bool:
    """Whether the RigTune that wrote it still runs (this one does not count as another)."""
    if pending.pid == os.getpid():
        return False
    try:
        return abs(psutil.Process(pending.pid).create_time() - pending.started_s) < 1.0
    except (psutil.Error, ValueError):
        return False


def boot_id() -> str:
    """Return the id of this run of the system; empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def now_utc() -> str:
    """Return the time as RFC 3339, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
