"""Writes GGUF files byte by byte, valid or damaged on purpose.

Independent of the ``gguf`` package, which refuses to write most kinds of damage.
"""

import struct
from typing import Any

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)

_FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?"} | {
    U64: "Q",
    I64: "q",
    F64: "d",
}

F32_TENSOR = 0


def string(text: str | bytes) -> bytes:
    """Return a GGUF string."""
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str | bytes, kind: int, value: Any) -> bytes:
    """Return one metadata entry with a scalar."""
    body = string(value) if kind == STRING else struct.pack("<" + _FORMATS[kind], value)
    return string(key) + struct.pack("<I", kind) + body


def array(key: str, kind: int, values: list[Any]) -> bytes:
    """Return one metadata entry with an array."""
    head = string(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    if kind == STRING:
        return head + b"".join(string(value) for value in values)
    return head + struct.pack(f"<{len(values)}{_FORMATS[kind]}", *values)


def tensor(
    name: str | bytes, dims: tuple[int, ...], kind: int = F32_TENSOR, offset: int = 0
) -> bytes:
    """Return one entry of the tensor table."""
    body = struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
    return string(name) + body


def gguf_file(
    pairs: list[bytes],
    tensors: list[bytes] | None = None,
    data: bytes = b"",
    *,
    version: int = 3,
    n_pairs: int | None = None,
    n_tensors: int | None = None,
    alignment: int = 32,
) -> bytes:
    """Return a whole file; the counts can lie."""
    tensors = tensors or []
    head = b"GGUF" + struct.pack(
        "<IQQ",
        version,
        len(tensors) if n_tensors is None else n_tensors,
        len(pairs) if n_pairs is None else n_pairs,
    )
    body = head + b"".join(pairs) + b"".join(tensors)
    if not tensors:
        return body
    return body + bytes(-len(body) % alignment) + data


def small_llama(
    extra: list[bytes] | None = None, *, arch: str = "llama", n_layer: int = 1
) -> bytes:
    """Return a file with the weights of its first block, without any tokenizer."""
    pairs = [
        pair("general.architecture", STRING, arch),
        pair(f"{arch}.block_count", U32, n_layer),
        pair(f"{arch}.embedding_length", U32, 8),
        pair(f"{arch}.context_length", U32, 64),
        pair(f"{arch}.attention.head_count", U32, 2),
    ]
    tensors = [
        tensor("token_embd.weight", (8, 4)),
        tensor("blk.0.attn_q.weight", (8, 8), offset=128),
    ]
    return gguf_file(pairs + (extra or []), tensors, bytes(128 + 256))
