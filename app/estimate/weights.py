"""Where each tensor goes: llama.cpp's placement rule (``llama_model_base::load_tensors``).

The input embedding always stays in RAM; the last ``n_gpu_layers - 1`` blocks and the output
layer go to the devices, in order and in proportion to the split; a tied output layer is a second
copy of the embedding; expert tensors of the first ``n_cpu_moe`` blocks stay in RAM.
"""

import bisect
import math
import re
import struct
from collections.abc import Iterator
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import NamedTuple

from app.domain.model import ModelSpec, TensorInfo
from app.domain.settings import Settings
from app.estimate.profile import EngineProfile, FormulaDevice, pad

HOST = -1
HOST_ALIGNMENT = 32
# tensors without a block number: these are inputs, the ROPE ones are copied to every device
# that holds a block, _FIRST ones go with the first block; all others belong to the output layer
_INPUTS = ("token_embd.", "position_embd.", "token_types.", "per_layer_token_embd.")
_ROPE = ("rope_freqs.", "rope_factors_long.", "rope_factors_short.")
_FIRST = ("token_embd_norm.", "per_layer_model_proj.", "per_layer_proj_norm.")
_BLOCK = re.compile(r"blk\.(\d+)\.(.+)")
_EXPERTS = re.compile(r"ffn_(up|down|gate|gate_up)_(ch|)exps")
# types the CPU backend re-arranges on x86 with AVX2, in matrices of 8·n rows (ggml-cpu/repack)
_REPACKED = frozenset({"q4_0", "q4_K", "iq4_nl", "mxfp4"})
_MATRIX_DIMS = 2
# their output norm has the name that other architectures give the embedding's norm
_OUTPUT_NORM_NAMED_EMBD = "lfm2"
# these create the output layer before the embedding, which llama.cpp then cannot share
_ALWAYS_TWICE = frozenset({"gemma3n", "gemma4"})


class TensorGroup(StrEnum):
    """What a tensor belongs to, which decides where it goes."""

    BLOCK = "block"
    INPUT = "input"
    OUTPUT = "output"
    ROPE = "rope"
    FIRST = "first"


class BlockWeights(NamedTuple):
    """Bytes of one block, aligned for one kind of device."""

    n_bytes: int
    expert_bytes: int
    largest_bytes: int


class WeightTable(NamedTuple):
    """The tensor table summed up once per model and alignment, bytes.

    ``tied`` is the second copy of the embedding as output layer (0 = the file has its own).
    """

    blocks: tuple[BlockWeights, ...]
    inputs: int
    outputs: int
    rope: int
    first: int
    tied: int
    tied_always: bool
    tied_repacks: bool
    largest_output: int


def weight_table(spec: ModelSpec, alignment: int, row_pad: int = 1) -> WeightTable:
    """Sum the tensors of ``spec`` as a device with this alignment stores them.

    Blocks of multi-token prediction (``nextn``) are not loaded and count as empty.
    """
    blocks = [[0, 0, 0] for _ in range(spec.n_layer)]
    groups = dict.fromkeys(TensorGroup, 0)
    skipped = draft_blocks(spec)
    embedding: TensorInfo | None = None
    tied, largest_output = True, 0
    for tensor in spec.tensors:
        n_bytes = pad(stored_bytes(tensor, row_pad), alignment)
        match = _BLOCK.match(tensor.name)
        if match:
            layer = int(match[1])
            if layer < spec.n_layer and layer not in skipped:
                _add(blocks[layer], match[2], n_bytes, tensor)
            continue
        groups[_group(spec.arch, tensor.name)] += n_bytes
        if tensor.name == "token_embd.weight":
            embedding = tensor
        if tensor.name == "output.weight":
            tied, largest_output = False, n_bytes
    tied_bytes = 0
    if tied and embedding is not None:
        tied_bytes = largest_output = pad(stored_bytes(embedding, row_pad), alignment)
    return WeightTable(
        blocks=tuple(BlockWeights(*b) for b in blocks),
        tied=tied_bytes,
        tied_always=bool(tied_bytes) and spec.arch in _ALWAYS_TWICE,
        tied_repacks=bool(tied_bytes and embedding and repacks(embedding)),
        largest_output=largest_output,
        inputs=groups[TensorGroup.INPUT],
        outputs=groups[TensorGroup.OUTPUT],
        rope=groups[TensorGroup.ROPE],
        first=groups[TensorGroup.FIRST],
    )


