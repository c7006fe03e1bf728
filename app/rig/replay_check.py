"""What makes a recording unusable: every value is looked at before a search begins."""

import math
from pathlib import Path

from app.domain.errors import UsageProblem
from app.domain.machine import GpuKind
from app.domain.outcome import OUTCOMES, Outcome
from app.domain.overrides import read_overrides
from app.domain.settings import KV_TYPES, MAX_N_CTX, SPLIT, FlashAttn, LoadMode, SplitMode, Switch
from app.domain.sweep import SearchDevice
from app.rig.replay_file import FORMAT, Replay, ReplayPoint, bad_replay, decode_replay

MAX_LAYERS = 512
"""``LLAMA_MAX_LAYERS``."""
MAX_POINTS = 1_000_000
MAX_DEVICES = 64
MAX_BYTES = 1 << 50
MAX_TOK_S = 1e9
MAX_LOAD_S = 86_400.0
MAX_CORES = 1 << 16
MAX_EXPERTS = 1 << 16
_CHOICES: dict[str, frozenset[str]] = {
    "flash_attn": frozenset(FlashAttn),
    "type_k": frozenset(KV_TYPES),
    "type_v": frozenset(KV_TYPES),
    "load_mode": frozenset(LoadMode),
    "split_mode": frozenset(SplitMode),
    "offload_kqv": frozenset(Switch),
    "op_offload": frozenset(Switch),
}
# smallest and largest value; layers are bounded by the model besides
_COUNTS: dict[str, tuple[int, int]] = {
    "n_gpu_layers": (0, MAX_LAYERS + 1),
    "n_cpu_moe": (0, MAX_LAYERS),
    "n_ctx": (1, MAX_N_CTX),
    "n_batch": (1, MAX_N_CTX),
    "n_ubatch": (1, MAX_N_CTX),
    "n_threads": (0, MAX_CORES),
    "n_threads_batch": (0, MAX_CORES),
    "n_seq_max": (1, MAX_CORES),
}


def read_replay(path: Path) -> Replay:
    """Return the recording in ``path`` (JSON, gzip-compressed if it ends in ``.gz``).

    Raises:
        EnvironmentProblem: The file is missing, not of this format, or contradicts itself.
    """
    replay = decode_replay(path)
    problem = check_replay(replay)
    if problem:
        raise bad_replay(path, problem)
    return replay


def check_replay(replay: Replay) -> str | None:
    """Return what makes ``replay`` unusable, or ``None``."""
    if replay.format != FORMAT:
        return f"its format is {replay.format!r}, expected {FORMAT!r}"
    if not replay.points:
        return "it holds no points"
    if len(replay.points) > MAX_POINTS:
        return f"it holds more than {MAX_POINTS} points"
    if not 0 <= replay.noise_frac < 1:
        return f"noise_frac {replay.noise_frac} is not in 0…1"
    if not 0 <= replay.load_s <= MAX_LOAD_S:
        return f"load_s {replay.load_s} is not a duration"
    problem = _check_host_and_model(replay) or _check_devices(replay.devices)
    return problem or _check_points(replay)


def _check_host_and_model(replay: Replay) -> str | None:
    host, model = replay.host, replay.model
    if not (1 <= host.cores_physical <= MAX_CORES and 1 <= host.cores_logical <= MAX_CORES):
        return f"the host has {host.cores_physical} cores ({host.cores_logical} logical ones)"
    if not 1 <= host.ram_bytes <= MAX_BYTES:
        return f"the host has {host.ram_bytes} bytes of memory"
    if not 1 <= model.n_layer <= MAX_LAYERS:
        return f"the model has {model.n_layer} layers, not 1 to {MAX_LAYERS}"
    if not (0 <= model.file_bytes <= MAX_BYTES and 0 <= model.n_expert <= MAX_EXPERTS):
        return "the model's size or number of experts is impossible"
    if model.n_ctx_train is not None and not 1 <= model.n_ctx_train <= MAX_N_CTX:
        return f"n_ctx_train {model.n_ctx_train} is not a context"
    return None


