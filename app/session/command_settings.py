"""What a llama.cpp command line comes to on one model and machine, in our settings.

Defaults are those of ``llama-server`` (common/common.h, tools/server/server.cpp): every layer
that fits with 1,024 MiB to spare, four slots that share one cache, the context of the training.
"""

import math
from collections.abc import Callable

import msgspec

from app.domain.errors import UsageProblem
from app.domain.memory import MemoryEstimate
from app.domain.overrides import (
    CPU_BUFFER,
    OverrideRule,
    check_overrides,
    override_for,
    read_overrides,
)
from app.domain.settings import FlashAttn, LoadMode, Settings, SplitMode, Switch
from app.domain.sweep import Reason, SearchSpace
from app.domain.units import MIB
from app.export.command import Command
from app.memory.inverse import largest
from app.session.command_devices import sharing
from app.session.command_values import AUTO, INFO, bad, choice, note, number

Fits = Callable[[Settings], MemoryEstimate]

FIT_MARGIN_BYTES = 1024 * MIB
FIT_MIN_CTX = 4096
_CTX_STEP = 256
_LOAD_MODES = {"mmap": LoadMode.MMAP, "none": LoadMode.NONE, "auto": LoadMode.MMAP}
_NEAREST_MODE = {
    "mlock": LoadMode.MMAP,
    "mmap_mlock": LoadMode.MMAP,
    "mmap+mlock": LoadMode.MMAP,
    "direct_io": LoadMode.NONE,
    "dio": LoadMode.NONE,
}
# what our settings have no word for, with the value that changes nothing
_UNREPRESENTED = {
    "repack": "on",
    "swa_full": "off",
    "draft_model": "",
    "spec_type": "none",
    "mmproj": "",
    "lora": "",
    "numa": "",
    "prio": "0",
    "poll": "50",
    "cpu_mask": "",
    "cpu_range": "",
    "cpu_strict": "0",
    "override_kv": "",
    "rope_scaling": "",
    "fit_target": "1024",
    "fit_ctx": "4096",
    "kv_unified_per_slot": "0",
}
_EXPERTS = ("up", "down", "gate", "gate_up")
_OTHERS = (
    "attn_norm", "attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_norm",
    "ffn_up", "ffn_down", "ffn_gate", "ffn_gate_inp", "ffn_up_shexp", "ffn_down_shexp",
    "ffn_gate_shexp", "ffn_gate_inp_shexp", "ssm_in", "ssm_out",
)  # fmt: skip


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """A command line in our settings, and what about it is different or left out."""

    settings: Settings
    notes: tuple[Reason, ...]


def resolve(command: Command, space: SearchSpace, fits: Fits, n_seq: int) -> Resolved:
    """Return the settings ``command`` runs with.

    Args:
        command: The command line.
        space: Model, host and devices.
        fits: The dry run, for what llama.cpp fits by itself.
        n_seq: Sequences of the workload to be measured.

    Raises:
        UsageProblem: A value is impossible.
    """
    options, notes = command.options, _left_out(command)
    devices, split_mode, tensor_split = sharing(options, space, notes)
    n_seq_max, slots = _slots(command, n_seq)
    threads = _threads(options, space)
    n_batch = number(options, "n_batch", 2048, low=1)
    n_cpu_moe, override_tensor = _tensors(options, space, devices, notes)
    settings = Settings(
        n_gpu_layers=0,
        n_cpu_moe=n_cpu_moe,
        override_tensor=override_tensor,
        n_ctx=_context(options, space),
        n_batch=n_batch,
        n_ubatch=min(number(options, "n_ubatch", 512, low=1), n_batch),
        flash_attn=FlashAttn(options.get("flash_attn", "auto")),
        type_k=choice(options, "type_k", "f16"),
        type_v=choice(options, "type_v", "f16"),
        load_mode=_load_mode(options, notes),
        devices=devices,
        n_seq_max=n_seq_max,
        n_threads=threads["n_threads"],
        n_threads_batch=threads["n_threads_batch"],
        split_mode=split_mode,
        tensor_split=tensor_split,
        offload_kqv=Switch(options.get("offload_kqv", "on")),
        op_offload=Switch(options.get("op_offload", "on")),
    )
    if slots:
        notes.append(note("slots_unified", slots=slots, measured=n_seq_max))
    settings = _placed(settings, command, space, fits, notes)
    _check_pair(settings)
    return Resolved(settings=settings, notes=tuple(notes))


