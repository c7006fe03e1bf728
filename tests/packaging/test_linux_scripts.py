"""The Linux installer and the single file, run by the system's shell on a stand-in bundle."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shell scripts for Linux")

SCRIPTS = Path(__file__).resolve().parents[2] / "packaging" / "linux"
MARKER = "previous-engine-in-use"
PROGRAM = """#!/bin/sh
[ "${{1:-}}" = --version ] && echo "rigtune {version}" && exit {code}
printf '%s|' "$@"
"""


def stage(folder: Path, version: str, code: int = 0) -> Path:
    """Make what an archive unpacks to, with programs that only say their version."""
    program = folder / "rigtune"
    for name in ("_internal/PySide6/Qt.so", "_internal/llama_cpp/libllama.so"):
        (program / name).parent.mkdir(parents=True, exist_ok=True)
        (program / name).write_text(version, "utf-8")
    for name in ("rigtune", "rigtune-gui"):
        (program / name).write_text(PROGRAM.format(version=version, code=code), "utf-8")
        (program / name).chmod(0o755)
    (folder / "share" / "icons" / "hicolor").mkdir(parents=True)
    shutil.copy(SCRIPTS / "rigtune.desktop", folder / "share")
    shutil.copy(SCRIPTS / "org.rigtune.rigtune.metainfo.xml", folder / "share")
    shutil.copy(SCRIPTS / "install.sh", folder)
    (folder / "minimum.txt").write_text("glibc 2.34\n", "utf-8")
    (folder / "window-libraries.txt").write_text("libnot-there.so.9 libnot-there9\n", "utf-8")
    return folder


class User:
    """A home folder with an odd name."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path / "Jürgen $HOME `模型` 100%"
        self.home.mkdir()
        self.program = self.home / ".local" / "lib" / "rigtune"
        self.data = self.home / ".local" / "share" / "rigtune"

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        env = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        return subprocess.run(command, capture_output=True, check=False, env=env, text=True)

    def install(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("sh", folder / "install.sh", *arguments)

    def version(self, folder: str = "") -> str:
        return self.run(self.program / folder / "rigtune", "--version").stdout.strip()


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def test_install_and_remove(user: User, tmp_path: Path) -> None:
    """Program, links and menu entry appear and go; results stay until they are asked for."""
    done = user.install(stage(tmp_path / "v1", "1.0.0"))
    assert done.returncode == 0, done.stderr
    assert "libnot-there9" in done.stdout
    link = user.home / ".local" / "bin" / "rigtune"
    assert user.run(link, "--version").stdout == "rigtune 1.0.0\n"
    entry = (user.home / ".local/share/applications/rigtune.desktop").read_text("utf-8")
    (line,) = [x for x in entry.splitlines() if x.startswith("Exec=")]
    assert "\\$HOME" in line
    assert "100%%" in line
    user.data.mkdir()
    removed = user.run("sh", user.program / "uninstall.sh", "--remove")
    assert removed.returncode == 0, removed.stderr
    assert not user.program.exists()
    assert not link.is_symlink()
    assert user.data.is_dir()
    user.install(tmp_path / "v1")
    assert user.install(tmp_path / "v1", "--remove", "--data").returncode == 0
    assert not user.data.exists()


def test_an_upgrade_keeps_the_engine_that_it_replaces(user: User, tmp_path: Path) -> None:
    """The older console program stays with its engine and without Qt; installing again keeps it."""
    user.install(stage(tmp_path / "v1", "1.0.0"))
    user.install(stage(tmp_path / "v2", "2.0.0"))
    user.install(tmp_path / "v2")
    assert (user.version(), user.version("previous")) == ("rigtune 2.0.0", "rigtune 1.0.0")
    kept = user.program / "previous"
    assert (kept / "_internal" / "llama_cpp" / "libllama.so").read_text("utf-8") == "1.0.0"
    assert not (kept / "_internal" / "PySide6").exists()
    user.install(stage(tmp_path / "v3", "3.0.0"))
    assert user.version("previous") == "rigtune 2.0.0"
    assert not (kept / "previous").exists()


@pytest.mark.parametrize("why", ["went back", "does not start"])
def test_a_good_engine_is_not_replaced_by_a_bad_one(user: User, tmp_path: Path, why: str) -> None:
    """Who went back to the earlier engine, or whose new one never started, keeps the earlier."""
    user.install(stage(tmp_path / "v1", "1.0.0"))
    user.install(stage(tmp_path / "v2", "2.0.0"))
    if why == "went back":
        user.data.mkdir(exist_ok=True)
        (user.data / MARKER).touch()
    else:
        broken = PROGRAM.format(version="2.0.0", code=1)
        (user.program / "rigtune").write_text(broken, "utf-8")
    user.install(stage(tmp_path / "v3", "3.0.0"))
    assert (user.version(), user.version("previous")) == ("rigtune 3.0.0", "rigtune 1.0.0")


def test_what_does_not_start_is_not_installed(user: User, tmp_path: Path) -> None:
    """The older version stays whole, and the sentence says what the system must have."""
    user.install(stage(tmp_path / "v1", "1.0.0"))
    done = user.install(stage(tmp_path / "v2", "2.0.0", code=1))
    assert done.returncode == 1
    assert "glibc 2.34" in done.stderr
    assert user.version() == "rigtune 1.0.0"


def single(folder: Path, target: Path, keep: float = 1.0) -> Path:
    """Make the single file of a bundle, or only the first part of it."""
    tar = ["tar", "-C", str(folder.parent), "-czf", "-", folder.name]
    payload = subprocess.run(tar, capture_output=True, check=True).stdout
    head = (SCRIPTS / "single.sh").read_text("utf-8")
    head = head.replace("@SUM@", folder.name).replace("@LINE@", str(head.count("\n") + 1))
    target.write_bytes(head.encode() + payload[: round(len(payload) * keep)])
    target.chmod(0o755)
    return target


def test_single_file_unpacks_once_and_passes_its_arguments(user: User, tmp_path: Path) -> None:
    """The second start unpacks nothing; a newer file takes the older one's place."""
    first = single(stage(tmp_path / "v1", "1.0.0"), tmp_path / "rigtune 一.run")
    done = user.run(first, "tune", "my model.gguf", "")
    assert (done.returncode, done.stdout) == (0, "tune|my model.gguf||")
    assert "unpacks" in done.stderr
    assert user.run(first, "--version").stderr == ""
    second = single(stage(tmp_path / "v2", "2.0.0"), tmp_path / "two.run")
    assert user.run("sh", second, "--version").stdout == "rigtune 2.0.0\n"
    run = user.home / ".cache" / "rigtune" / "run"
    assert [p.name for p in run.iterdir()] == ["v2"]
    assert user.run(second, "--install").returncode == 0
    assert user.version() == "rigtune 2.0.0"


def test_single_file_that_is_incomplete_is_a_sentence(user: User, tmp_path: Path) -> None:
    """A download that broke off leaves nothing behind that a later start would take for whole."""
    part = single(stage(tmp_path / "v1", "1.0.0"), tmp_path / "part.run", keep=0.5)
    for _ in range(2):
        done = user.run(part, "--version")
        assert done.returncode == 1
        assert "incomplete" in done.stderr
    assert list((user.home / ".cache" / "rigtune" / "run").iterdir()) == []


def test_single_file_on_a_system_that_is_too_old_is_a_sentence(user: User, tmp_path: Path) -> None:
    """What does not start is not kept, and the sentence says what the system must have."""
    made = single(stage(tmp_path / "v1", "1.0.0", code=1), tmp_path / "a.run")
    done = user.run(made, "--version")
    assert done.returncode == 1
    assert "glibc 2.34" in done.stderr
    assert list((user.home / ".cache" / "rigtune" / "run").iterdir()) == []


def test_single_file_without_a_place_to_unpack_is_a_sentence(user: User, tmp_path: Path) -> None:
    """Where the cache cannot be made, the sentence names the place."""
    (user.home / ".cache").write_text("a file", "utf-8")
    done = user.run(single(stage(tmp_path / "v1", "1.0.0"), tmp_path / "a.run"), "--version")
    assert done.returncode == 1
    assert str(user.home) in done.stderr
