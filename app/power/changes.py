"""The log of every change with what was read before and after, and what is still to be put back."""

import contextlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from app.domain.record import Record, encode_json
from app.domain.sweep import Reason
from app.runtime import atomic_write, data_dir

LOG_BYTES_MAX = 1 << 20
RECENT_MAX = 200


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
    """A device that was being controlled when RigTune last ran."""

    key: str
    pci_id: str
    boot_id: str
    since_utc: str


class ChangeLog:
    """Appends to ``power.jsonl``; the newest changes are also kept in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        """Write into ``folder``; ``None`` = the user's data folder."""
        self._folder = folder or data_dir()
        self._recent: tuple[Change, ...] = ()

    @property
    def recent(self) -> tuple[Change, ...]:
        """The changes of this run, oldest first."""
        return self._recent

    def add(self, change: Change) -> None:
        """Keep a change; a log that cannot be written stops nothing."""
        self._recent = (*self._recent, change)[-RECENT_MAX:]
        path = self._folder / "power.jsonl"
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size > LOG_BYTES_MAX:
                path.replace(path.with_suffix(".old.jsonl"))
            with path.open("ab") as file:
                file.write(encode_json(change) + b"\n")

    def mark(self, key: str, pci_id: str) -> None:
        """Note that a device is being controlled, before anything is set.

        Raises:
            EnvironmentProblem: It cannot be noted; then nothing may be set.
        """
        pending = Pending(key=key, pci_id=pci_id, boot_id=boot_id(), since_utc=now_utc())
        atomic_write(self._folder / "power-pending.json", encode_json(pending))

    def unmark(self) -> None:
        """Note that everything is as it was found."""
        with contextlib.suppress(OSError):
            (self._folder / "power-pending.json").unlink(missing_ok=True)

    def pending(self) -> Pending | None:
        """Return what an earlier run left unfinished; a restart of the machine finishes it.

        Putting it back needs the helper, so the password is asked for again.
        """
        path = self._folder / "power-pending.json"
        try:
            pending = msgspec.json.decode(path.read_bytes(), type=Pending)
        except (OSError, msgspec.DecodeError):
            return None
        if pending.boot_id == boot_id():
            return pending
        self.unmark()
        return None


def boot_id() -> str:
    """Return the id of this run of the system; empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def now_utc() -> str:
    """Return the time as RFC 3339, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
