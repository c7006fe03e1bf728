"""The suite under Wine: what is counted, what is kept, and what is run again."""

import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
CASES = """<testsuites><testsuite>
<testcase classname="tests.a" name="good"/>
<testcase classname="tests.a" name="left_out"><skipped message="no GPU"/></testcase>
{more}
</testsuite></testsuites>"""
FAILED = '<testcase classname="tests.a" name="bad"><failure message="1 != 2"/></testcase>'


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give the module, imported as the command does it."""
    before = set(sys.modules)
    for folder in (PACKAGING, PACKAGING / "windows"):
        monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module("wine_suite")
    for name in set(sys.modules) - before:
        if name.startswith(("wine_", "boot")):
            del sys.modules[name]


class FakeWine:
    """Says what pytest would have said; ``bad`` folders have a failing test, ``lost`` no report."""

    def __init__(self, home: Path) -> None:
        self.home, self.python = home, home / "python"
        self.bad: set[str] = set()
        self.lost: set[str] = set()
        self.ran: list[str] = []

    def run(self, command: Sequence[str | Path], cwd: Path | None = None) -> int:
        folder = str(command[-1])
        self.ran.append(folder)
        if folder in self.lost:
            return 3
        report = FAILED if folder in self.bad else ""
        (self.home / "junit.xml").write_text(CASES.format(more=report), "utf-8")
        return int(folder in self.bad)


def test_every_folder_is_run_once_and_summed_up(
    suite: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line for each folder and the total; a second run has nothing left to do."""
    wine = FakeWine(tmp_path)
    assert suite.run_suite(wine) == 0
    assert {"tests/windows", "tests/app", "tests/app/rig", "tests/views"} <= set(wine.ran)
    assert not [f for f in wine.ran if f.startswith(("tests/packaging", "tests/frozen"))]
    assert len(wine.ran) == len(set(wine.ran))
    n = len(wine.ran)
    assert suite.run_suite(wine) == 0
    assert len(wine.ran) == n
    printed = capsys.readouterr().out
    assert f"skipped {n}: no GPU" in printed
    (total,) = {" ".join(line.split()[:5]) for line in printed.splitlines() if "total" in line}
    assert total == f"[rigtune] total {n} 0 {n}"


def test_what_failed_or_ended_without_a_report_is_run_again(
    suite: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failing test and a pytest that Wine lost make the run fail, and only they are repeated."""
    wine = FakeWine(tmp_path)
    wine.bad, wine.lost = {"tests/windows"}, {"tests/app/rig"}
    assert suite.run_suite(wine) == 1
    printed = capsys.readouterr().out
    assert "failed: tests.a::bad" in printed
    assert "failed: pytest ended with 3 and no report" in printed
    wine.ran, wine.bad, wine.lost = [], set(), set()
    assert suite.run_suite(wine) == 0
    assert sorted(wine.ran) == ["tests/app/rig", "tests/windows"]
