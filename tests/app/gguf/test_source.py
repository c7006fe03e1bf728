"""What cannot be opened or changes meanwhile is told apart."""

import os
import sys
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.gguf.source import Source


def problem_of(path: Path) -> ErrorInfo:
    with pytest.raises(EnvironmentProblem) as caught:
        Source(path)
    assert caught.value.info.hint
    return caught.value.info


def code_of(path: Path) -> str:
    return problem_of(path).code


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    """Missing, folder, empty and dangling paths have their own codes."""
    (tmp_path / "empty.gguf").touch()
    assert code_of(tmp_path / "none.gguf") == "model_not_found"
    assert code_of(tmp_path) == "model_is_directory"
    assert code_of(tmp_path / "empty.gguf") == "gguf_empty"
    assert code_of(Path("bad\0name.gguf")) == "model_unreadable"


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in the file system")
def test_pipe_does_not_block(tmp_path: Path) -> None:
    """A named pipe is refused without opening it, which would wait for a writer."""
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    assert code_of(pipe) == "model_not_a_file"
    assert problem_of(pipe).message == "pipe.gguf is a pipe, not a file."
    assert "is a device or a socket" in problem_of(Path(os.devnull)).message


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_link_that_leads_nowhere_names_its_target(tmp_path: Path) -> None:
    """A dead link and one that leads to itself are told from a path that is not there."""
    for target in ("gone.gguf", "link.gguf"):
        link = tmp_path / "link.gguf"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        problem = problem_of(link)
        assert problem.code == "model_not_found"
        assert problem.message == f"link.gguf is a link to {target}, where there is no file."


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="permissions do not bind this user"
)
def test_file_without_read_permission(tmp_path: Path) -> None:
    """A file the user may not read says so."""
    path = tmp_path / "secret.gguf"
    path.write_bytes(b"GGUF")
    path.chmod(0)
    assert code_of(path) == "model_unreadable"


def test_permission_denied_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal of the system ends in the same error for every user."""

    def refuse(*_args: object, **_kwargs: object) -> object:
        raise PermissionError

    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setattr(Path, "open", refuse)
    assert code_of(path) == "model_unreadable"


def test_file_that_grows_is_noticed(tmp_path: Path) -> None:
    """A file written to after opening is reported as changed."""
    path = tmp_path / "model.gguf"
    path.write_bytes(bytes(100))
    with Source(path) as source:
        source.check_unchanged()
        path.write_bytes(bytes(200))
        with pytest.raises(EnvironmentProblem) as caught:
            source.check_unchanged()
    assert caught.value.info.code == "gguf_changed"


def test_file_that_shrinks_is_noticed(tmp_path: Path) -> None:
    """A file cut after opening ends in an error, never in a signal."""
    path = tmp_path / "model.gguf"
    path.write_bytes(bytes(100))
    with Source(path) as source:
        os.truncate(path, 10)
        with pytest.raises(EnvironmentProblem) as caught:
            source.move_to(50, 8)
    assert caught.value.info.code == "gguf_changed"


def test_header_beyond_any_real_size_is_refused(tmp_path: Path) -> None:
    """Reading stops where no real header reaches, in a sparse file too."""
    path = tmp_path / "model.gguf"
    path.touch()
    os.truncate(path, 1 << 33)
    with Source(path) as source, pytest.raises(EnvironmentProblem) as caught:
        source.move_to(1 << 32, 8)
    assert caught.value.info.code == "gguf_header_too_large"


@pytest.mark.skipif(sys.platform != "linux", reason="file names are Unicode there")
def test_undecodable_file_name_can_be_said(tmp_path: Path) -> None:
    """The message about a file whose name is not UTF-8 can be encoded."""
    path = tmp_path / os.fsdecode(b"mod\xff.gguf")
    with pytest.raises(EnvironmentProblem) as missing:
        Source(path)
    path.touch()
    with pytest.raises(EnvironmentProblem) as empty:
        Source(path)
    for problem in (missing, empty):
        assert problem.value.info.message.encode()
