"""The helper as it is shipped: a small folder of its own, useless where it is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.power.protocol import Bye, decode_reply

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "rigtune-power-helper.exe" if os.name == "nt" else "rigtune-power-helper"

pytestmark = pytest.mark.frozen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("helper")
    build = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    places = [f"--distpath={place / 'dist'}", f"--workpath={place / 'work'}"]
    built = subprocess.run(
        [*build, *places, str(ROOT / "packaging" / "power" / "helper.spec")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYINSTALLER_CONFIG_DIR": str(place / "config")},
    )
    assert built.returncode == 0, built.stderr[-4000:]
    return place / "dist" / "rigtune-power"


@pytest.mark.skipif(sys.platform == "win32", reason="it would show the elevation prompt")
def test_built_helper_refuses_outside_its_place(folder: Path) -> None:
    """Where it was not installed by an administrator it does nothing, even for root."""
    done = subprocess.run([folder / PROGRAM], input=b"", capture_output=True, check=False)
    assert done.returncode == 2, done.stderr
    assert decode_reply(done.stdout) == Bye(reason="not_allowed")


def test_nothing_of_rigtune_but_the_protocol_is_inside(folder: Path) -> None:
    """No window, no engine, no network library travels with the program that runs as root."""
    names = {p.name.lower() for p in folder.rglob("*")}
    unwanted = ("pyside", "qt6", "llama", "numpy", "psutil", "_ssl", "libssl")
    assert not [n for n in names for part in unwanted if part in n]
    assert sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) < 60e6
