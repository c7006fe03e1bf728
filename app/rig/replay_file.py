"""The replay format ``rigtune-replay/1``: a machine, a model and what was measured on them.

``tune --record`` writes it, ``tune --replay`` searches against it. The whole file is checked
when it is read, so that a search never trips over a bad point in the middle.
"""

import errno
import gzip
import math
import os
import zlib
from pathlib import Path

import msgspec

from app.domain.errors import EnvironmentProblem
from app.domain.outcome import OUTCOMES, Outcome
from app.domain.record import Record
from app.domain.settings import SETTINGS
from app.domain.sweep import SearchDevice, SearchHost, SearchModel
from app.runtime import atomic_write, write_problem

FORMAT = "rigtune-replay/1"
MAX_FILE_BYTES = 256 << 20
MAX_LAYERS = 512  # llama.cpp's own limit

SettingValue = int | str | tuple[str, ...]

_INTEGER_SETTINGS = frozenset(s.name for s in SETTINGS if not s.choices and s.name != "devices")


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


def read_replay(path: Path) -> Replay:
    """Return the recording in ``path`` (JSON, gzip-compressed if it ends in ``.gz``).

    Raises:
        EnvironmentProblem: The file is missing, not of this format, or contradicts itself.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise _bad(path, f"it is larger than {MAX_FILE_BYTES >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        message = f"The replay file {path} cannot be read: {error.strerror or error}."
        raise EnvironmentProblem("replay_unreadable", message) from error
    try:
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        replay = msgspec.json.decode(text, type=Replay)
    except (msgspec.DecodeError, EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise _bad(path, str(error)) from error
    problem = check_replay(replay)
    if problem:
        raise _bad(path, problem)
    return replay


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


def check_replay(replay: Replay) -> str | None:
    """Return what makes ``replay`` unusable, or ``None``."""
    if replay.format != FORMAT:
        return f"its format is {replay.format!r}, expected {FORMAT!r}"
    if not replay.points:
        return "it holds no points"
    if not 0 <= replay.noise_frac < 1:
        return f"noise_frac {replay.noise_frac} is not in 0…1"
    if not (math.isfinite(replay.load_s) and replay.load_s >= 0):
        return f"load_s {replay.load_s} is not a duration"
    problem = _check_machine(replay)
    if problem:
        return problem
    known = {d.id for d in replay.devices}
    for index, point in enumerate(replay.points):
        problem = _check_point(point, known)
        if problem:
            return f"point {index}: {problem}"
    return None


def _check_machine(replay: Replay) -> str | None:
    ids = [d.id for d in replay.devices]
    if len(set(ids)) != len(ids):
        return "two devices share an id"
    if any(d.total_bytes <= 0 or d.free_bytes < 0 for d in replay.devices):
        return "a device has no memory"
    host, model = replay.host, replay.model
    if min(host.cores_physical, host.cores_logical, host.ram_bytes) < 1:
        return "the host has no cores or no memory"
    if model.n_layer < 1 or model.file_bytes < 0 or model.n_expert < 0:
        return "the model has no layers or a negative size"
    if model.n_layer > MAX_LAYERS:
        return f"the model has {model.n_layer} layers, more than {MAX_LAYERS}"
    if model.n_ctx_train is not None and model.n_ctx_train < 1:
        return f"n_ctx_train {model.n_ctx_train} is not a context"
    return None


def _check_point(point: ReplayPoint, devices: set[str]) -> str | None:
    names = {s.name for s in SETTINGS}
    unknown = sorted(set(point.settings) - names)
    if unknown:
        return f"unknown setting {unknown[0]!r}"
    for name, value in point.settings.items():
        if name in _INTEGER_SETTINGS and (not isinstance(value, int) or value < 0):
            return f"{name} = {value!r} is not a count"
    if point.depth < 0:
        return f"depth {point.depth} is negative"
    unknown = sorted(set(point.device_bytes) - devices)
    if unknown:
        return f"unknown device {unknown[0]!r}"
    if min(point.device_bytes.values(), default=0) < 0:
        return "device_bytes is negative"
    if OUTCOMES[point.outcome].has_speed:
        for name in ("prefill_tok_s", "decode_tok_s"):
            speed = getattr(point, name)
            if speed is None or not (math.isfinite(speed) and speed > 0):
                return f"{name} = {speed} is not a speed"
    return None


def _compact(point: ReplayPoint) -> dict[str, object]:
    """Return ``point`` without what is absent."""
    fields: dict[str, object] = msgspec.to_builtins(point)
    return {k: v for k, v in fields.items() if v is not None and v != {}}


def _bad(path: Path, why: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        "replay_invalid",
        f"{path} is not a usable replay file: {why}.",
        "Record one with: rigtune tune MODEL --record FILE",
    )
