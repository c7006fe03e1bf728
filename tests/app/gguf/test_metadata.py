"""Arrays are read on demand, small ones only."""

from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.gguf.header import read_header
from app.gguf.metadata import Metadata
from app.gguf.source import Source
from tests.fakes.gguf_bytes import F32, I32, STRING, U32, array, gguf_file, pair


@pytest.fixture
def metadata(tmp_path: Path) -> Metadata:
    """Some pairs of a file."""
    path = tmp_path / "model.gguf"
    pairs = [
        pair("n", U32, 3),
        pair("negative", I32, -1),
        pair("long", STRING, "x" * ((1 << 20) + 1)),
        array("heads", U32, [1, 0, 2]),
        array("scores", F32, [0.5, -1.0]),
        array("words", STRING, ["a", "bc", ""]),
        array("vocabulary", U32, [0] * 65_537),
    ]
    path.write_bytes(gguf_file(pairs))
    with Source(path) as source:
        return read_header(source).metadata


def code_of(metadata: Metadata, key: str) -> str:
    with pytest.raises(EnvironmentProblem) as caught:
        metadata.integers(key)
    return caught.value.info.code


def test_arrays_are_read_from_the_file(metadata: Metadata) -> None:
    """Numbers and words come back as written."""
    assert metadata.read_array("scores") == (0.5, -1.0)
    assert metadata.read_array("words") == ("a", "bc", "")
    assert metadata.integers("heads") == (1, 0, 2)


def test_scalar_or_array_per_layer(metadata: Metadata) -> None:
    """A scalar counts for every layer, an array must have one entry per layer."""
    assert metadata.per_layer("n", 2) == (3, 3)
    assert metadata.per_layer("heads", 3) == (1, 0, 2)
    assert metadata.per_layer("absent", 3) is None


def test_unfit_arrays_are_refused(metadata: Metadata) -> None:
    """Too long, absent or of another element type."""
    assert code_of(metadata, "vocabulary") == "gguf_bad_value"
    assert code_of(metadata, "absent") == "gguf_key_type"
    assert code_of(metadata, "n") == "gguf_key_type"
    assert code_of(metadata, "scores") == "gguf_key_type"


def test_negative_counts_are_refused(metadata: Metadata) -> None:
    """Sizes and counts are never negative."""
    with pytest.raises(EnvironmentProblem) as caught:
        metadata.integer("negative")
    assert caught.value.info.code == "gguf_bad_value"


def test_text_beyond_a_megabyte_is_not_kept(metadata: Metadata) -> None:
    """A text no real file has is stepped over and reads as absent."""
    assert "long" in metadata
    assert metadata.text("long") is None
