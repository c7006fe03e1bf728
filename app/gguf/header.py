"""Parses the header of one GGUF file: counts, metadata and tensor table.

Layout (ggml/src/gguf.cpp): ``GGUF``, u32 version, u64 tensors, u64 pairs; pairs are string key,
u32 type, value; strings are u64 length and bytes; arrays are u32 type, u64 length, elements.
Everything is little-endian.
"""

import struct
from pathlib import Path
from typing import NamedTuple

from app.domain.errors import EnvironmentProblem
from app.domain.model import TensorInfo
from app.gguf.cursor import Cursor
from app.gguf.magic import check_magic
from app.gguf.metadata import (
    ARRAY,
    MAX_STRING_BYTES,
    STRING,
    VALUE_FORMATS,
    ArrayValue,
    LongString,
    Metadata,
    Value,
    decode,
    printable,
)
from app.gguf.source import MAX_HEADER_BYTES, Source
from app.gguf.tensor_table import MAX_TENSORS, MIN_TENSOR_BYTES, check_data, read_tensors

MAX_PAIRS = 16_384
MAX_KEY_BYTES = 65_535
MAX_ALIGNMENT = 1 << 16
DEFAULT_ALIGNMENT = 32
MAX_TEXT_BYTES = 8 << 20
"""All scalar strings together."""

_ALIGNMENT = "general.alignment"
_U32 = 4
_ARRAY_HEAD = struct.Struct("<IQ")
_SCALARS = {kind: struct.Struct("<" + code) for kind, code in VALUE_FORMATS.items()}

_MIN_PAIR_BYTES = 14
"""Key length, one byte of key, type, one byte of value."""


class Header(NamedTuple):
    """The parsed header of one file.

    Attributes:
        path: The file.
        version: GGUF version.
        metadata: Its pairs.
        tensors: Its tensor table.
        data_pos: Where the data section starts; equals the header's padded length.
        file_bytes: Size of the file.
    """

    path: Path
    version: int
    metadata: Metadata
    tensors: tuple[TensorInfo, ...]
    data_pos: int
    file_bytes: int


def read_header(source: Source) -> Header:
    """Return the header of ``source``, checked against the size of the file.

    Raises:
        EnvironmentProblem: The file is not a readable, complete GGUF.
    """
    version = check_magic(source)
    cursor = Cursor(source, 8)
    n_tensors, n_pairs = cursor.u64(), cursor.u64()
    cursor.check_count("tensors", n_tensors, MAX_TENSORS, MIN_TENSOR_BYTES)
    cursor.check_count("metadata entries", n_pairs, MAX_PAIRS, _MIN_PAIR_BYTES)
    metadata = Metadata(source.path, _read_pairs(cursor, n_pairs))
    alignment = _alignment(source, metadata)
    tensors, offsets = read_tensors(cursor, n_tensors)
    data_pos = cursor.pos + -cursor.pos % alignment
    check_data(source, tensors, offsets, data_pos, alignment)
    return Header(source.path, version, metadata, tensors, data_pos, source.size)


def _read_pairs(cursor: Cursor, n_pairs: int) -> dict[str, Value]:
    values: dict[str, Value] = {}
    n_text_bytes = 0
    for index in range(n_pairs):
        length = cursor.length(f"metadata key {index}", MAX_KEY_BYTES)
        key = decode(cursor.take(length))
        shown = printable(key)
        if not key:
            raise cursor.source.damaged("gguf_empty_key", f"metadata key {index} is empty")
        if key in values:
            raise cursor.source.damaged(
                "gguf_duplicate_key", f"the metadata key '{shown}' occurs twice"
            )
        kind = cursor.u32()
        if key == _ALIGNMENT and kind != _U32:
            raise cursor.source.damaged("gguf_key_type", f"'{key}' must be of type u32")
        value = _read_value(cursor, shown, kind)
        n_text_bytes += length + (len(value) if isinstance(value, str) else 0)
        if n_text_bytes > MAX_TEXT_BYTES:
            raise cursor.source.damaged("gguf_metadata_too_large", "it holds too much text")
        values[key] = value
    return values


def _read_value(cursor: Cursor, key: str, kind: int) -> Value:
    if kind == STRING:
        return _read_string(cursor, key)
    if kind == ARRAY:
        return _locate_array(cursor, key)
    layout = _SCALARS.get(kind)
    if layout is None:
        raise _unknown_type(cursor.source, key, kind)
    value = layout.unpack(cursor.take(layout.size))[0]
    assert isinstance(value, (int, float))
    return value


def _read_string(cursor: Cursor, key: str) -> str | LongString:
    length = cursor.length(f"the text of '{key}'", MAX_HEADER_BYTES)
    if length > MAX_STRING_BYTES:
        cursor.skip(length)
        return LongString(length)
    return decode(cursor.take(length))


def _locate_array(cursor: Cursor, key: str) -> ArrayValue:
    kind, n_elements = _ARRAY_HEAD.unpack(cursor.take(_ARRAY_HEAD.size))
    pos = cursor.pos
    if kind == STRING:
        cursor.skip_strings(key, n_elements)
    else:
        layout = _SCALARS.get(kind)
        if layout is None:
            raise _unknown_type(cursor.source, key, kind)
        cursor.skip_numbers(key, n_elements, layout.size)
    return ArrayValue(kind, n_elements, pos)


def _unknown_type(source: Source, key: str, kind: int) -> EnvironmentProblem:
    return source.damaged("gguf_unknown_value_type", f"'{key}' has the unknown value type {kind}")


def _alignment(source: Source, metadata: Metadata) -> int:
    value = metadata.integer(_ALIGNMENT)
    if value is None:
        return DEFAULT_ALIGNMENT
    if value == 0 or value & (value - 1) or value > MAX_ALIGNMENT:
        raise source.damaged(
            "gguf_bad_alignment",
            f"its alignment is {value}, not a power of two up to {MAX_ALIGNMENT}",
        )
    return value
