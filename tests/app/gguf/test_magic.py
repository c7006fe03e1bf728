"""Files that are something else say what they are."""

from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.gguf.magic import check_magic
from app.gguf.source import Source

SAFETENSORS = (40).to_bytes(8, "little") + b'{"__metadata__":{"format":"pt"}}        ' + bytes(64)

FOREIGN = [
    (b"<!DOCTYPE html><html lang='en'>", "gguf_html"),
    (b"\n  <html><body>Sign in", "gguf_html"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "gguf_lfs_pointer"),
    (b'{"error":"Repository not found"}', "gguf_json"),
    (b"PK\x03\x04\x14\x00", "gguf_zip"),
    (b"\x80\x02}q\x00", "gguf_pytorch"),
    (b"\x1f\x8b\x08\x00", "gguf_archive"),
    (b"tjgg\x01\x00\x00\x00", "gguf_old_format"),
    (SAFETENSORS, "gguf_safetensors"),
    (bytes(range(7, 71)), "gguf_not_gguf"),
    (b"FUGG\x00\x00\x00\x03", "gguf_reversed_magic"),
    (b"GGUF\x00\x00\x00\x03" + bytes(16), "gguf_big_endian"),
    (b"GGUF\x01\x00\x00\x00" + bytes(16), "gguf_version_unsupported"),
    (b"GGUF\x04\x00\x00\x00" + bytes(16), "gguf_version_unsupported"),
    (b"GGUF\x00\x00\x00\x00" + bytes(16), "gguf_version_unsupported"),
    (b"GGU", "gguf_incomplete"),
    (b"GGUF\x03", "gguf_incomplete"),
]


@pytest.mark.parametrize(("content", "code"), FOREIGN)
def test_foreign_file_is_named(tmp_path: Path, content: bytes, code: str) -> None:
    """The first bytes tell what the file is, and the error says it with a hint."""
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with Source(path) as source, pytest.raises(EnvironmentProblem) as caught:
        check_magic(source)
    assert caught.value.info.code == code
    assert caught.value.info.hint


@pytest.mark.parametrize("version", [2, 3])
def test_current_versions_pass(tmp_path: Path, version: int) -> None:
    """Versions 2 and 3 are accepted."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + version.to_bytes(4, "little") + bytes(16))
    with Source(path) as source:
        assert check_magic(source) == version


def test_later_piece_of_a_cut_file_hints_at_joining(tmp_path: Path) -> None:
    """The second piece of a cut file does not start with the magic; the name explains it."""
    path = tmp_path / "big.gguf.part2of2"
    path.write_bytes(bytes(64))
    with Source(path) as source, pytest.raises(EnvironmentProblem) as caught:
        check_magic(source)
    assert "part 2 of 2" in caught.value.info.hint
