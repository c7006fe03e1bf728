"""When ``rigtune tune`` measures power limits, and that the search's answer survives it."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from app.cli import tune
from app.cli.main import build_parser
from app.cli.tune_document import document_of
from app.domain.errors import EnvironmentProblem
from app.domain.sweep import SweepResult
from app.session.capsweep import CapsEvent
from tests.fakes import power_data
from tests.fakes import window_data as data


class Session:
    """Plays a cap sweep, or fails."""

    def __init__(self, problem: EnvironmentProblem | None = None) -> None:
        self.asked: list[str] = []
        self._problem = problem

    def sweep_caps(self, model: str, *_: object, **__: object) -> Iterator[CapsEvent]:
        self.asked.append(model)
        if self._problem is not None:
            raise self._problem
        yield from power_data.caps_events()
        yield power_data.caps_result(2)


def measured(session: Session, *argv: str, result: SweepResult | None = None) -> Any:
    args = build_parser().parse_args(["tune", *argv])
    request = tune.request_from(args)
    return tune._caps(
        args, session, "m.gguf", request, result or data.result(), threading.Event()  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "n_asked"),
    [
        (["m.gguf", "--goal", "quiet"], 1),
        (["m.gguf", "--goal", "quiet", "--no-caps"], 0),
        (["m.gguf", "--goal", "chat"], 0),
        (["m.gguf", "--goal", "chat", "--caps"], 1),
        (["--replay", "r.json", "--goal", "quiet"], 0),
    ],
)
def test_only_a_quiet_machine_is_asked_for_it(argv: list[str], n_asked: int) -> None:
    """The goal quiet does it by itself, others on request, a recording never."""
    session = Session()
    result = measured(session, *argv)
    assert len(session.asked) == n_asked
    assert (result is not None) == bool(n_asked)


def test_a_failure_does_not_cost_the_searchs_answer() -> None:
    """Another program holds the devices: that is the result of this part, not of the search."""
    busy = EnvironmentProblem("busy", "A chat holds the devices.", "Close it.")
    result = measured(Session(busy), "m.gguf", "--goal", "quiet")
    assert result.why_not == busy.info


def test_progress_is_said_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Password, plan and each limit, once each."""
    measured(Session(), "m.gguf", "--goal", "quiet")
    text = capsys.readouterr().err
    assert text.count("password") == 1
    assert "RTX 3090: measuring 350 W, 280 W; 4 to 14 minutes" in text
    measured(Session(), "m.gguf", "--goal", "quiet", "--progress", "none")
    assert capsys.readouterr().err == ""


def test_the_document_carries_it() -> None:
    """``rigtune.tune/1`` has the power limits beside the search, or null."""
    whole = document_of(data.result(), caps=power_data.caps_result(2))
    assert whole.caps is not None
    assert whole.caps.cap_w == 280.0
    assert document_of(data.result()).caps is None
