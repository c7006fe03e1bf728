"""The hosted checks can at least be read, and name only what this checkout has."""

import importlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

yaml: Any = importlib.import_module("yaml")  # without stubs for the type checker

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OURS = re.compile(r"(?<![\w./\\-])(?:packaging|tests|benchmarks|\.ci)[/\\][\w./\\*-]*")
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def jobs(path: Path) -> dict[str, Any]:
    """Return the jobs of a workflow."""
    document = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(document["jobs"], dict)
    return document["jobs"]


def test_workflows_are_found() -> None:
    """The suite, the Windows programs and the release have one each."""
    assert {path.stem for path in WORKFLOWS} == {"ci", "release", "windows"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_is_yaml_with_steps(path: Path) -> None:
    """A file that is no YAML is a workflow that never runs: each job has a machine and steps."""
    for job in jobs(path).values():
        assert job["runs-on"]
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_named_files_exist(path: Path) -> None:
    """Every file of ours that a workflow names is in the checkout."""
    named = {found.replace("\\", "/") for found in OURS.findall(path.read_text("utf-8"))}
    assert named
    assert [name for name in sorted(named) if not list(ROOT.glob(name))] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path: Path) -> None:
    """An action is taken by its commit, with the version it stands for."""
    lines = re.findall(r"uses: (.*)", path.read_text("utf-8"))
    assert lines
    assert [line for line in lines if not PINNED.fullmatch(line)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_shell_steps_parse(path: Path) -> None:
    """Steps for a Unix shell are free of syntax errors."""
    if (shell := shutil.which("sh")) is None:
        pytest.skip("needs a Unix shell")
    for job in jobs(path).values():
        default = job.get("defaults", {}).get("run", {}).get("shell")
        unix = default == "bash" or not job["runs-on"].startswith("windows")
        for step in job["steps"]:
            if unix and "run" in step and step.get("shell", "bash") == "bash":
                done = subprocess.run(
                    [shell, "-n"], input=step["run"], text=True, capture_output=True, check=False
                )
                assert done.returncode == 0, done.stderr
