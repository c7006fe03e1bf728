"""Makes GGUF models for tests: tiny ones that run, and sparse ones with real shapes.

``make_model`` writes random but numerically sane weights, so that the real engine loads the
file and decodes finite logits. ``sparse_model`` writes header and tensor table of a popular
model and leaves the weights as a hole in the file: enough for a dry run, no use for decoding.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np

from tests.fakes.model_tables import ARCHS, Sizes, Value, metadata, table

Quant = gguf.GGMLQuantizationType

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""A minimal chat template for models that should have one."""

TINY_ARCHS = tuple(ARCHS)

_F32_NAMES = ("ssm_", "ffn_gate_inp", "shortconv.conv", "attn_sinks", "norm", "rope_freqs")
_MATRICES_IN_STATE = ("ssm_in", "ssm_out", "ssm_x.", "ssm_ba")


def make_model(
    path: Path,
    arch: str = "llama",
    *,
    tensor_type: str = "F16",
    chat_template: str | None = None,
    seed: int = 1,
    n_shards: int = 1,
    extra: dict[str, Value] | None = None,
    **sizes: int,
) -> Path:
    """Write a model with random weights that llama.cpp can load and decode.

    Args:
        path: File to write; with shards the first one, named ``…-00001-of-0000N.gguf``.
        arch: One of ``TINY_ARCHS``.
        tensor_type: ggml type of the matrices: ``F32``, ``F16``, ``Q8_0`` or ``Q4_0``.
        chat_template: Jinja template; ``None`` = a base model.
        seed: The same seed gives the same bytes.
        n_shards: Number of files.
        extra: Further metadata, full keys; overrides the default ones.
        sizes: Fields of ``Sizes``, e.g. ``n_layer=2, n_embd=256``; heads share the embedding
            evenly unless ``n_embd_head`` is given.

    Returns:
        The file (the first shard).
    """
    dims = Sizes(**sizes)
    if "n_embd_head" not in sizes:
        dims = dims._replace(n_embd_head=dims.n_embd // dims.n_head)
    tensors = tuple(table(arch, dims))
    per_shard = -(-len(tensors) // n_shards) if n_shards > 1 else 0
    stem = _without_shard(path) if n_shards > 1 else path
    writer = gguf.GGUFWriter(stem, arch, split_max_tensors=per_shard)
    values = {f"{arch}.{key}": value for key, value in metadata(arch, dims).items()}
    values |= _vocabulary(dims.n_vocab)
    if chat_template is not None:
        values["tokenizer.chat_template"] = chat_template
    _write_values(writer, values | (extra or {}))
    rng = np.random.default_rng(seed)
    for name, shape in tensors:
        quant = _tiny_type(name, shape, getattr(Quant, tensor_type))
        data = gguf.quants.quantize(_weights(rng, name, shape), quant)
        writer.add_tensor(name, data, raw_dtype=quant)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class Popular(NamedTuple):
    """A published model: architecture, sizes and which type each tensor has."""

    arch: str
    sizes: Sizes
    tensor_type: Callable[[Sizes, str, tuple[int, ...]], Any]


def sparse_model(path: Path, name: str) -> Path:
    """Write header and tensor table of ``name`` (see ``POPULAR``); the weights are a hole.

    The file has the model's full apparent size but takes some KiB on disk. It has no
    vocabulary (``tokenizer.ggml.model`` = ``none``), which llama.cpp accepts.
    """
    model = POPULAR[name]
    values = {f"{model.arch}.{k}": v for k, v in metadata(model.arch, model.sizes).items()}
    values |= {
        "general.name": name,
        "tokenizer.ggml.model": "none",
        f"{model.arch}.vocab_size": model.sizes.n_vocab,
    }
    entries = [
        (tensor, shape, model.tensor_type(model.sizes, tensor, shape))
        for tensor, shape in table(model.arch, model.sizes)
    ]
    return write_sparse(path, model.arch, values, entries)


def write_sparse(
    path: Path,
    arch: str,
    values: dict[str, Value],
    tensors: list[tuple[str, tuple[int, ...], Any]],
) -> Path:
    """Write metadata and a table of ``tensors`` (name, shape, type); the weights are a hole."""
    writer = gguf.GGUFWriter(path, arch)
    _write_values(writer, values)
    n_bytes = 0
    for tensor, shape, quant in tensors:
        block, block_bytes = gguf.GGML_QUANT_SIZES[quant]
        size = math.prod(shape) // block * block_bytes
        row = shape[0] // block * block_bytes
        stored = (*reversed(shape[1:]), row)
        writer.add_tensor_info(tensor, stored, np.dtype(np.uint8), size, raw_dtype=quant)
        n_bytes += size + -size % 32
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    assert writer.fout is not None
    file = writer.fout[0]
    file.truncate(file.tell() + -file.tell() % 32 + n_bytes)
    writer.close()
    return path


def _without_shard(path: Path) -> Path:
    stem, marker, _ = path.name.partition("-00001-of-")
    assert marker, "name the first shard …-00001-of-0000N.gguf"
    return path.with_name(stem + ".gguf")


def _write_values(writer: gguf.GGUFWriter, values: dict[str, Value]) -> None:
    for key, value in values.items():
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case _:
                writer.add_array(key, value)


def _vocabulary(n_vocab: int) -> dict[str, Any]:
    """A SentencePiece vocabulary: control words, all bytes, letters, then filler words."""
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    pieces = ["▁", *"abcdefghijklmnopqrstuvwxyz", "▁t", "▁th", "▁the", "in", "er", "an"]
    pieces += [f"[{number}]" for number in range(n_vocab)]
    pieces = pieces[: n_vocab - len(words)]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": words + pieces,
        "tokenizer.ggml.scores": [0.0] * len(words) + [-float(i) for i in range(len(pieces))],
        "tokenizer.ggml.token_type": kinds + [1] * len(pieces),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def _tiny_type(name: str, shape: tuple[int, ...], wanted: Any) -> Any:
    """Vectors, small state tensors and rows of odd length stay F32, as converters do."""
    is_small = any(part in name for part in _F32_NAMES) and not any(
        part in name for part in _MATRICES_IN_STATE
    )
    if len(shape) == 1 or is_small or name.endswith(".bias"):
        return Quant.F32
    return wanted if shape[0] % gguf.GGML_QUANT_SIZES[wanted][0] == 0 else Quant.F16


def _weights(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Any:
    stored = tuple(reversed(shape))
    if "norm" in name or "rope_freqs" in name or name.endswith("ssm_d"):
        return np.ones(stored, np.float32)
    noise = rng.standard_normal(stored, dtype=np.float32)
    if name.endswith("ssm_a"):
        return -np.abs(noise) - np.float32(0.1)
    if name.endswith((".bias", "attn_sinks.weight")):
        return noise * np.float32(0.02)
    return noise * np.float32(1 / math.sqrt(shape[0]))


def _more_bits(il: int, n_layer: int) -> bool:
    eighth = n_layer // 8
    return il < eighth or il >= 7 * n_layer // 8 or (il - eighth) % 3 == 2


def _q4_k_m(sizes: Sizes, name: str, shape: tuple[int, ...]) -> Any:
    """llama-quantize's Q4_K_M for models without special cases."""
    if len(shape) == 1 or "ffn_gate_inp" in name:
        return Quant.F32
    if name == "output.weight" or (name == "token_embd.weight" and sizes.n_vocab > 200_000):
        return Quant.Q6_K
    if "attn_v." in name or "ffn_down" in name:
        il = int(name.split(".")[1])
        few = Quant.Q5_K if "attn_v." in name and sizes.n_layer == 80 else Quant.Q4_K
        return Quant.Q6_K if _more_bits(il, sizes.n_layer) else few
    return Quant.Q4_K


def bits_q4_k_m(sizes: Sizes, name: str, shape: tuple[int, ...]) -> Any:
    """Q4_K_M for any table: rows that do not fill a block keep more bits, small ones all."""
    if ".ssm_" in name and not any(part in name for part in (*_MATRICES_IN_STATE, "ssm_out")):
        return Quant.F32
    if "shortconv.conv" in name:
        return Quant.F32
    wanted = _q4_k_m(sizes, name, shape)
    is_whole = shape[0] % gguf.GGML_QUANT_SIZES[wanted][0] == 0
    return wanted if is_whole else Quant.Q5_0 if shape[0] % 32 == 0 else Quant.F16


def _q8_0(_sizes: Sizes, name: str, shape: tuple[int, ...]) -> Any:
    return Quant.F32 if len(shape) == 1 or "ffn_gate_inp" in name else Quant.Q8_0


def _mxfp4(_sizes: Sizes, name: str, shape: tuple[int, ...]) -> Any:
    """gpt-oss as published: experts in MXFP4, the other matrices in Q8_0."""
    if "_exps.weight" in name:
        return Quant.MXFP4
    return Quant.F32 if len(shape) == 1 or "bias" in name or "gate_inp" in name else Quant.Q8_0


_LLAMA_8B = Sizes(
    n_layer=32,
    n_embd=4096,
    n_head=32,
    n_head_kv=8,
    n_embd_head=128,
    n_ff=14336,
    n_vocab=128256,
    n_ctx_train=131072,
)
_QWEN_7B = Sizes(
    n_layer=28,
    n_embd=3584,
    n_head=28,
    n_head_kv=4,
    n_embd_head=128,
    n_ff=18944,
    n_vocab=152064,
    n_ctx_train=32768,
)
_QWEN_30B = Sizes(
    n_layer=48,
    n_embd=2048,
    n_head=32,
    n_head_kv=4,
    n_embd_head=128,
    n_ff=6144,
    n_vocab=151936,
    n_ctx_train=40960,
    n_expert=128,
    n_expert_used=8,
    n_ff_exp=768,
)
_GPT_OSS_20B = Sizes(
    n_layer=24,
    n_embd=2880,
    n_head=64,
    n_head_kv=8,
    n_embd_head=64,
    n_ff=2880,
    n_vocab=201088,
    n_ctx_train=131072,
    n_expert=32,
    n_expert_used=4,
    n_ff_exp=2880,
)
_GEMMA_27B = Sizes(
    n_layer=62,
    n_embd=5376,
    n_head=32,
    n_head_kv=16,
    n_embd_head=128,
    n_ff=21504,
    n_vocab=262208,
    n_ctx_train=131072,
    n_swa=1024,
)
_GEMMA_2B = Sizes(
    n_layer=26,
    n_embd=2304,
    n_head=8,
    n_head_kv=4,
    n_embd_head=256,
    n_ff=9216,
    n_vocab=256000,
    n_ctx_train=8192,
    n_swa=4096,
)
_QWEN_32B = Sizes(
    n_layer=64,
    n_embd=5120,
    n_head=64,
    n_head_kv=8,
    n_embd_head=128,
    n_ff=25600,
    n_vocab=151936,
    n_ctx_train=40960,
)

POPULAR: dict[str, Popular] = {
    "Llama-3.1-8B-Q4_K_M": Popular("llama", _LLAMA_8B, _q4_k_m),
    "Llama-3.1-8B-Q8_0": Popular("llama", _LLAMA_8B, _q8_0),
    "Llama-3.3-70B-Q4_K_M": Popular(
        "llama", _LLAMA_8B._replace(n_layer=80, n_embd=8192, n_head=64, n_ff=28672), _q4_k_m
    ),
    "Mistral-7B-Q4_K_M": Popular(
        "llama", _LLAMA_8B._replace(n_vocab=32768, n_ctx_train=32768), _q4_k_m
    ),
    "Qwen2.5-7B-Q4_K_M": Popular("qwen2", _QWEN_7B, _q4_k_m),
    "Qwen3-8B-Q4_K_M": Popular(
        "qwen3", _QWEN_32B._replace(n_layer=36, n_embd=4096, n_head=32, n_ff=12288), _q4_k_m
    ),
    "Qwen3-32B-Q4_K_M": Popular("qwen3", _QWEN_32B, _q4_k_m),
    "Qwen3-Coder-30B-A3B-Q8_0": Popular(
        "qwen3moe", _QWEN_30B._replace(n_ff=5472, n_ctx_train=262144), _q8_0
    ),
    "Qwen3-30B-A3B-Q4_K_M": Popular("qwen3moe", _QWEN_30B, _q4_k_m),
    "gpt-oss-20b-MXFP4": Popular("gpt-oss", _GPT_OSS_20B, _mxfp4),
    "gpt-oss-120b-MXFP4": Popular(
        "gpt-oss", _GPT_OSS_20B._replace(n_layer=36, n_expert=128), _mxfp4
    ),
    "gemma-2-2b-Q4_K_M": Popular("gemma2", _GEMMA_2B, _q4_k_m),
    "gemma-3-27b-Q4_K_M": Popular("gemma3", _GEMMA_27B, _q4_k_m),
}
"""Published shapes ``sparse_model`` can write."""
