"""A helper that others could have changed is never started."""

import os
import sys
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.power.client import start_helper
from app.power.trust import distrust

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="file modes")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "libexec" / "rigtune-power"
    folder.mkdir(parents=True)
    path = folder / "rigtune-power-helper"
    path.write_text("#!/bin/sh\n")
    library = folder / "_internal" / "lib.so"
    library.parent.mkdir()
    library.write_text("")
    for item in (tmp_path, *tmp_path.rglob("*")):
        item.chmod(0o755)
    return path


def why(program: Path, top: Path) -> str | None:
    return distrust(program, owner=os.geteuid(), top=top)


def test_clean_installation_is_trusted(program: Path, tmp_path: Path) -> None:
    """Owned by the right account, writable by nobody else."""
    assert why(program, tmp_path) is None


@pytest.mark.parametrize("name", ["", "libexec", "libexec/rigtune-power"])
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_writable_parent_is_not_trusted(
    program: Path, tmp_path: Path, name: str, mode: int
) -> None:
    """Whoever may write to a folder on the way can replace what is in it."""
    (tmp_path / name).chmod(mode)
    assert why(program, tmp_path) == "writable_by_others"


@pytest.mark.parametrize(
    "name", ["libexec/rigtune-power/rigtune-power-helper", "libexec/rigtune-power/_internal/lib.so"]
)
def test_writable_file_is_not_trusted(program: Path, tmp_path: Path, name: str) -> None:
    """Neither the program nor anything that it loads."""
    (tmp_path / name).chmod(0o777)
    assert why(program, tmp_path) == "writable_by_others"


def test_other_owner_is_not_trusted(program: Path, tmp_path: Path) -> None:
    """Only the expected owner's files count."""
    assert distrust(program, owner=os.geteuid() + 1, top=tmp_path) == "wrong_owner"


def test_links_are_not_trusted(program: Path, tmp_path: Path) -> None:
    """A link on the way can be turned; one out of the folder loads what lies elsewhere."""
    (tmp_path / "alias").symlink_to(program.parent)
    assert why(tmp_path / "alias" / program.name, tmp_path) == "is_link"
    (program.parent / "other.so").symlink_to("/etc/passwd")
    assert why(program, tmp_path) == "is_link"


def test_missing_or_not_executable(program: Path, tmp_path: Path) -> None:
    """No program is not a trusted program."""
    program.chmod(0o644)
    assert os.geteuid() == 0 or why(program, tmp_path) == "not_executable"
    program.unlink()
    assert why(program, tmp_path) == "not_installed"


def test_untrusted_helper_is_not_started(program: Path) -> None:
    """Starting it from a temporary folder fails before anything runs."""
    with pytest.raises(EnvironmentProblem) as problem:
        start_helper(program)
    assert problem.value.info.code in {"helper_not_trusted", "helper_not_installed"}
