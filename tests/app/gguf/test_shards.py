"""Split models: found from any part, complete or named."""

from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.gguf.reader import read_model
from tests.fakes.gguf_bytes import STRING, U16, U32, gguf_file, pair, small_llama
from tests.fakes.models import make_model


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A model in three parts."""
    return make_model(tmp_path / "m-00001-of-00003.gguf", n_shards=3, n_layer=2)


def problem_of(path: Path) -> EnvironmentProblem:
    with pytest.raises(EnvironmentProblem) as caught:
        read_model(path)
    return caught.value


def test_all_parts_are_summed(first: Path, tmp_path: Path) -> None:
    """The tensors of all parts make up the same model as a single file."""
    split = read_model(first)
    whole = read_model(make_model(tmp_path / "whole.gguf", n_layer=2))
    assert split.split_count == 3
    assert [Path(f).name for f in split.files] == [f"m-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    assert split.weights_bytes == whole.weights_bytes
    assert {t.name for t in split.tensors} == {t.name for t in whole.tensors}
    assert split.file_bytes == sum(Path(f).stat().st_size for f in split.files)


def test_a_later_part_leads_to_the_first(first: Path) -> None:
    """Whichever part is opened, the model is the same; the part opened is remembered."""
    later = read_model(first.with_name("m-00003-of-00003.gguf"))
    assert later.path == str(first)
    assert later.split_index == 2
    assert later.fingerprint == read_model(first).fingerprint


def test_missing_parts_are_named(first: Path) -> None:
    """A missing part is called by its name."""
    first.with_name("m-00002-of-00003.gguf").unlink()
    problem = problem_of(first)
    assert problem.info.code == "gguf_shard_missing"
    assert "m-00002-of-00003.gguf" in problem.info.message


def test_renamed_part_is_explained(first: Path) -> None:
    """A part whose name lost its number cannot find the others."""
    assert problem_of(first.rename(first.with_name("m.gguf"))).info.code == "gguf_shard_name"


def test_part_of_another_model_is_noticed(first: Path, tmp_path: Path) -> None:
    """Parts of different models do not mix."""
    (tmp_path / "other").mkdir()
    other = make_model(tmp_path / "other" / "m-00001-of-00003.gguf", n_shards=3, n_layer=1)
    other.with_name("m-00003-of-00003.gguf").replace(first.with_name("m-00003-of-00003.gguf"))
    assert problem_of(first).info.code in {"gguf_shard_mismatch", "gguf_duplicate_tensor"}


@pytest.mark.parametrize("count", [0, 1])
def test_count_of_zero_or_one_is_a_single_file(tmp_path: Path, count: int) -> None:
    """Merged files keep their split keys with a count of 0 or 1."""
    path = tmp_path / "m-00001-of-00001.gguf"
    path.write_bytes(small_llama([pair("split.no", U16, 0), pair("split.count", U16, count)]))
    spec = read_model(path)
    assert (spec.split_index, spec.split_count) == (0, 1)


def test_old_split_keys_count_too(tmp_path: Path) -> None:
    """Early split files used other keys."""
    path = tmp_path / "m-00001-of-00013.gguf"
    path.write_bytes(
        small_llama([pair("general.split", U32, 0), pair("general.split_count", U32, 13)])
    )
    problem = problem_of(path)
    assert problem.info.code == "gguf_shard_missing"
    assert "12 of them are missing" in problem.info.message
    assert "m-00002-of-00013.gguf" in problem.info.message


@pytest.mark.parametrize(("number", "count"), [(65535, 65535), (7, 3), (0, 60000)])
def test_impossible_split_is_refused(tmp_path: Path, number: int, count: int) -> None:
    """Absurd part numbers end before the disk is searched for thousands of files."""
    path = tmp_path / "m-00001-of-00003.gguf"
    pairs = [pair("general.architecture", STRING, "llama"), pair("split.count", U16, count)]
    path.write_bytes(gguf_file([*pairs, pair("split.no", U16, number)]))
    assert problem_of(path).info.code == "gguf_shard_mismatch"
