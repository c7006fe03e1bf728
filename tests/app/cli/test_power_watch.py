"""The question before a search goes on after the plug was pulled."""

import io

import pytest
from typing_extensions import override

from app.cli.power_watch import PowerWatch
from app.domain.machine import HostSample, PowerSource


class Plug:
    """A power source that can be changed."""

    def __init__(self) -> None:
        self.source = PowerSource.AC

    def read(self) -> HostSample:
        return HostSample(t_ns=0, power_source=self.source)


class Terminal(io.StringIO):
    """A standard input at which somebody sits."""

    @override
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "goes_on"), [("\n", True), ("s\n", False), ("no\n", False)])
def test_somebody_at_the_terminal_is_asked(
    answer: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Enter goes on, s stops; asked once per change."""
    plug = Plug()
    watched = PowerWatch(plug.read, is_quiet=False)
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert watched.may_go_on()
    plug.source = PowerSource.BATTERY
    assert watched.may_go_on() is goes_on
    assert "battery" in capsys.readouterr().err
    assert watched.may_go_on(), "the same source again is no change"


def test_without_a_terminal_it_goes_on_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script is not held up; unknown readings are no change; a replay has no plug."""
    plug = Plug()
    watched = PowerWatch(plug.read, is_quiet=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    plug.source = PowerSource.UNKNOWN
    assert watched.may_go_on()
    plug.source = PowerSource.BATTERY
    assert watched.may_go_on()
    assert "battery" in capsys.readouterr().err
    replayed = PowerWatch(lambda: None, is_quiet=False)
    plug.source = PowerSource.AC
    assert replayed.may_go_on()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("seen_first", [True, False])
def test_what_the_sweep_asks_is_not_asked_twice(
    seen_first: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trial that was flagged pauses the sweep: the same change is asked there, the next here."""
    plug = Plug()
    watched = PowerWatch(plug.read, is_quiet=False)
    monkeypatch.setattr("sys.stdin", Terminal("s\n"))
    if seen_first:
        plug.source = PowerSource.BATTERY
    watched.leave_to_sweep()
    plug.source = PowerSource.BATTERY
    assert watched.may_go_on()
    assert capsys.readouterr().err == ""
    plug.source = PowerSource.AC
    assert not watched.may_go_on()