def layer_devices(
    n_layer: int, n_gpu_layers: int, devices: tuple[FormulaDevice, ...]
) -> tuple[int, ...]:
    """Return the device index of each block and, last, of the output layer; ``HOST`` = RAM."""
    n_places = n_layer + 1
    n_active = min(max(0, n_gpu_layers), n_places) if devices else 0
    first = n_places - n_active
    if n_active == 0:
        return (HOST,) * n_places
    bounds = _split_bounds(devices)
    return (HOST,) * first + tuple(
        min(bisect.bisect_right(bounds, _float32(i / n_active)), len(devices) - 1)
        for i in range(n_active)
    )


def holds_fewer(n_gpu_layers: int, devices: tuple[FormulaDevice, ...]) -> bool:
    """Whether a device has fewer of so many layers than of one less: all borders move with each.

    Happens to a small device between others, which has room for a layer at some counts only.
    """
    bounds = [0.0, *_split_bounds(devices)]
    before, now = ([math.ceil(b * n) for b in bounds] for n in (n_gpu_layers - 1, n_gpu_layers))
    shares = zip(pairwise(before), pairwise(now), strict=True)
    return any(end - begin < old_end - old for (old, old_end), (begin, end) in shares)


def place_weights(
    tables: tuple[WeightTable, ...],
    host: WeightTable,
    places: tuple[int, ...],
    settings: Settings,
    profile: EngineProfile,
    *,
    has_host_buffer: bool,
    rope_layers: tuple[bool, ...],
) -> list[int]:
    """Return the weights per device and, last, in RAM, bytes.

    Args:
        tables: One table per device, summed with its alignment.
        host: The table with the CPU's alignment.
        places: Result of ``layer_devices``.
        settings: Requested settings.
        profile: Engine switches.
        has_host_buffer: Whether the first device pins RAM (then nothing is re-arranged).
        rope_layers: Which blocks use the shared rotary factors.
    """
    sums = [0] * (len(tables) + 1)
    for layer, place in enumerate(places[:-1]):
        block = tables[place].blocks[layer] if place != HOST else host.blocks[layer]
        kept = host.blocks[layer].expert_bytes if layer < settings.n_cpu_moe else 0
        moved = block.expert_bytes if kept else 0
        sums[place] += block.n_bytes - moved
        sums[HOST] += kept
    sums[HOST] += host.inputs
    for place in {p for p, uses in zip(places, rope_layers, strict=False) if uses}:
        sums[place] += (tables[place] if place != HOST else host).rope
    sums[places[0]] += (tables[places[0]] if places[0] != HOST else host).first
    out = tables[places[-1]] if places[-1] != HOST else host
    sums[places[-1]] += out.outputs
    repacks_output = host.tied_repacks and profile.repack and not has_host_buffer
    if places[-1] != HOST or host.tied_always or repacks_output:
        sums[places[-1]] += out.tied
    return sums


def loaded_tensors(spec: ModelSpec) -> Iterator[tuple[TensorInfo, TensorGroup, int]]:
    """Yield what the engine loads: tensor, what it belongs to, its block.

    The block is the number of blocks where it is in none.
    """
    skipped = draft_blocks(spec)
    for tensor in spec.tensors:
        match = _BLOCK.match(tensor.name)
        if match is None:
            yield tensor, _group(spec.arch, tensor.name), spec.n_layer
        elif int(match[1]) < spec.n_layer and int(match[1]) not in skipped:
            yield tensor, TensorGroup.BLOCK, int(match[1])


