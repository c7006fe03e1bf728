"""Folders, versions and sibling programs, from source and from a bundle."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import runtime
from app.domain.errors import EnvironmentProblem

FOLDERS = (runtime.data_dir, runtime.cache_dir, runtime.log_dir, runtime.runtime_dir)


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIGTUNE_HOME", raising=False)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_rigtune_home_holds_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With RIGTUNE_HOME nothing is created anywhere else, and the folders are distinct."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "portable"))
    folders = {folder() for folder in FOLDERS}
    assert len(folders) == len(FOLDERS)
    assert all(f.is_dir() and f.parent == tmp_path / "portable" for f in folders)


def test_folders_follow_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_home: None
) -> None:
    """Without the override the platform's folders carry the program's name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert all("rigtune" in folder().parts for folder in FOLDERS)


@pytest.mark.skipif(sys.platform != "linux", reason="XDG is how Linux names its folders")
def test_runtime_folder_never_lies_under_tmp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_home: None
) -> None:
    """A login folder that is not there leads to the data folder, not to a guessable name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "gone"))
    assert runtime.runtime_dir() == tmp_path / ".local" / "share" / "rigtune" / "runtime"
    login = tmp_path / "login"
    login.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(login))
    assert runtime.runtime_dir() == login / "rigtune"


@pytest.mark.skipif(sys.platform != "linux", reason="the password file is POSIX")
def test_no_home_is_a_sentence(monkeypatch: pytest.MonkeyPatch, no_home: None) -> None:
    """An account without a home folder gets a problem with a hint, and no folder named ~."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", _no_account)
    with pytest.raises(EnvironmentProblem) as caught:
        runtime.data_dir()
    assert caught.value.info.code == "no_home"
    assert "RIGTUNE_HOME" in caught.value.info.hint


def test_unusable_home_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that cannot hold folders (here: it is a file) is reported with its path."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("RIGTUNE_HOME", str(blocked))
    with pytest.raises(EnvironmentProblem) as caught:
        runtime.data_dir()
    assert caught.value.info.code == "not_writable"
    assert str(blocked) in caught.value.info.message


def test_source_siblings_start_from_any_folder(tmp_path: Path) -> None:
    """A source tree's sibling finds the package although it starts elsewhere."""
    command = runtime.sibling_command("worker")
    assert command == [sys.executable, "-m", "app.worker"]
    code = "import app.domain.errors, sys; sys.stdout.write(app.__file__)"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=runtime.sibling_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(result.stdout) == runtime.source_root() / "app" / "__init__.py"


@pytest.mark.parametrize("caller", ["rigtune", "rigtune-gui"])
@pytest.mark.parametrize("suffix", ["", ".exe"])
def test_bundle_siblings_lie_beside_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caller: str, suffix: str
) -> None:
    """In a bundle workers always come from the console program, whoever asks."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / f"{caller}{suffix}"))
    console = str(tmp_path / f"rigtune{suffix}")
    assert runtime.sibling_command("worker") == [console, "--worker"]
    assert runtime.sibling_command("cli") == [console]
    assert runtime.sibling_command("gui") == [str(tmp_path / f"rigtune-gui{suffix}")]
    assert runtime.sibling_environment() == dict(os.environ)


@pytest.mark.parametrize("suffix", ["", ".exe"])
def test_bundle_offers_the_worker_that_an_upgrade_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """It lies in the folder `previous`; without the program in it there is none."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / f"rigtune-gui{suffix}"))
    kept = tmp_path / "previous" / f"rigtune{suffix}"
    kept.parent.mkdir()
    assert runtime.previous_worker() is None
    kept.touch()
    assert runtime.previous_worker() == (str(kept), "--worker")


def test_bundle_reads_assets_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Assets come from the unpacked bundle when frozen, from the tree otherwise."""
    tree = runtime.asset("text/en.toml")
    assert tree.parent.parent.parent == runtime.source_root()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    assert runtime.asset("text/en.toml") == tmp_path / "assets" / "text" / "en.toml"


def test_bundle_finds_engine_modules_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules in the folder `addons` count, the libraries that they need do not."""
    assert runtime.engine_addons() == ()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "rigtune"))
    assert runtime.engine_addons() == ()
    (tmp_path / "addons").mkdir()
    for name in ("libggml-cuda.so", "libcublas.so.13", "ggml-cuda.dll", "cublas64_13.dll"):
        (tmp_path / "addons" / name).touch()
    found = [path.name for path in runtime.engine_addons()]
    assert found == ["ggml-cuda.dll", "libggml-cuda.so"]


def test_bundle_notices_a_file_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a virus scanner took away is named; a source tree has no list and misses nothing."""
    assert runtime.missing_files() == ()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    assert runtime.missing_files() == ()
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp" / "ggml.dll").touch()
    names = "llama_cpp/ggml.dll\nllama_cpp/llama.dll\n"
    (tmp_path / runtime.FILE_LIST).write_text(names, encoding="utf-8")
    assert runtime.missing_files() == ("llama_cpp/llama.dll",)


def test_version_is_the_tree_s_own() -> None:
    """The version is three numbers, taken from the project file of this tree."""
    text = (runtime.source_root() / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{runtime.version()}"' in text


def test_atomic_write_replaces_whole_files(tmp_path: Path) -> None:
    """The new content replaces the old one and nothing else stays in the folder."""
    path = tmp_path / "settings.json"
    runtime.atomic_write(path, b"old")
    runtime.atomic_write(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_write_that_fails_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up costs neither the old content nor leaves a partial file."""
    path = tmp_path / "settings.json"
    runtime.atomic_write(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EnvironmentProblem) as caught:
        runtime.atomic_write(path, b"new")
    assert caught.value.info.code == "disk_full"
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def _no_account(uid: int) -> None:
    msg = "no such account"
    raise KeyError(msg)
