"""``rigtune engine``: documents, exit codes and what it advises."""

import argparse
import json
from collections.abc import Generator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from app.cli import engine
from app.cli.main import run
from app.domain.errors import ErrorInfo
from app.session import EngineChecked, EngineName, EngineState
from probes import registry

CURRENT = EngineState(name=EngineName.CURRENT, in_use=True, build="new build")
PREVIOUS = EngineState(name=EngineName.PREVIOUS, in_use=False, build="old build")


class Kept:
    """A session and its engines in one, with a check that ends as told."""

    def __init__(self, verdict: Any) -> None:
        self._found = EngineChecked(
            profile_id="abc234", profile_name="[mine]", verdict=verdict, against="previous",
            error=ErrorInfo(code="crashed", message="It crashed.", hint="") if
            verdict == "broken" else None,
        )  # fmt: skip

    def engines(self) -> "Kept":
        return self

    def measuring(self, _purpose: str) -> Any:
        return nullcontext()

    def states(self) -> tuple[EngineState, ...]:
        return CURRENT, PREVIOUS

    def outdated(self, _states: Any) -> tuple[Any, ...]:
        return ()

    def check(self, _profile: str) -> Generator[EngineChecked, None, None]:
        yield self._found


@pytest.mark.parametrize(
    ("verdict", "code", "goes_back"),
    [("same", 0, False), ("unclear", 0, False), ("slower", 3, True), ("broken", 3, True)],
)
def test_a_worse_engine_ends_with_3_and_the_way_back(
    verdict: str, code: int, goes_back: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script notices by the exit code, a person by the sentence."""
    args = argparse.Namespace(check=["abc234"], use=None, json=False)
    assert engine.run(args, Kept(verdict)) == code  # type: ignore[arg-type]
    said = capsys.readouterr().out
    assert "[mine]" in said
    assert ("rigtune engine --use previous" in said) == goes_back


@pytest.mark.engine
def test_without_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """One document with one engine; going back to nothing is a usage error."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
    assert run(["engine", "--json"], registry) == 0
    document = json.loads(capsysbinary.readouterr().out)
    assert document["schema"] == "rigtune.engine/1"
    assert [e["name"] for e in document["engines"]] == ["current"]
    assert run(["engine", "--use", "previous", "--json"], registry) == 2
    error = json.loads(capsysbinary.readouterr().out)["error"]
    assert error["code"] == "no_previous_engine"
