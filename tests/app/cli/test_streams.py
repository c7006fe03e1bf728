"""A standard stream that is closed, full or without a reader is no bug in RigTune."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.main import report_interrupt
from app.cli.output import EXIT_DONE, EXIT_PARTIAL, EXIT_PROBLEM
from tests.fakes.models import make_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="redirections of a POSIX shell")


@pytest.fixture
def shell(tmp_path: Path) -> "Shell":
    return Shell(tmp_path, make_model(tmp_path / "m.gguf"))


class Shell:
    """Runs ``rigtune`` in a shell with redirections."""

    def __init__(self, home: Path, model: Path) -> None:
        self._env = os.environ | {"RIGTUNE_HOME": str(home / "home"), "MODEL": str(model)}

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        line = line.replace("rigtune", f"'{sys.executable}' -m app")
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            env=self._env, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip


@pytest.mark.parametrize("form", ["", "--json"])
def test_closed_stdout_is_not_a_bug(shell: Shell, form: str) -> None:
    """Whoever closed stdout does not want the answer; nothing else goes wrong."""
    done = shell.run(f'rigtune inspect "$MODEL" {form} >&- <&-')
    assert (done.returncode, done.stderr) == (EXIT_DONE, "")


def test_a_full_stderr_costs_the_progress_only(shell: Shell) -> None:
    """The error still ends with its own exit code."""
    assert shell.run("rigtune inspect nowhere.gguf 2>/dev/full").returncode == EXIT_PROBLEM


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_full_disk_behind_stdout_is_told(shell: Shell, form: str) -> None:
    """One sentence on stderr and the exit code of a problem the user can act on."""
    done = shell.run(f'rigtune inspect "$MODEL" {form} >/dev/full')
    assert done.returncode == EXIT_PROBLEM
    assert "No space left" in done.stderr


def test_a_reader_who_left_is_no_error(shell: Shell) -> None:
    """``rigtune … | head -1`` ends as if all had been read."""
    done = shell.run("rigtune power | true")
    assert (done.returncode, done.stderr) == (EXIT_DONE, "")


def test_a_refusal_is_json_where_json_was_asked(shell: Shell) -> None:
    """A home that cannot be written leaves one error document on stdout."""
    done = shell.run("RIGTUNE_HOME=/proc/none rigtune doctor --json")
    assert done.returncode in {EXIT_DONE, EXIT_PROBLEM}
    assert isinstance(json.loads(done.stdout), dict)


def test_an_interrupted_command_still_prints_its_document(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """``--json`` promises a document, also after Ctrl-C before there was a result."""
    assert report_interrupt(as_json=True) == EXIT_PARTIAL
    assert json.loads(capsysbinary.readouterr().out)["error"]["code"] == "interrupted"
