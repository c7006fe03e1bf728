"""The test suite under Wine, folder by folder: each one's counts and time are kept.

A whole run is long, and Wine may end in the middle of it. A folder that passed is not run again
until the program or the folder's tests change.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

from boot_host import say
from bootstrap import ROOT, digest, read_stamp, write_stamp
from wine_host import windows_path

if TYPE_CHECKING:
    from pathlib import Path

    from wine_host import Wine

# The set-up's own tests are of the host; the bundle's have a command of their own.
NOT_UNDER_WINE = ("packaging", "frozen")
# Whatever a test may read: a change in it makes every folder run again.
SHARED = ("app", "views", "probes", "assets", "benchmarks", "tests/fakes", "tests/golden")
PASSED, NO_TEST_COLLECTED = 0, 5  # pytest's exit codes
HEADS = f"{'folder':<24}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}"


class Outcome(NamedTuple):
    """What one folder's tests came to."""

    mark: str
    passed: int
    failed: tuple[str, ...]
    skipped: dict[str, int]
    """How many tests were skipped for each reason."""
    seconds: float

    def line(self, folder: str) -> str:
        """Return the counts below the column heads."""
        counts = f"{self.passed:>8}{len(self.failed):>8}{sum(self.skipped.values()):>9}"
        return f"{folder:<24}{counts}{self.seconds:>9.0f}"


def run_suite(wine: Wine) -> int:
    """Run every folder that has not passed yet, print one line for each and the total."""
    memory = wine.home / "suite.json"
    shared = digest(*(p for top in SHARED for p in _files(ROOT / top)), *ROOT.glob("tests/*.py"))
    outcomes: dict[str, Outcome] = {}
    for folder in _folders():
        mark = digest(shared, *_files(ROOT / folder))
        kept = _read(memory, folder)
        if kept is None or kept.mark != mark or kept.failed:
            say(f"{folder} ...")
            kept = _run(wine, folder, mark)
            write_stamp({**read_stamp(memory), folder: json.dumps(kept)}, memory)
        outcomes[folder] = kept
        say(kept.line(folder))
    return _summary(outcomes)


def _run(wine: Wine, folder: str, mark: str) -> Outcome:
    report = wine.home / "junit.xml"
    report.unlink(missing_ok=True)
    options = ("-q", "-p", "no:cacheprovider", f"--junit-xml={windows_path(report)}")
    # A file that is named would be collected even where its folder says that nothing is.
    below = [f"--ignore={f}" for f in _folders() if f.startswith(f"{folder}/")]
    begin = time.monotonic()
    python = wine.python / "python.exe"
    code = wine.run([python, "-m", "pytest", *options, *below, folder], cwd=ROOT)
    seconds = time.monotonic() - begin
    if not report.is_file():
        ended = f"pytest ended with {code} and no report"
        return Outcome(mark, 0, (ended,) if code != NO_TEST_COLLECTED else (), {}, seconds)
    passed = 0
    failed: list[str] = []
    skipped = Counter[str]()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  pytest's own file
        found = {child.tag: child for child in case}
        if "failure" in found or "error" in found:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif "skipped" in found:
            skipped[found["skipped"].get("message", "")] += 1
        else:
            passed += 1
    if not failed and code not in (PASSED, NO_TEST_COLLECTED):
        failed.append(f"pytest ended with {code}")
    return Outcome(mark, passed, tuple(failed), dict(skipped), seconds)


def _summary(outcomes: dict[str, Outcome]) -> int:
    say(HEADS)
    for folder, outcome in outcomes.items():
        say(outcome.line(folder))
    reasons = Counter[str]()
    failed: list[str] = []
    for outcome in outcomes.values():
        reasons.update(outcome.skipped)
        failed += outcome.failed
    passed = sum(outcome.passed for outcome in outcomes.values())
    seconds = sum(outcome.seconds for outcome in outcomes.values())
    say(Outcome("", passed, tuple(failed), reasons, seconds).line("total"))
    for reason, count in reasons.most_common():
        say(f"skipped {count}: {reason}")
    for name in failed:
        say(f"failed: {name}")
    return 1 if failed else 0


def _folders() -> list[str]:
    """Return each folder that holds test files itself."""
    tests = ROOT / "tests"
    folders = sorted({path.parent for path in tests.rglob("test_*.py")})
    chosen = (f for f in folders if f.relative_to(tests).parts[0] not in NOT_UNDER_WINE)
    return [folder.relative_to(ROOT).as_posix() for folder in chosen]


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def _read(memory: Path, folder: str) -> Outcome | None:
    """Return what an earlier run of this folder came to."""
    text = read_stamp(memory).get(folder)
    if text is None:
        return None
    mark, passed, failed, skipped, seconds = json.loads(text)
    return Outcome(mark, passed, tuple(failed), skipped, seconds)