def _left_out(command: Command) -> list[Reason]:
    """Return a note per thing that matters and cannot be measured here."""
    notes = [
        note("not_represented", option=name, value=value)
        for name, value in command.options.items()
        if name in _UNREPRESENTED and value != _UNREPRESENTED[name]
    ]
    notes += [note("variable", name=name, value=value) for name, value in command.variables.items()]
    return notes


def _slots(command: Command, n_seq: int) -> tuple[int, int]:
    """Return sequences to create, and how many slots share one cache (0 = none do)."""
    asked = command.options.get("n_seq_max", "auto")
    is_auto = asked in AUTO
    slots = 4 if is_auto else number(command.options, "n_seq_max", 1, low=1)
    if "server" not in command.program and is_auto:
        return n_seq, 0
    if is_auto or command.options.get("kv_unified") == "on":
        return min(slots, n_seq), slots if slots > 1 else 0
    return slots, 0


def _threads(options: dict[str, str], space: SearchSpace) -> dict[str, int]:
    cores = space.host.cores_physical
    n_threads = number(options, "n_threads", cores)
    n_threads = n_threads if n_threads > 0 else cores
    n_batch = number(options, "n_threads_batch", n_threads)
    found = {"n_threads": n_threads, "n_threads_batch": n_batch if n_batch > 0 else n_threads}
    for name, value in found.items():
        high = INFO[name].high
        if high is not None and value > high:
            raise bad(name, str(value), f"Allowed: 1 to {high}.")
    return found


