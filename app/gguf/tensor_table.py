"""Reads the tensor table and compares it with the size of the file.

An entry is string name, u32 dimensions, u64 per dimension, u32 type, u64 offset in the data.
Sizes are computed with Python's unbounded integers: products that overflow 64 bits in other
readers are just large numbers here.
"""

import struct

from app.domain.errors import EnvironmentProblem
from app.domain.model import TensorInfo
from app.gguf.cursor import Cursor
from app.gguf.metadata import decode, printable
from app.gguf.source import Source, incomplete_hint
from app.gguf.tensor_types import REMOVED_TYPES, TENSOR_TYPES, TensorType

MAX_TENSORS = 32_768
MIN_TENSOR_BYTES = 24
"""Name length, number of dimensions, type, offset."""
MAX_NAME_BYTES = 63
"""``GGML_MAX_NAME`` less the terminator."""
MAX_DIMS = 4
MAX_ELEMENTS = (1 << 63) - 1
MAX_TENSOR_BYTES = 1 << 40

_TAILS = tuple(struct.Struct(f"<{n}QIQ") for n in range(MAX_DIMS + 1))


def read_tensors(cursor: Cursor, n_tensors: int) -> tuple[tuple[TensorInfo, ...], tuple[int, ...]]:
    """Return the tensors and their offsets in the data section.

    Raises:
        EnvironmentProblem: An entry is impossible, or of a type llama.cpp does not know.
    """
    tensors, offsets = [], []
    seen: set[str] = set()
    for index in range(n_tensors):
        tensor, offset = _read_tensor(cursor, index)
        if tensor.name in seen:
            raise cursor.source.damaged(
                "gguf_duplicate_tensor", f"the tensor '{tensor.name}' occurs twice"
            )
        seen.add(tensor.name)
        tensors.append(tensor)
        offsets.append(offset)
    return tuple(tensors), tuple(offsets)


def check_data(
    source: Source,
    tensors: tuple[TensorInfo, ...],
    offsets: tuple[int, ...],
    data_pos: int,
    alignment: int,
) -> None:
    """Check that the tensors lie densely, in table order, and inside the file.

    Raises:
        EnvironmentProblem: llama.cpp would refuse the offsets, or data is missing.
    """
    expected = 0
    missing: str | None = None
    end = data_pos
    for tensor, offset in zip(tensors, offsets, strict=True):
        if offset != expected:
            raise source.damaged(
                "gguf_bad_offset",
                f"the tensor '{tensor.name}' lies at {offset} where {expected} is expected",
            )
        end = data_pos + offset + tensor.n_bytes
        if missing is None and end > source.size:
            missing = tensor.name
        expected += tensor.n_bytes + -tensor.n_bytes % alignment
    if missing is not None:
        raise EnvironmentProblem(
            "gguf_incomplete",
            f"{source.name}: download incomplete: {source.size} of {end} bytes; the first "
            f"missing tensor is '{missing}'.",
            incomplete_hint(source.path),
        )


def _read_tensor(cursor: Cursor, index: int) -> tuple[TensorInfo, int]:
    source = cursor.source
    length = cursor.length(f"the name of tensor {index}", MAX_NAME_BYTES, "gguf_name_too_long")
    name = printable(decode(cursor.take(length)))
    n_dims = cursor.u32()
    if n_dims > MAX_DIMS:
        raise source.damaged(
            "gguf_bad_dimensions", f"the tensor '{name}' claims {n_dims} dimensions"
        )
    tail = _TAILS[n_dims]
    *dims, kind, offset = tail.unpack(cursor.take(tail.size))
    shape = tuple(dims) or (1,)
    if 0 in shape:
        raise source.damaged(
            "gguf_zero_dimension", f"the tensor '{name}' has a zero-sized dimension"
        )
    if not name:
        raise source.damaged("gguf_empty_name", f"tensor {index} has no name")
    tensor_type = _tensor_type(source, name, kind)
    n_bytes = _n_bytes(source, name, tensor_type, shape)
    return TensorInfo(name=name, type=tensor_type.name, shape=shape, n_bytes=n_bytes), offset


def _tensor_type(source: Source, name: str, kind: int) -> TensorType:
    tensor_type = TENSOR_TYPES.get(kind)
    if tensor_type is not None:
        return tensor_type
    if kind in REMOVED_TYPES:
        raise EnvironmentProblem(
            "gguf_removed_tensor_type",
            f"{source.name}: the tensor '{name}' has type {kind}, which llama.cpp no longer "
            f"supports.",
            "Download a current quantisation of the model (Q4_0 replaces Q4_0_4_4 and kin).",
        )
    raise EnvironmentProblem(
        "gguf_unknown_tensor_type",
        f"{source.name}: the tensor '{name}' has the unknown type {kind}.",
        "It is damaged, or was made for a newer or different engine than this one.",
    )


def _n_bytes(source: Source, name: str, tensor_type: TensorType, shape: tuple[int, ...]) -> int:
    n_elements = 1
    for size in shape:
        n_elements *= size
    n_bytes = tensor_type.n_bytes(n_elements)
    if n_elements > MAX_ELEMENTS or n_bytes > MAX_TENSOR_BYTES:
        raise source.damaged(
            "gguf_tensor_overflow", f"the tensor '{name}' claims the impossible shape {shape}"
        )
    if shape[0] % tensor_type.block_elements:
        raise source.damaged(
            "gguf_bad_row",
            f"rows of the tensor '{name}' are no multiple of {tensor_type.block_elements}, as "
            f"its type {tensor_type.name} needs",
        )
    return n_bytes