def _check_devices(devices: tuple[SearchDevice, ...]) -> str | None:
    if len(devices) > MAX_DEVICES:
        return f"it has {len(devices)} devices, more than {MAX_DEVICES}"
    ids = [d.id for d in devices]
    if len(set(ids)) != len(ids) or not all(ids):
        return "two devices share an id, or one has none"
    for device in devices:
        if device.kind not in set(GpuKind):
            return f"device {device.id!r} is of unknown kind {device.kind!r}"
        if not 0 < device.total_bytes <= MAX_BYTES:
            return f"device {device.id!r} has {device.total_bytes} bytes of memory"
        if not 0 <= device.free_bytes <= device.total_bytes:
            return f"device {device.id!r} has {device.free_bytes} bytes free of its memory"
    return None


def _check_points(replay: Replay) -> str | None:
    known = frozenset(d.id for d in replay.devices)
    seen: dict[tuple[object, ...], int] = {}
    for index, point in enumerate(replay.points):
        problem = _check_point(point, known, replay.model.n_layer)
        if problem:
            return f"point {index}: {problem}"
        key = (*sorted(point.settings.items()), point.depth)
        if point.outcome is Outcome.UNSUPPORTED:
            continue  # planned, never measured: what was measured counts
        first = seen.setdefault(key, index)
        # measured twice is no harm (the later point counts); ended in two ways is
        if replay.points[first].outcome is not point.outcome:
            return f"points {first} and {index} are the same configuration and end differently"
    return None


def _check_point(point: ReplayPoint, devices: frozenset[str], n_layer: int) -> str | None:
    for name, value in point.settings.items():
        problem = _check_setting(name, value, devices, n_layer)
        if problem:
            return problem
    if not 0 <= point.depth <= MAX_N_CTX:
        return f"depth {point.depth} is not a number of tokens"
    unknown = sorted(set(point.device_bytes) - devices)
    if unknown:
        return f"unknown device {unknown[0]!r}"
    sizes = (*point.device_bytes.values(), point.shared_growth_bytes)
    if any(not 0 <= n <= MAX_BYTES for n in sizes):
        return "device_bytes or shared_growth_bytes is no size"
    for name in ("prefill_tok_s", "decode_tok_s"):
        speed = getattr(point, name)
        is_speed = speed is not None and math.isfinite(speed) and 0 < speed <= MAX_TOK_S
        if not is_speed and (speed is not None or OUTCOMES[point.outcome].has_speed):
            return f"{name} = {speed} is not a speed"
    return None


def _check_setting(name: str, value: object, devices: frozenset[str], n_layer: int) -> str | None:
    if name in _CHOICES:
        fits = isinstance(value, str) and value in _CHOICES[name]
        return None if fits else f"{name} = {value!r} is not one of its choices"
    if name == "devices":
        fits = isinstance(value, tuple) and devices.issuperset(value)
        return None if fits else f"devices = {value!r} names devices that are not there"
    if name == "tensor_split":
        fits = isinstance(value, str) and (not value or SPLIT.fullmatch(value) is not None)
        return None if fits else f"tensor_split = {value!r} is not a list like 3,1"
    if name == "override_tensor":
        return _check_overrides(value)
    if name not in _COUNTS:
        return f"unknown setting {name!r}"
    low, high = _COUNTS[name]
    high = {"n_gpu_layers": n_layer + 1, "n_cpu_moe": n_layer}.get(name, high)
    if not isinstance(value, int) or not low <= value <= high:
        return f"{name} = {value!r} is not a count from {low} to {high}"
    return None


def _check_overrides(value: object) -> str | None:
    if not isinstance(value, str):
        return f"override_tensor = {value!r} is no text"
    try:
        read_overrides(value)
    except UsageProblem as problem:
        return problem.info.message
    return None
