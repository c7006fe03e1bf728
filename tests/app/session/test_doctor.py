"""The self-test in a downloaded program: what it may not ask for, and what it must notice."""

import errno
import os
import sys
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.finding import Check, CheckStatus
from app.domain.machine import Machine
from app.library import demo_model
from app.library.demo import DEMO_PACKAGE
from app.rig.lease import Lease
from app.rig.process import Launch
from app.runtime import FILE_LIST
from app.session.doctor import examine
from app.session.here import Here
from app.session.selftest import self_test
from tests.fakes.recorded import RecordedMachine


def checks() -> dict[str, Check]:
    """Examine a machine without an engine and without the demo model's package."""

    def nothing(*_: object) -> Machine:
        raise EnvironmentProblem("no_engine", "There is no engine.")

    def demo(*_: object) -> object:
        return demo_model()

    return {c.id: c for c in examine(nothing, demo, nothing, nothing)}  # type: ignore[arg-type]


@pytest.fixture
def without_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(sys.modules, DEMO_PACKAGE, None)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_script_is_named_only_where_it_is(
    without_demo: None, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    """A source tree's set-up brings the demo model; a download has no such script and no model."""
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    check = checks()["model"]
    assert check.status is CheckStatus.WARNING
    assert ("bootstrap.py" in check.hint) != frozen
    assert ".gguf" in check.hint


def test_a_file_that_was_taken_away_is_a_problem(
    without_demo: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The self-test names the file and says how it may have gone."""
    assert "installation" not in checks()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    (tmp_path / FILE_LIST).write_text("llama_cpp/lib/libllama.so\n", encoding="utf-8")
    check = checks()["installation"]
    assert check.status is CheckStatus.PROBLEM
    assert "libllama.so" in check.text


def test_home_that_cannot_be_written_is_a_failed_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is listed with what to do, and the other steps are still tried."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "file" / "home"))
    here = Here(RecordedMachine("no-gpu"), None, Launch(command=("/no/such/program",)))
    steps = self_test(here, lambda: ())
    found = {step.id: step for step in steps}
    for name in ("lock", "folder"):
        assert found[name].status is CheckStatus.PROBLEM
        assert "RIGTUNE_HOME" in found[name].hint
    assert "model" in found


def test_full_disk_is_noticed_although_the_folder_is_there(
    without_demo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder may look fine on a disk without room: something is written to find out."""

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert checks()["folder"].status is CheckStatus.OK
    monkeypatch.setattr("app.runtime.os.fsync", full)
    check = checks()["folder"]
    assert check.status is CheckStatus.PROBLEM
    assert "full" in check.text


def test_another_rigtune_at_work_is_no_failed_step(tmp_path: Path, without_demo: None) -> None:
    """Two self-tests at once would falsify each other: the second does not begin."""
    here = Here(RecordedMachine("no-gpu"), None, Launch(command=("/no/such/program",)))
    with Lease("tune"), pytest.raises(EnvironmentProblem) as caught:
        next(iter(self_test(here, lambda: ())))
    assert caught.value.info.code == "busy"
