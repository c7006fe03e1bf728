"""``rigtune power`` and the options of chat and serve, on a simulated card."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from app.cli import power as command
from app.cli.caps import show_caps
from app.cli.main import build_parser
from app.cli.power_options import News, carry_out, choice_from, show_energy
from app.domain.errors import UsageProblem
from app.domain.pacing import Pace
from app.domain.settings import Settings
from app.domain.sweep import Reason
from app.power.changes import Change, ChangeLog
from app.power.choice import PowerChoice
from app.power.records import Mode
from app.runtime import HOME_VARIABLE
from app.session.capsweep import CapsResult, refusal
from app.session.power import Power
from tests.fakes import power_data
from tests.fakes.governed_session import INFO, KEY, FakeMachine
from tests.fakes.records import a_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sysfs is Linux's")

RANGED = msgspec.structs.replace(
    INFO, power_limit_min_w=92.0, power_limit_max_w=233.0, power_limit_default_w=203.0
)
ON_GPU = Settings(n_gpu_layers=4, n_ctx=512, n_threads=1)


class Bench:
    def __init__(self, folder: Path) -> None:
        self.machine = FakeMachine(folder)
        self.log = ChangeLog(folder)
        self.power = Power(
            lambda _: {KEY: RANGED}, lambda: self.machine, helper=self.machine.helper,
            log=self.log,
        )  # fmt: skip

    def run(self, *argv: str) -> int:
        args = build_parser().parse_args(["power", *argv])
        return command.run(args, SimpleNamespace(power=self.power))  # type: ignore[arg-type]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    bench = Bench(tmp_path)
    yield bench
    bench.power.end()


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_it_shows_devices_and_the_exact_command(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Temperature, draw, limit, range, and the way by hand with the way back."""
    assert bench.run() == 0
    text = capsys.readouterr().out
    assert "RX test: 60 °C (slows down at 83), draws 200 W, limit 203 W, 102 to 203 W" in text
    assert "by hand: echo 162000000 | sudo tee" in text
    assert "undo:    echo 203000000 | sudo tee" in text


