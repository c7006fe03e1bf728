"""The self-test in a downloaded program: what it may not ask for, and what it must notice."""

import sys
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.finding import Check, CheckStatus
from app.domain.machine import Machine
from app.library import demo_model
from app.library.demo import DEMO_PACKAGE
from app.runtime import FILE_LIST
from app.session.doctor import examine


def checks() -> dict[str, Check]:
    """Examine a machine without an engine and without the demo model's package."""

    def nothing(*_: object) -> Machine:
        raise EnvironmentProblem("no_engine", "There is no engine.")

    def demo(*_: object) -> object:
        return demo_model()

    return {c.id: c for c in examine(nothing, demo, nothing)}  # type: ignore[arg-type]


@pytest.fixture
def without_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(sys.modules, DEMO_PACKAGE, None)


def test_from_source_the_demo_model_is_asked_for(without_demo: None) -> None:
    """There the set-up brings it, so its absence is a problem with a remedy."""
    check = checks()["demo_not_installed"]
    assert check.status is CheckStatus.PROBLEM
    assert "bootstrap.py" in check.hint


def test_a_download_does_without_the_demo_model(
    without_demo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never came with one: nothing to mend, and no script that is not there is named."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    check = checks()["demo_not_installed"]
    assert check.status is CheckStatus.SKIPPED
    assert "bootstrap.py" not in check.hint
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
