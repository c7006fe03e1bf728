"""What the last self-test measured, so that the next one can say what a change was worth."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from app.domain.errors import EnvironmentProblem
from app.domain.record import Record
from app.domain.units import format_tok_s
from app.runtime import atomic_write, data_dir

FILE_NAME = "doctor.json"


class DoctorRun(Record, frozen=True, kw_only=True):
    """One self-test's speeds.

    Attributes:
        time_utc: When, RFC 3339.
        model: What was run.
        conditions: Power source and mode, in words.
        decode_tok_s: Device name (``the CPU`` for none) → decode speed.
    """

    time_utc: str
    model: str
    conditions: str
    decode_tok_s: dict[str, float] = {}


def last_run(folder: Path | None = None) -> DoctorRun | None:
    """Return the last self-test; ``None`` where there was none, or it cannot be read."""
    try:
        data = ((folder or data_dir()) / FILE_NAME).read_bytes()
        return msgspec.json.decode(data, type=DoctorRun)
    except (EnvironmentProblem, OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def keep_run(run: DoctorRun, folder: Path | None = None) -> None:
    """Write a self-test's speeds for the next one.

    Raises:
        EnvironmentProblem: The folder cannot be written.
    """
    atomic_write((folder or data_dir()) / FILE_NAME, msgspec.json.encode(run))


def new_run(model: str, conditions: str, speeds: dict[str, float]) -> DoctorRun:
    """Return a self-test of now."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return DoctorRun(time_utc=now, model=model, conditions=conditions, decode_tok_s=speeds)


def compared(before: DoctorRun | None, model: str, where: str, tok_s: float) -> str:
    """Return what to add to a trial's line: the speed before, and the change; empty if none."""
    known = before.decode_tok_s.get(where) if before is not None and before.model == model else None
    if before is None or not known or known <= 0:
        return ""
    change = 100 * (tok_s / known - 1)
    return (
        f"; before: {format_tok_s(known)} ({before.time_utc[:10]}, {before.conditions}), "
        f"{change:+.0f} %"
    )
