"""How RigTune starts its own programs from a virtual environment on Windows."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.runtime import sibling_command, sibling_environment

assert sys.platform == "win32"


def test_environment_is_kept_without_its_starter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that is started is the interpreter itself, and it knows its environment."""
    base = sys._base_executable
    starter = tmp_path / "env" / "Scripts" / "python.exe"
    starter.parent.mkdir(parents=True)
    starter.touch()
    config = f"home = {Path(base).parent}\nversion = {sys.version.split()[0]}\n"
    (tmp_path / "env" / "pyvenv.cfg").write_text(config, encoding="utf-8")
    monkeypatch.setattr(sys, "executable", str(starter))
    program = sibling_command("worker")[0]
    done = subprocess.run(
        [program, "-c", "import sys; print(sys.prefix)"],
        env=sibling_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert program == base
    assert Path(done.stdout.strip()) == tmp_path / "env"
