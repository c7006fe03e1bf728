"""Every malformation of a header ends in its own error, before anything is believed.

Every known kind of bad file and the tests that hold it, here unless another file is named:

==== ==================================================================================
E01  zero dimension (2), empty key, no tensor name
E02  product (2), size wraps, padding wraps
E04  alignment (4)
E06  absurd tensor count, absurd pair count, more pairs than bytes
E08  data_past_the_end, header_cut_anywhere, part_of_a_cut_file; test_source: paths (0 bytes)
E09  test_magic: gguf_html, gguf_lfs_pointer
E10  test_magic: gguf_big_endian, gguf_reversed_magic
E11  version_2; test_magic: gguf_version_unsupported
E13  bytes_that_are_no_utf8
E14  test_reader: vocabulary_only_file
E15  test_reader: model_without_first_block
E16  test_reader: projector
E17  test_shards: all
==== ==================================================================================
"""

import struct
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.gguf.header import Header, read_header
from app.gguf.source import Source
from tests.fakes.gguf_bytes import (
    ARRAY,
    BOOL,
    F32,
    F64,
    I32,
    STRING,
    U8,
    U32,
    U64,
    array,
    gguf_file,
    pair,
    small_llama,
    string,
    tensor,
)

ARCH = pair("general.architecture", STRING, "llama")
LENGTH_2_60 = struct.pack("<Q", 1 << 60)


def read(path: Path) -> Header:
    with Source(path) as source:
        return read_header(source)


def problem_of(tmp_path: Path, content: bytes) -> EnvironmentProblem:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(EnvironmentProblem) as caught:
        read(path)
    return caught.value


