"""The command line as a Windows console or script meets it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.models import make_model

assert sys.platform == "win32"

ROOT = Path(__file__).resolve().parents[2]


def rigtune(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command line with pipes, as a script would, under the user's code page."""
    environment = {**os.environ, "RIGTUNE_HOME": str(tmp_path / "home")}
    environment.pop("PYTHONUTF8", None)
    environment.pop("PYTHONIOENCODING", None)
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=environment,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0),
        (("no-such-command",), 2),
        (("inspect", "C:\\nirgends\\模型.gguf"), 3),
        (("inspect", "nirgends:模型"), 3),
        (("inspect", "C:\\"), 3),
    ],
)
def test_exit_codes(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    """The codes of the manual, whatever letters the arguments have."""
    done = rigtune(tmp_path, *arguments)
    assert done.returncode == code, done.stderr.decode()


def test_text_is_utf8(tmp_path: Path) -> None:
    """Human text and JSON come as UTF-8 through a pipe, whatever the code page."""
    name = "Größe 模型.gguf"
    path = make_model(tmp_path / name, "llama")
    problem = rigtune(tmp_path, "inspect", str(tmp_path / "fehlt 模型.gguf"))
    assert "fehlt 模型.gguf" in problem.stderr.decode("utf-8")
    shown = rigtune(tmp_path, "inspect", str(path))
    assert shown.returncode == 0
    document = json.loads(rigtune(tmp_path, "inspect", str(path), "--json").stdout)
    assert document["schema"] == "rigtune.model/1"


def test_json_problem_is_one_document(tmp_path: Path) -> None:
    """A script gets exactly one JSON document, with the path as it was typed."""
    done = rigtune(tmp_path, "inspect", "D:\\fehlt\\模型.gguf", "--json")
    assert done.returncode == 3
    assert "D:\\fehlt\\模型.gguf" in json.loads(done.stdout)["error"]["message"]
