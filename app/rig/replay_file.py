"""The replay format ``rigtune-replay/1``: a machine, a model and what was measured on them.

``tune --record`` writes it, ``tune --replay`` searches against it. The whole file is checked
when it is read (``replay_check``), so that a search never trips over a bad point.
"""

import errno
import gzip
import io
import os
import zlib
from pathlib import Path

import msgspec

from app.domain.errors import EnvironmentProblem
from app.domain.outcome import Outcome
from app.domain.record import Record
from app.domain.sweep import SearchDevice, SearchHost, SearchModel
from app.runtime import atomic_write, write_problem

FORMAT = "rigtune-replay/1"
MAX_FILE_BYTES = 256 << 20

SettingValue = int | str | tuple[str, ...]


class ReplayPoint(Record, frozen=True, kw_only=True):
    """One recorded configuration at one depth. Settings it does not name match any value.

    Attributes:
        settings: Settings by name; a subset of the fields of ``Settings``.
        depth: Tokens in the KV cache, ≥ 0.
        outcome: How a trial of it ends.
        prefill_tok_s: True prefill speed, > 0; needed where the outcome has a speed.
        decode_tok_s: True decode speed, > 0; needed where the outcome has a speed.
        device_bytes: Need per device, what a dry run answers. A point whose outcome is
            ``unsupported`` may carry it too: planned, never measured.
        shared_growth_bytes: Growth of shared memory while it runs.
    """

    settings: dict[str, SettingValue]
    depth: int = 0
    outcome: Outcome = Outcome.OK
    prefill_tok_s: float | None = None
    decode_tok_s: float | None = None
    device_bytes: dict[str, int] = {}
    shared_growth_bytes: int = 0


class Replay(Record, frozen=True, kw_only=True):
    """A whole recording.

    Attributes:
        format: ``rigtune-replay/1``.
        model: The model that ran.
        host: The host it ran on; replaces the real one.
        devices: The devices it ran on; replace the real ones.
        noise_frac: Relative standard deviation of one sample, 0–1.
        seed: Seed of that noise.
        load_s: Seconds one load of the weights takes.
        points: What was recorded.
    """

    format: str
    model: SearchModel
    host: SearchHost
    devices: tuple[SearchDevice, ...]
    noise_frac: float = 0.0
    seed: int = 0
    load_s: float = 0.0
    points: tuple[ReplayPoint, ...]


def decode_replay(path: Path) -> Replay:
    """Return what ``path`` holds (JSON, gzip-compressed if it ends in ``.gz``), unchecked.

    Raises:
        EnvironmentProblem: The file is missing, or not of this format.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise bad_replay(path, f"it is larger than {MAX_FILE_BYTES >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        message = f"The replay file {path} cannot be read: {error.strerror or error}."
        raise EnvironmentProblem("replay_unreadable", message) from error
    try:
        text = _unpacked(path, data) if path.suffix == ".gz" else data
        return msgspec.json.decode(text, type=Replay)
    except (
        msgspec.DecodeError, EOFError, OSError, RecursionError, UnicodeDecodeError, zlib.error
    ) as error:  # fmt: skip
        raise bad_replay(path, str(error)) from error


def write_replay(replay: Replay, path: Path) -> None:
    """Write ``replay`` atomically; one line per point so that a person can read it.

    Raises:
        EnvironmentProblem: Disk full, no such folder or no permission.
    """
    head = msgspec.to_builtins(msgspec.structs.replace(replay, points=()))
    del head["points"]
    lines = b",\n".join(msgspec.json.encode(_compact(p)) for p in replay.points)
    text = msgspec.json.encode(head)[:-1] + b',\n"points":[\n' + lines + b"\n]}\n"
    atomic_write(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def check_target(path: Path) -> None:
    """Check that a recording can be written to ``path``, before it costs a search.

    Raises:
        EnvironmentProblem: There is no such folder, or it cannot be written.
    """
    number = 0
    if path.is_dir():
        number = errno.EISDIR
    elif not path.parent.is_dir():
        number = errno.ENOENT
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        number = errno.EACCES
    if number:
        raise write_problem(OSError(number, os.strerror(number)), path)


def _compact(point: ReplayPoint) -> dict[str, object]:
    """Return ``point`` without what is absent."""
    fields: dict[str, object] = msgspec.to_builtins(point)
    return {k: v for k, v in fields.items() if v is not None and v != {}}


def _unpacked(path: Path, data: bytes) -> bytes:
    """Return the text of a compressed recording; a small file may claim any size."""
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        text = file.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise bad_replay(path, f"its content is larger than {MAX_FILE_BYTES >> 20} MiB")
    return text


def bad_replay(path: Path, why: str) -> EnvironmentProblem:
    """Return the error of a file that is not a usable recording."""
    return EnvironmentProblem(
        "replay_invalid",
        f"{path} is not a usable replay file: {why}.",
        "Record one with: rigtune tune MODEL --record FILE",
    )
