"""Files on Windows: open ones cannot be replaced, paths are long, odd, and on other drives."""

import os
import shutil
import string
import subprocess
import sys
import threading
import winreg
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import runtime
from app.domain.errors import EnvironmentProblem
from app.domain.settings import Settings
from app.gguf import read_model
from app.rig.lease import Lease
from app.rig.planner import Planner
from app.rig.process import Launch
from app.store import Store
from tests.fakes.models import make_model
from tests.fakes.wine import is_wine

assert sys.platform == "win32"

ROOT = Path(__file__).resolve().parents[2]
ODD_NAME = "Jürgen Müller & 模型 (1)"
LONGER_THAN_MAX_PATH = 300
HOLD = """
import sys
with open(sys.argv[1], "rb"):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[bytes]:
    """Start a process that has ``path`` open for reading."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout
    holder.stdout.readline()
    return holder


def test_file_held_by_another_program_is_kept_whole(tmp_path: Path) -> None:
    """While another process reads the file it cannot be replaced: old content, a sentence."""
    path = tmp_path / "state.json"
    path.write_bytes(b"old")
    holder = hold(path)
    try:
        with pytest.raises(EnvironmentProblem) as caught:
            runtime.atomic_write(path, b"new")
    finally:
        holder.communicate()
    assert str(path) in caught.value.info.message
    assert [p.name for p in tmp_path.iterdir()] == ["state.json"]
    assert path.read_bytes() == b"old"
    runtime.atomic_write(path, b"new")
    assert path.read_bytes() == b"new"


def test_file_held_for_a_moment_is_replaced_after_it(tmp_path: Path) -> None:
    """A virus scanner that looks at the file for an instant costs an instant."""
    path = tmp_path / "state.json"
    path.write_bytes(b"old")
    holder = hold(path)
    release = threading.Timer(0.2, holder.communicate)
    release.start()
    try:
        runtime.atomic_write(path, b"new")
    finally:
        release.join()
    assert path.read_bytes() == b"new"


def test_home_with_odd_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every folder, the database and the lease work below a name of several alphabets."""
    home = tmp_path / ODD_NAME
    monkeypatch.setenv(runtime.HOME_VARIABLE, str(home))
    with Store.open() as store, Lease("tune"):
        assert store.profiles() == ()
    assert (home / "data").is_dir()
    assert (home / "runtime" / "devices.lock").is_file()


def test_home_beyond_max_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of more than 260 characters works where Windows has long paths switched on."""
    home = tmp_path
    while len(str(home)) < LONGER_THAN_MAX_PATH:
        home /= "a folder with a rather long name"
    try:
        home.mkdir(parents=True)
    except OSError:
        pytest.skip("long paths are switched off on this machine")
    monkeypatch.setenv(runtime.HOME_VARIABLE, str(home))
    with Store.open(), Lease("tune"):
        runtime.atomic_write(runtime.data_dir() / "state.json", b"{}")
    assert (home / "data" / "state.json").read_bytes() == b"{}"


@pytest.mark.parametrize("prefix", ["", "\\\\?\\"])
def test_model_is_read_from_odd_and_extended_paths(tmp_path: Path, prefix: str) -> None:
    """The reader opens a model by any form of its path."""
    folder = tmp_path / ODD_NAME
    folder.mkdir()
    path = make_model(folder / "für 你好.gguf", "llama")
    assert read_model(Path(prefix + str(path))).arch == "llama"


def test_model_is_read_by_every_spelling_of_its_drive(tmp_path: Path) -> None:
    """Letters of either case and slashes of either kind name the same file."""
    path = make_model(tmp_path / "m.gguf", "llama")
    first = read_model(path).fingerprint
    drive, rest = path.drive, str(path)[2:]
    for spelled in (f"{drive.upper()}{rest}", f"{drive.lower()}{rest}", path.as_posix()):
        assert read_model(Path(spelled)).fingerprint == first
    spec = read_model(Path(f"{drive.lower()}{rest}"))
    assert Path(spec.path) == path


@pytest.fixture
def share() -> Iterator[Path]:
    """Return a share that Wine serves from its own folder."""
    if not is_wine():
        pytest.skip("needs a share that every machine has")
    folder = Path("Z:", os.environ["WINEPREFIX"], "dosdevices", "unc", "rigtune-test")
    (folder / "models").mkdir(parents=True)
    yield Path(r"\\rigtune-test\models")
    shutil.rmtree(folder)


def test_model_is_read_and_loaded_from_a_share(share: Path) -> None:
    """A UNC path is a path like any other, for our reader and for the engine."""
    path = make_model(share / "für 你好.gguf", "llama")
    assert path.drive == r"\\rigtune-test\models"
    spec = read_model(path)
    planner = Planner(Launch(), spec.path)
    try:
        planned = planner.plan(Settings(n_gpu_layers=0, n_ctx=256, n_threads=1))
    finally:
        planner.release()
    assert isinstance(planned, tuple), planned


def test_share_that_is_not_there_is_a_sentence() -> None:
    """A server that nobody knows ends in a sentence."""
    with pytest.raises(EnvironmentProblem):
        read_model(Path(r"\\no-such-server.invalid\models\m.gguf"))


def test_home_of_a_user_with_an_odd_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without RIGTUNE_HOME everything lies where Windows says, below the user's name."""
    if not is_wine():
        pytest.skip("moves a folder of the user's")
    local = tmp_path / ODD_NAME / "AppData" / "Local"
    local.mkdir(parents=True)
    monkeypatch.delenv(runtime.HOME_VARIABLE, raising=False)
    key = r"Software\Microsoft\Windows\CurrentVersion\Explorer\User Shell Folders"
    with winreg.OpenKey(winreg.HKEY_CURRENT_USER, key, access=winreg.KEY_ALL_ACCESS) as folders:
        before, kind = winreg.QueryValueEx(folders, "Local AppData")
        winreg.SetValueEx(folders, "Local AppData", 0, winreg.REG_SZ, str(local))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "app", "engine", "--json"],
                capture_output=True,
                check=False,
                cwd=ROOT,
            )
        finally:
            winreg.SetValueEx(folders, "Local AppData", 0, kind, before)
    assert done.returncode == 0, done.stderr.decode()
    assert (local / "rigtune" / "rigtune.db").is_file()


def test_reserved_and_missing_places_are_sentences(tmp_path: Path) -> None:
    """Device names, unused drives and forbidden letters end in a sentence, never in a hang."""
    unused = next(d for d in reversed(string.ascii_uppercase) if not Path(f"{d}:\\").exists())
    for name in (f"{unused}:\\models\\m.gguf", str(tmp_path / "a<b>|.gguf"), str(tmp_path / "nul")):
        with pytest.raises(EnvironmentProblem):
            read_model(Path(name))