DAMAGED: dict[str, tuple[bytes, str]] = {
    "zero dimension, no name": (gguf_file([], [tensor("", (1, 0))]), "gguf_zero_dimension"),
    "zero dimension": (gguf_file([ARCH], [tensor("a", (8, 0))]), "gguf_zero_dimension"),
    "no tensor name": (gguf_file([ARCH], [tensor("", (8,))], bytes(32)), "gguf_empty_name"),
    "empty key": (gguf_file([pair("", U32, 1)]), "gguf_empty_key"),
    "product 2^42+1 rows": (
        gguf_file([ARCH], [tensor("token_embd.weight", (1152, (1 << 42) + 1), 8)]),
        "gguf_tensor_overflow",
    ),
    "product beyond int64": (
        gguf_file([ARCH], [tensor("a", ((1 << 63) - 1, 2, 1, 1), 24)]),
        "gguf_tensor_overflow",
    ),
    "size wraps to 4 bytes": (
        gguf_file([ARCH], [tensor("a", ((1 << 64) - 1, 2, 1, 1))]),
        "gguf_tensor_overflow",
    ),
    "padding wraps to 0": (
        gguf_file([ARCH], [tensor("a", ((1 << 62) - 1,)), tensor("b", (4,))]),
        "gguf_tensor_overflow",
    ),
    "alignment 0": (gguf_file([pair("general.alignment", U32, 0)]), "gguf_bad_alignment"),
    "alignment 3": (gguf_file([pair("general.alignment", U32, 3)]), "gguf_bad_alignment"),
    "alignment 2^30": (gguf_file([pair("general.alignment", U32, 1 << 30)]), "gguf_bad_alignment"),
    "alignment i32": (gguf_file([pair("general.alignment", I32, 32)]), "gguf_key_type"),
    "absurd tensor count": (gguf_file([ARCH], n_tensors=(1 << 63) // 300), "gguf_absurd_count"),
    "absurd pair count": (gguf_file([ARCH], n_pairs=(1 << 64) - 1), "gguf_absurd_count"),
    "more pairs than bytes": (gguf_file([ARCH], n_pairs=5000), "gguf_incomplete"),
    "absurd key length": (gguf_file([LENGTH_2_60 + bytes(64)]), "gguf_absurd_length"),
    "absurd string length": (
        gguf_file([string("a") + struct.pack("<I", STRING) + LENGTH_2_60]),
        "gguf_absurd_length",
    ),
    "absurd number array": (
        gguf_file([string("a") + struct.pack("<III", ARRAY, U64, 0) + LENGTH_2_60[4:] + bytes(9)]),
        "gguf_absurd_length",
    ),
    "absurd string array": (
        gguf_file([string("a") + struct.pack("<IIQ", ARRAY, STRING, 2_000_001)]),
        "gguf_absurd_length",
    ),
    "word beyond the file": (
        gguf_file([string("a") + struct.pack("<IIQQ", ARRAY, STRING, 1, 1 << 40)]),
        "gguf_incomplete",
    ),
    "word length 2^64-1": (
        gguf_file([string("a") + struct.pack("<IIQQQ", ARRAY, STRING, 2, (1 << 64) - 1, 0)]),
        "gguf_incomplete",
    ),
    "array of arrays": (
        gguf_file([string("a") + struct.pack("<IIQ", ARRAY, ARRAY, 1) + bytes(16)]),
        "gguf_unknown_value_type",
    ),
    "unknown value type": (
        gguf_file([string("a") + struct.pack("<I", 99) + bytes(16)]),
        "gguf_unknown_value_type",
    ),
    "duplicate key": (gguf_file([ARCH, ARCH]), "gguf_duplicate_key"),
    "duplicate tensor": (
        gguf_file([ARCH], [tensor("a", (8,)), tensor("a", (8,), offset=32)], bytes(64)),
        "gguf_duplicate_tensor",
    ),
    "five dimensions": (gguf_file([ARCH], [tensor("a", (1,) * 5)]), "gguf_bad_dimensions"),
    "long tensor name": (gguf_file([ARCH], [tensor("a" * 64, (8,))]), "gguf_name_too_long"),
    "unknown tensor type": (
        gguf_file([ARCH], [tensor("a", (8,), 999)]),
        "gguf_unknown_tensor_type",
    ),
    "removed tensor type": (gguf_file([ARCH], [tensor("a", (8,), 31)]), "gguf_removed_tensor_type"),
    "row no multiple of 32": (gguf_file([ARCH], [tensor("a", (33,), 8)]), "gguf_bad_row"),
    "gap before a tensor": (
        gguf_file([ARCH], [tensor("a", (8,), offset=64)], bytes(128)),
        "gguf_bad_offset",
    ),
    "too much text": (
        gguf_file([pair(f"k{i}", STRING, "x" * 1_000_000) for i in range(10)]),
        "gguf_metadata_too_large",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_has_its_code(tmp_path: Path, name: str) -> None:
    """Each kind of damage is named by its stable code, with a sentence and a hint."""
    content, code = DAMAGED[name]
    problem = problem_of(tmp_path, content)
    assert problem.info.code == code
    assert "model.gguf" in problem.info.message
    assert problem.info.hint


@pytest.mark.parametrize("kept", [3, 4, 7, 8, 20, 40, 100])
def test_header_cut_anywhere_is_incomplete(tmp_path: Path, kept: int) -> None:
    """A file cut inside its header is called an incomplete download, with its size."""
    problem = problem_of(tmp_path, small_llama()[:kept])
    assert problem.info.code == "gguf_incomplete"
    assert f"{kept} bytes" in problem.info.message


def test_data_past_the_end_names_bytes_and_tensor(tmp_path: Path) -> None:
    """A file cut inside its data says how much is there and which tensor misses first."""
    whole = small_llama()
    problem = problem_of(tmp_path, whole[:-300])
    assert problem.info.code == "gguf_incomplete"
    assert f"{len(whole) - 300} of {len(whole)} bytes" in problem.info.message
    assert "'token_embd.weight'" in problem.info.message


def test_part_of_a_cut_file_hints_at_joining(tmp_path: Path) -> None:
    """A file named like a piece of a larger one says how to join the pieces."""
    path = tmp_path / "big.gguf.part1of2"
    path.write_bytes(small_llama()[:-300])
    with pytest.raises(EnvironmentProblem) as caught:
        read(path)
    assert "part 1 of 2" in caught.value.info.hint
    assert "cat big.gguf.part*of2 > big.gguf" in caught.value.info.hint


def test_version_2_is_read_like_3(tmp_path: Path) -> None:
    """Version 2 has the same layout."""
    path = tmp_path / "old.gguf"
    path.write_bytes(gguf_file([ARCH, pair("x", F32, 0.5)], version=2))
    header = read(path)
    assert header.version == 2
    assert header.metadata.text("general.architecture") == "llama"


def test_values_are_read_and_arrays_located(tmp_path: Path) -> None:
    """Scalars of any type, arrays and tensors are where the format puts them."""
    path = tmp_path / "model.gguf"
    words = [b"\xe2\x96\x81the", b"\x80", b"", b"x" * 300]
    pairs = [
        ARCH,
        pair("a.u8", U8, 7),
        pair("a.flag", BOOL, True),
        pair("a.f64", F64, 2.5),
        array("a.words", STRING, words),
        array("a.heads", I32, [8, 0, 4]),
        pair("general.alignment", U32, 64),
    ]
    tensors = [tensor("t.weight", (32, 2), 2), tensor("t.bias", (3,), 0, 64)]
    path.write_bytes(gguf_file(pairs, tensors, bytes(64 + 12), alignment=64))
    header = read(path)
    assert header.metadata.integer("a.u8") == 7
    assert header.metadata.boolean("a.flag") is True
    assert header.metadata.n_elements("a.words") == 4
    assert header.metadata.integers("a.heads") == (8, 0, 4)
    assert header.data_pos % 64 == 0
    assert [(t.name, t.type, t.shape, t.n_bytes) for t in header.tensors] == [
        ("t.weight", "q4_0", (32, 2), 36),
        ("t.bias", "f32", (3,), 12),
    ]


def test_words_across_windows_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skipping strings is right wherever a window of the file ends."""
    monkeypatch.setattr("app.gguf.source.WINDOW_BYTES", 61)
    path = tmp_path / "model.gguf"
    words = [b"w" * (i * 7 % 90) for i in range(200)]
    path.write_bytes(gguf_file([array("w", STRING, words), pair("after", U32, 42)]))
    assert read(path).metadata.integer("after") == 42


def test_bytes_that_are_no_utf8_survive(tmp_path: Path) -> None:
    """Text that is not UTF-8 is kept without loss and printable on request."""
    path = tmp_path / "model.gguf"
    raw = b"ok \x80\xa1 \xe2\x96\x81"
    path.write_bytes(gguf_file([pair("general.name", STRING, raw), array("w", STRING, [b"\x80"])]))
    metadata = read(path).metadata
    kept = metadata.string("general.name")
    assert kept is not None
    assert kept.encode("utf-8", "surrogateescape") == raw
    assert metadata.text("general.name") == "ok \ufffd\ufffd ▁"
    assert metadata.read_array("w") == ("\udc80",)