def _context(options: dict[str, str], space: SearchSpace) -> int:
    n_ctx = number(options, "n_ctx", 0, low=0) or space.model.n_ctx_train or FIT_MIN_CTX
    high = INFO["n_ctx"].high
    if high is not None and n_ctx > high:
        raise bad("n_ctx", str(n_ctx), f"Allowed: 0 to {high}.")
    return max(_CTX_STEP, -(-n_ctx // _CTX_STEP) * _CTX_STEP)


def _load_mode(options: dict[str, str], notes: list[Reason]) -> LoadMode:
    asked = options.get("load_mode", "auto")
    if asked in _LOAD_MODES:
        return _LOAD_MODES[asked]
    nearest = _NEAREST_MODE.get(asked)
    if nearest is None:
        raise bad("load_mode", asked, f"Known: {', '.join([*_LOAD_MODES, *_NEAREST_MODE])}.")
    notes.append(note("load_mode_other", asked=asked, measured=nearest.value))
    return nearest


def _tensors(
    options: dict[str, str], space: SearchSpace, devices: tuple[str, ...], notes: list[Reason]
) -> tuple[int, str]:
    """Return ``n_cpu_moe`` and ``override_tensor``.

    Raises:
        UsageProblem: A pattern is not one, or has no buffer behind it.
    """
    n_layer, has_experts = space.model.n_layer, space.model.n_expert > 0
    asked = options.get("n_cpu_moe")
    count = n_layer if asked == "all" else min(number(options, "n_cpu_moe", 0, low=0), n_layer)
    text = _rules(options, count, n_layer)
    check_overrides(text, devices)
    found = _plain_experts(text, n_layer) if text else 0
    if not has_experts:
        if asked is not None or found:
            notes.append(note("no_experts"))
        return 0, "" if found else text
    return (max(count, found), "") if found is not None else (count, text)


def _rules(options: dict[str, str], n_cpu_moe: int, n_layer: int) -> str:
    """Return every override of the command line in its order; the first that matches decides."""
    rules = []
    for name, value in options.items():
        if name == "override_tensor":
            rules.append(value)
        if name == "n_cpu_ffn":
            n_dense = min(number(options, name, 0, low=0), n_layer)
            rules += [_in_ram(n_dense, r"ffn_(up|down|gate)\.")] if n_dense else []
        if name == "n_cpu_moe" and n_cpu_moe and not rules and "override_tensor" in options:
            # our own n_cpu_moe comes last
            rules.append(_in_ram(n_cpu_moe, r"ffn_(up|down|gate|gate_up)_(ch|)exps"))
    return ",".join(rules)


def _in_ram(n_layer: int, names: str) -> str:
    return rf"blk\.({'|'.join(str(i) for i in range(n_layer))})\.{names}={CPU_BUFFER}"


def _plain_experts(text: str, n_layer: int) -> int | None:
    """Return how many first layers' experts the rules keep in RAM; ``None`` = not just that."""
    rules = read_overrides(text)
    others = [f"blk.{i}.{t}.weight" for i in range(n_layer) for t in _OTHERS]
    others += ["token_embd.weight", "output.weight", "output_norm.weight"]
    if any(override_for(rules, name) for name in others):
        return None
    found = [
        [_buffer(rules, f"blk.{i}.ffn_{kind}_exps.weight") for kind in _EXPERTS]
        for i in range(n_layer)
    ]
    count = next((i for i, buffers in enumerate(found) if not _is_whole(buffers)), n_layer)
    is_rest_free = not any(buffer for buffers in found[count:] for buffer in buffers)
    return count if count and is_rest_free else None


def _is_whole(found: list[str | None]) -> bool:
    """Whether every expert tensor of a layer is in RAM, be gate and up one tensor or two."""
    up, down, gate, gate_up = (buffer == CPU_BUFFER for buffer in found)
    is_elsewhere = any(buffer not in {None, CPU_BUFFER} for buffer in found)
    return down and not is_elsewhere and ((up and gate) or (gate_up and not (up or gate)))


def _buffer(rules: tuple[OverrideRule, ...], name: str) -> str | None:
    rule = override_for(rules, name)
    return None if rule is None else rule.buffer


def _placed(
    settings: Settings, command: Command, space: SearchSpace, fits: Fits, notes: list[Reason]
) -> Settings:
    """Return ``settings`` with layers, and with the context llama.cpp would shrink it to."""
    everything = space.model.n_layer + 1
    asked = command.options.get("n_gpu_layers", "auto")
    is_fitted = command.options.get("fit", "on") == "on"
    if not settings.devices:
        return msgspec.structs.replace(settings, n_gpu_layers=0)
    if asked not in AUTO:
        layers = everything if asked == "all" else number(command.options, "n_gpu_layers", 0)
        layers = everything if layers < 0 else min(layers, everything)
        return msgspec.structs.replace(settings, n_gpu_layers=layers)
    settings = msgspec.structs.replace(settings, n_gpu_layers=everything)
    if not is_fitted or settings.is_divided:
        return settings  # llama.cpp's own fit knows neither of the two modes
    if command.options.get("n_ctx", "0") == "0":
        settings = _fitted(settings, "n_ctx", FIT_MIN_CTX, settings.n_ctx, fits)
    settings = _fitted(settings, "n_gpu_layers", 0, everything, fits)
    notes.append(note("fitted_here", n_gpu_layers=settings.n_gpu_layers, n_ctx=settings.n_ctx))
    return settings


def _fitted(settings: Settings, name: str, low: int, high: int, fits: Fits) -> Settings:
    """Return ``settings`` with the largest value of ``name`` that leaves the margin free."""
    step = _CTX_STEP if name == "n_ctx" else 1

    def with_value(value: int) -> Settings:
        return msgspec.structs.replace(settings, **{name: value * step})

    low, high = min(low, high) // step, high // step
    best = largest(low, high, lambda value: _beyond_margin(fits(with_value(value))))
    return with_value(low if best is None else best)


def _beyond_margin(need: MemoryEstimate) -> float:
    """Return the least that a device has left beyond the margin, bytes; negative = too little."""
    left = [
        d.free_bytes - d.total_bytes
        for d in need.devices
        if d.device != "host" and d.free_bytes is not None
    ]
    return -math.inf if need.note is not None else min(left, default=math.inf) - FIT_MARGIN_BYTES


def _check_pair(settings: Settings) -> None:
    if settings.split_mode is SplitMode.TENSOR and settings.flash_attn is FlashAttn.OFF:
        message = "Split mode tensor needs flash attention."
        raise UsageProblem("tensor_split_without_flash_attn", message, "Use -fa on, or -sm layer.")
    quantised = settings.type_v not in ("f16", "f32", "bf16")
    if quantised and settings.flash_attn is FlashAttn.OFF:
        message = f"llama.cpp refuses a {settings.type_v} V cache without flash attention."
        raise UsageProblem("quantised_v_without_flash_attn", message, "Use -fa on, or -ctv f16.")
