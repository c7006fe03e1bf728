"""Whatever the bytes, reading ends in a model or in our own error."""

import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import EnvironmentProblem
from app.domain.model import ModelSpec
from app.gguf.reader import read_model
from tests.fakes.gguf_bytes import I32, STRING, U32, array, pair, small_llama

PAIRS = [
    array("llama.attention.head_count_kv", I32, [1]),
    array("tokenizer.ggml.tokens", STRING, ["<s>", "a", "b", "c"]),
    pair("llama.attention.sliding_window", U32, 16),
    pair("split.count", U32, 1),
    pair("llama.ssm.conv_kernel", U32, 4),
]
WHOLE = small_llama(PAIRS)
HEADER_BYTES = len(WHOLE) - 384
INTERESTING = [0, 1, 0x7F, 0x80, 0xFF]


def read(content: bytes) -> ModelSpec | None:
    """Return the model, or ``None`` when it was refused properly."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m-00001-of-00002.gguf"
        path.write_bytes(content)
        with contextlib.suppress(EnvironmentProblem):
            return read_model(path)
    return None


def test_the_undamaged_file_is_read() -> None:
    """The starting point of the damage is a model."""
    assert read(WHOLE) is not None


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, HEADER_BYTES - 1), st.sampled_from(INTERESTING) | st.integers(0, 255)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_flipped_bytes(changes: list[tuple[int, int]]) -> None:
    """Damaged bytes anywhere in the header never raise anything but our own error."""
    content = bytearray(WHOLE)
    for pos, value in changes:
        content[pos] = value
    read(bytes(content))


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, HEADER_BYTES - 8),
    st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]),
)
def test_extreme_numbers(pos: int, value: int) -> None:
    """Counts, lengths and offsets at the edges of their types are refused or harmless."""
    read(WHOLE[:pos] + value.to_bytes(8, "little") + WHOLE[pos + 8 :])


@settings(max_examples=100, deadline=None)
@given(st.integers(1, len(WHOLE)), st.binary(max_size=64))
def test_cut_and_continued(kept: int, rest: bytes) -> None:
    """A cut file, with or without foreign bytes after it."""
    read(WHOLE[:kept] + rest)


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=1, max_size=300))
def test_any_bytes_after_the_magic(rest: bytes) -> None:
    """Random headers."""
    read(b"GGUF\x03\x00\x00\x00" + rest)