def test_json_is_one_document(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything a script needs, with the schema's name."""
    bench.log.add(
        Change(at_utc="2026-01-01T00:00:00+00:00", key=KEY, knob="power_limit", requested=180.0,
               before=203.0, after=180.0, result="applied", reason=Reason(code="cap_sweep"))
    )  # fmt: skip
    assert bench.run("--json") == 0
    found = document(capsys)
    assert found["schema"] == "rigtune.power/1"
    assert found["devices"][0]["range_w"] == [101.5, 203.0]
    assert found["changes"][0]["before"] == 203.0
    assert (found["pending"], found["restored"]) == ([], [])


def test_a_choice_is_kept_and_forgotten(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Options stay for later runs, --forget goes back to the defaults."""
    bench.run("--mode", "quiet", "--price", "0.3", "--currency", "EUR", "--use-helper", "--json")
    choice = document(capsys)["choice"]
    assert (choice["mode"], choice["price_per_kwh"], choice["use_helper"]) == ("quiet", 0.3, True)
    other = Power(lambda _: {}, lambda: bench.machine)
    assert other.choice.mode is Mode.QUIET
    bench.run("--forget", "--json")
    assert document(capsys)["choice"]["mode"] == "full"


@pytest.mark.parametrize("argv", [["--target-temp", "20"], ["--cap", "0"], ["--cap", "nan"]])
def test_figures_without_sense_are_usage_problems(bench: Bench, argv: list[str]) -> None:
    """Refused with a sentence, and nothing is kept."""
    with pytest.raises(UsageProblem):
        bench.run(*argv)
    assert bench.power.choice == PowerChoice()


@pytest.mark.parametrize("watts", ["90", "101", "204"])
def test_a_cap_outside_the_range_is_refused_and_not_kept(
    bench: Bench, capsys: pytest.CaptureFixture[str], watts: str
) -> None:
    """B20: a limit below what the card allows is neither kept nor moved into the range."""
    with pytest.raises(UsageProblem, match=f"{watts} W is outside"):
        bench.run("--cap", watts)
    assert bench.run("--json") == 0
    assert document(capsys)["choice"]["caps_w"] == {}
    assert bench.run("--cap", "102") == 0


def test_restore(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing left: says so. Something left: the helper's start puts it back."""
    assert bench.run("--restore") == 0
    assert "Nothing is left to put back." in capsys.readouterr().out
    bench.log.mark(KEY, KEY)
    assert bench.run("--restore", "--json") == 0
    assert document(capsys)["pending"] == []


def test_options_of_a_chat(bench: Bench) -> None:
    """A mode drops an earlier temperature, a cap brings the helper, --no-use-helper does not."""
    parse = build_parser().parse_args
    known = PowerChoice(target_c=60.0, price_per_kwh=0.3)
    quiet = choice_from(parse(["chat", "demo", "--power", "quiet"]), known)
    assert (quiet.mode, quiet.target_c, quiet.price_per_kwh) == (Mode.QUIET, None, 0.3)
    capped = choice_from(parse(["serve", "demo", "--cap", "180"]), known)
    assert (capped.caps_w, capped.use_helper, capped.target_c) == ({"": 180.0}, True, 60.0)
    without = choice_from(parse(["chat", "demo", "--cap", "180", "--no-use-helper"]), known)
    assert not without.use_helper


def test_power_in_a_chat(bench: Bench) -> None:
    """Look, change the mode, put back, resume; anything else is a usage problem."""
    said: list[str] = []
    keeper = bench.power.begin(a_model(), ON_GPU, _no_pace)
    assert keeper is not None
    keeper.tick()
    carry_out(bench.power, "", said.append)
    assert said[0] == "Mode full"
    assert said[1].startswith("RX test: 60 of 79 °C, limit 203 W, working 100 % of the time")
    carry_out(bench.power, "quiet", said.append)
    assert bench.power.choice.mode is Mode.QUIET
    carry_out(bench.power, "restore", said.append)
    assert bench.power.state.is_paused
    carry_out(bench.power, "resume", said.append)
    assert not bench.power.state.is_paused
    with pytest.raises(UsageProblem):
        carry_out(bench.power, "loud", said.append)


def test_news_are_told_once(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """What the governor does is said when it does it, and not again."""
    bench.power.choose(PowerChoice(mode=Mode.QUIET), keep=False)
    bench.machine.temp_c = 80.0
    keeper = bench.power.begin(a_model(), ON_GPU, _no_pace)
    assert keeper is not None
    news = News(bench.power)
    with keeper.answering():
        keeper.tick()
        keeper.tick()
    news.tell()
    assert "too warm" in capsys.readouterr().err
    news.tell()
    assert capsys.readouterr().err == ""


def test_energy_after_an_answer(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Joules per token, watt-hours and the price, on stderr; nothing where nothing was seen."""
    bench.power.choose(PowerChoice(price_per_kwh=0.3, currency="EUR"), keep=False)
    keeper = bench.power.begin(a_model(), ON_GPU, _no_pace)
    assert keeper is not None
    with keeper.answering():
        keeper.tick()
        bench.machine.t_s += 2.0
        keeper.progressed(40)
    show_energy(bench.power)
    text = capsys.readouterr().err
    assert "10.0 J per token, 0.111 Wh, 0.000833 EUR per 1,000 tokens" in text
    show_energy(None)
    assert capsys.readouterr().err == ""


def test_caps_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """The table, the recommendation and how to keep it; or why not, and what can be done."""
    show_caps(power_data.caps_result(2))
    text = capsys.readouterr().out
    assert "280 W is the best" in text
    assert "rigtune power --cap 280" in text
    show_caps(CapsResult(device="X", knob="pacing", why_not=refusal("not_adjustable")))
    text = capsys.readouterr().out
    assert "Limit not adjustable on this device." in text
    assert "--power quiet" in text


def _no_pace(_pace: Pace) -> None:
    pass
