"""Settings in llama.cpp's own structures."""

import ctypes
import os
from collections.abc import Mapping

import psutil

from app.domain.errors import UsageProblem
from app.domain.outcome import Outcome
from app.domain.overrides import check_overrides, read_overrides
from app.domain.settings import SPLIT, FlashAttn, LoadMode, Settings, SplitMode, Switch
from app.worker import native
from app.worker.cancel import CancelFlag, EngineFailure
from app.worker.native import llama

_FLASH_ATTN = {FlashAttn.AUTO: -1, FlashAttn.OFF: 0, FlashAttn.ON: 1}
LOAD_MODE = {LoadMode.NONE: 0, LoadMode.MMAP: 1}
_SPLIT_MODES = {SplitMode.NONE: 0, SplitMode.LAYER: 1, SplitMode.ROW: 2, SplitMode.TENSOR: 3}
# expert tensors, as llama.cpp's --n-cpu-moe names them (common/common.h)
_EXPERTS = r"blk\.({layers})\.ffn_(up|down|gate|gate_up)_(ch|)exps"


def context_params(settings: Settings, cancel: CancelFlag, n_outputs: int = 1) -> object:
    """Return ``llama_context_params`` for effective ``settings``.

    Args:
        settings: The settings.
        cancel: Polled by the engine.
        n_outputs: Rows of logits a batch may ask for; at least one per sequence are reserved.

    Raises:
        EngineFailure: A cache type is unknown.
    """
    params = llama.llama_context_default_params()
    params.n_ctx = settings.n_ctx
    params.n_batch = settings.n_batch
    params.n_ubatch = settings.n_ubatch
    params.n_seq_max = max(settings.n_seq_max, 1)
    # rows of logits to reserve: the default, n_batch, costs n_ubatch × n_vocab × 4 bytes
    params.n_outputs_max = max(settings.n_seq_max, n_outputs)
    params.n_threads = settings.n_threads
    params.n_threads_batch = settings.n_threads_batch
    params.flash_attn_type = _FLASH_ATTN[settings.flash_attn]
    params.type_k = _ggml_type(settings.type_k)
    params.type_v = _ggml_type(settings.type_v)
    # llama.cpp's programs use false; the library's default is true
    params.swa_full = False
    params.kv_unified = False
    params.no_perf = True
    params.offload_kqv = settings.offload_kqv is Switch.ON
    params.op_offload = settings.op_offload is Switch.ON
    params.abort_callback = llama.ggml_abort_callback(cancel.function)
    params.abort_callback_data = cancel.data
    return params


def _ggml_type(name: str) -> int:
    number = getattr(llama, f"GGML_TYPE_{name.upper()}", None)
    if number is None:
        message = f"{name} is not a type of the KV cache."
        raise EngineFailure(Outcome.UNSUPPORTED, "unknown_kv_type", message)
    return int(number)


def threads(requested: Settings) -> dict[str, int]:
    """Return both thread counts, concrete."""
    decode = requested.n_threads or physical_cores()
    return {"n_threads": decode, "n_threads_batch": requested.n_threads_batch or decode}


def physical_cores() -> int:
    """Return the physical cores this process may use, at least 1."""
    logical = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        logical = len(os.sched_getaffinity(0))
    return max(1, min(psutil.cpu_count(logical=False) or logical, logical))


def split_mode(settings: Settings, n_devices: int) -> int:
    """Return llama.cpp's number of the split mode; no device shares nothing, which it refuses."""
    return _SPLIT_MODES[settings.split_mode if n_devices else SplitMode.LAYER]


def split_shares(tensor_split: str) -> ctypes.Array[ctypes.c_float] | None:
    """Return the shares of the devices in llama.cpp's array; ``None`` = by free memory.

    Raises:
        EngineFailure: It is not a list of numbers, more than there may be devices, or all 0.
    """
    if not tensor_split:
        return None
    most = int(llama.llama_max_devices())
    shares = [float(n) for n in tensor_split.split(",")] if SPLIT.fullmatch(tensor_split) else []
    if not any(shares) or len(shares) > most:
        message = f"{tensor_split!r} does not split a model over at most {most} devices."
        raise EngineFailure(Outcome.UNSUPPORTED, "bad_tensor_split", message)
    return (ctypes.c_float * most)(*shares)


def tensor_overrides(
    settings: Settings, buffers: Mapping[str, int]
) -> ctypes.Array[native.BuftOverride] | None:
    """Return the list of tensors that lie elsewhere; ``None`` = all by the rule.

    The user's rules come first, as in llama-bench. The experts of the first layers are one
    pattern: llama.cpp compiles a regular expression per tensor and pattern.

    Args:
        settings: The settings.
        buffers: Buffer type by device name.

    Raises:
        EngineFailure: A rule is none, or names a buffer of no device in use.
    """
    try:
        check_overrides(settings.override_tensor, tuple(buffers))
    except UsageProblem as problem:
        info = problem.info
        raise EngineFailure(Outcome.UNSUPPORTED, info.code, info.message, info.hint) from problem
    cpu = native.cpu_buffer_type()
    entries = [
        native.BuftOverride(r.pattern.encode(), cpu if r.device is None else buffers[r.device])
        for r in read_overrides(settings.override_tensor)
    ]
    if settings.n_cpu_moe > 0:
        layers = "|".join(str(i) for i in range(settings.n_cpu_moe))
        entries.append(native.BuftOverride(_EXPERTS.replace("{layers}", layers).encode(), cpu))
    if not entries:
        return None
    return (native.BuftOverride * (len(entries) + 1))(*entries, native.BuftOverride(None, None))