def is_expert(tensor: TensorInfo) -> bool:
    """Return whether ``tensor`` holds experts, which ``n_cpu_moe`` keeps in RAM."""
    return _EXPERTS.search(tensor.name) is not None


def stored_bytes(tensor: TensorInfo, row_pad: int) -> int:
    """Return the bytes on a device that pads quantised rows at the tensor's end."""
    missing = -tensor.shape[0] % row_pad if tensor.shape else 0
    if missing == 0 or tensor.type in {"f32", "f16", "bf16"}:
        return tensor.n_bytes
    n_rows = 1
    for dim in tensor.shape[1:]:
        n_rows *= dim
    return tensor.n_bytes + tensor.n_bytes // n_rows * missing // tensor.shape[0]


def repacks(tensor: TensorInfo) -> bool:
    """Return whether the CPU backend keeps ``tensor`` in its own layout."""
    n_rows = tensor.shape[1] if len(tensor.shape) >= _MATRIX_DIMS else 1
    return tensor.type in _REPACKED and len(tensor.shape) >= _MATRIX_DIMS and n_rows % 8 == 0


def matrix_place(tensor: TensorInfo, n_layer: int) -> int | None:
    """Return the block (``n_layer``: output) of a matrix or of experts; ``None`` = neither."""
    if len(tensor.shape) < _MATRIX_DIMS:
        return None
    if tensor.name == "output.weight":
        return n_layer
    match = _BLOCK.match(tensor.name)
    return int(match[1]) if match and int(match[1]) < n_layer else None


def repacked_blocks(spec: ModelSpec) -> tuple[tuple[int, int], ...]:
    """Return per block what the CPU copies into its own layout: all of it, and its experts."""
    blocks = [[0, 0] for _ in range(spec.n_layer)]
    skipped = draft_blocks(spec)
    for tensor in spec.tensors:
        match = _BLOCK.match(tensor.name)
        if not match or not repacks(tensor):
            continue
        layer = int(match[1])
        if layer < spec.n_layer and layer not in skipped:
            blocks[layer][0] += tensor.n_bytes
            blocks[layer][1] += tensor.n_bytes if _EXPERTS.search(match[2]) else 0
    return tuple((n_bytes, n_experts) for n_bytes, n_experts in blocks)


def _add(block: list[int], name: str, n_bytes: int, tensor: TensorInfo) -> None:
    block[0] += n_bytes
    if _EXPERTS.search(name):
        block[1] += n_bytes
    if len(tensor.shape) >= _MATRIX_DIMS:
        block[2] = max(block[2], n_bytes)


def _group(arch: str, name: str) -> TensorGroup:
    if arch.startswith(_OUTPUT_NORM_NAMED_EMBD) and name.startswith("token_embd_norm."):
        return TensorGroup.OUTPUT
    if name.startswith(_INPUTS):
        return TensorGroup.INPUT
    if name.startswith(_ROPE):
        return TensorGroup.ROPE
    return TensorGroup.FIRST if name.startswith(_FIRST) else TensorGroup.OUTPUT


def draft_blocks(spec: ModelSpec) -> frozenset[int]:
    """Return the blocks of multi-token prediction, which have places but are not loaded."""
    matches = (_BLOCK.match(t.name) for t in spec.tensors if ".nextn." in t.name)
    return frozenset(int(m[1]) for m in matches if m)


def _split_bounds(devices: tuple[FormulaDevice, ...]) -> list[float]:
    """Return cumulated shares in the engine's single precision."""
    shares = [d.split for d in devices]
    if not any(shares):
        shares = [1.0] * len(shares)
    sums = list(accumulate(shares, lambda a, b: _float32(_float32(a) + _float32(b))))
    total = sums[-1]
    return [_float32(s / total) for s in sums]


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])
