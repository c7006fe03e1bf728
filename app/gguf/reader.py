"""Reads a model's files and says what the model is."""

import re
from collections import defaultdict
from pathlib import Path

from app.domain.errors import EnvironmentProblem
from app.domain.model import ModelSpec, TensorInfo
from app.gguf.architectures import FORMULA_ARCHS, KNOWN_ARCHS
from app.gguf.fingerprint import fingerprint
from app.gguf.header import Header
from app.gguf.kinds import (
    EMBEDDING,
    TEXT,
    find_problems,
    is_formula_known,
    read_architecture,
    read_kind,
)
from app.gguf.layers import Shape, derive_layers
from app.gguf.metadata import Metadata
from app.gguf.shards import Split, read_shards
from app.gguf.source import display_name
from app.gguf.tensor_types import FILE_TYPES, GUESSED_FILE_TYPE

MAX_LAYERS = 512
"""``LLAMA_MAX_LAYERS``; llama.cpp aborts beyond it."""

_BLOCK = re.compile(r"(?:.*\.)?blk\.(\d{1,4})\.(.+)", re.DOTALL)


def read_model(path: str | Path) -> ModelSpec:
    """Return what the file, and the other shards if it is split, say about the model.

    Costs about 30 ms for a vocabulary of 262,144 words; reads no weights but three samples.

    Raises:
        EnvironmentProblem: The file cannot be read, is no GGUF, is incomplete or damaged; the
            codes start with ``gguf_`` or ``model_``.
    """
    split, headers = read_shards(Path(path))
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    _check_unique(headers, tensors)
    arch = read_architecture(headers[0])
    kind = read_kind(arch, headers[0].metadata, tensors)
    shape = _shape(headers[0], arch, kind, tensors)
    return _spec(headers, split, tensors, kind, shape)


def _spec(
    headers: tuple[Header, ...],
    split: Split,
    tensors: tuple[TensorInfo, ...],
    kind: str,
    shape: Shape,
) -> ModelSpec:
    metadata = shape.metadata
    layers = derive_layers(shape)
    return ModelSpec(
        path=str(headers[0].path),
        files=tuple(str(header.path) for header in headers),
        fingerprint=fingerprint(headers),
        arch=shape.arch,
        name=metadata.text("general.name") or Path(display_name(headers[0].path)).stem,
        n_layer=shape.n_layer,
        n_embd=shape.n_embd,
        n_vocab=_n_vocab(shape, tensors),
        n_ctx_train=metadata.integer(f"{shape.arch}.context_length"),
        n_head=layers.n_head,
        n_head_kv=layers.n_head_kv,
        n_embd_head_k=layers.n_embd_head_k,
        n_embd_head_v=layers.n_embd_head_v,
        n_swa=layers.n_swa,
        swa_layers=layers.swa_layers,
        kv_shared_from=layers.kv_shared_from,
        mla_kv_lora_rank=layers.mla_kv_lora_rank,
        mla_rope_dim=layers.mla_rope_dim,
        n_expert=shape.integer("expert_count"),
        n_expert_used=max(shape.per_layer("expert_used_count", ()), default=0),
        recurrent=layers.recurrent,
        chat_template=metadata.text("tokenizer.chat_template"),
        file_bytes=sum(header.file_bytes for header in headers),
        weights_bytes=sum(tensor.n_bytes for tensor in tensors),
        tensors=tensors,
        kind=kind,
        split_index=split.shard,
        split_count=split.n_shards,
        ftype=_file_type(metadata),
        formula_known=is_formula_known(shape, kind),
        problems=find_problems(shape, kind, layers),
    )


def _shape(header: Header, arch: str, kind: str, tensors: tuple[TensorInfo, ...]) -> Shape:
    metadata = header.metadata
    layer_tensors: defaultdict[int, set[str]] = defaultdict(set)
    for tensor in tensors:
        if match := _BLOCK.fullmatch(tensor.name):
            layer_tensors[int(match[1])].add(match[2])
    n_layer = metadata.integer(f"{arch}.block_count")
    n_embd = metadata.integer(f"{arch}.embedding_length")
    if kind in {TEXT, EMBEDDING} and arch in KNOWN_ARCHS:
        _require(header, f"{arch}.block_count", n_layer)
        _require(header, f"{arch}.embedding_length", n_embd)
    if arch in FORMULA_ARCHS:
        _check_width(header, n_embd, tensors)
    if n_layer is None:
        n_layer = max(layer_tensors, default=-1) + 1
    if n_layer > MAX_LAYERS:
        raise EnvironmentProblem(
            "gguf_bad_value",
            f"{display_name(header.path)} claims {n_layer} layers; llama.cpp takes up to "
            f"{MAX_LAYERS}.",
            "Convert or download the model again.",
        )
    draft = metadata.integer(f"{arch}.nextn_predict_layers") or 0
    return Shape(
        arch=arch,
        metadata=metadata,
        n_layer=n_layer,
        n_layer_trunk=n_layer - draft if draft < n_layer else n_layer,
        n_embd=n_embd or 0,
        layer_tensors={il: frozenset(names) for il, names in layer_tensors.items()},
    )


def _require(header: Header, key: str, value: int | None) -> None:
    if value is None:
        raise EnvironmentProblem(
            "gguf_missing_key",
            f"{display_name(header.path)} lacks the metadata '{key}' that its architecture needs.",
            "Convert or download the model again.",
        )


def _check_width(header: Header, n_embd: int | None, tensors: tuple[TensorInfo, ...]) -> None:
    """Refuse a width that the table of words does not have: everything would be sized by it."""
    table = next((t for t in tensors if t.name == "token_embd.weight"), None)
    if n_embd and table is not None and table.shape[0] != n_embd:
        raise EnvironmentProblem(
            "gguf_bad_value",
            f"{display_name(header.path)} contradicts itself: its embedding length is {n_embd}, "
            f"and its table of words is {table.shape[0]} wide.",
            "Convert or download the model again.",
        )


def _n_vocab(shape: Shape, tensors: tuple[TensorInfo, ...]) -> int:
    words = shape.metadata.n_elements("tokenizer.ggml.tokens")
    if words is not None:
        return words
    stated = shape.integer("vocab_size")
    if stated:
        return stated
    table = next((t for t in tensors if t.name == "token_embd.weight"), None)
    return table.shape[-1] if table is not None and len(table.shape) > 1 else 0


def _file_type(metadata: Metadata) -> str | None:
    value = metadata.integer("general.file_type")
    return None if value is None else FILE_TYPES.get(value & ~GUESSED_FILE_TYPE)


def _check_unique(headers: tuple[Header, ...], tensors: tuple[TensorInfo, ...]) -> None:
    """Within a file the header parser checks it; here it matters between shards."""
    if len(headers) > 1 and len({tensor.name for tensor in tensors}) != len(tensors):
        raise EnvironmentProblem(
            "gguf_duplicate_tensor",
            f"{display_name(headers[0].path)}: two parts of the model hold the same tensor.",
            "Download all parts again from one place.",
        )
