"""The cap sweep of a model: limits through a real helper process, a scripted engine, hand time."""

import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import ChatEvent, GenerationFinished, TokenGenerated
from app.domain.machine import PowerSource
from app.domain.pacing import Pace
from app.domain.settings import Settings
from app.domain.sweep import BudgetName
from app.domain.trial import Workload
from app.power.caphand import CapHand
from app.power.changes import ChangeLog
from app.power.client import HelperClient
from app.power.known import Coolers
from app.session.capsweep import (
    PACES,
    CapsEvent,
    CapsProgress,
    CapsResult,
    CapsStarted,
    CapSweep,
    refusal,
)
from app.worker.protocol import ChatMessage, Sampling
from tests.fakes.faulty_worker import faulty
from tests.fakes.governed_session import INFO, KEY, FakeMachine
from tests.fakes.records import a_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sysfs is Linux's")

WORKLOAD = Workload(n_prompt=512, n_gen=256, depth=0)
SETTINGS = Settings(n_gpu_layers=4, n_ctx=2048, n_threads=1)


class Engine:
    """Answers as fast as the limit in force lets it: 40 tok/s at 203 W, hardly less at 180 W."""

    def __init__(self, machine: FakeMachine) -> None:
        self.pace = Pace()
        self.asked: list[tuple[ChatMessage, ...]] = []
        self.fails_at: float | None = None
        self._machine = machine

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        stop: tuple[str, ...] = (),
        template: str = "",
    ) -> Generator[ChatEvent, None, None]:
        self.asked.append(messages)
        machine = self._machine
        machine.t_s += 0.5
        for n_tok in range(1, (max_tokens or 1) + 1):
            if self.fails_at is not None and machine.t_s > self.fails_at:
                error = ErrorInfo(code="crashed", message="The engine ended.")
                yield GenerationFinished(reason="error", n_prompt=1, error=error)
                return
            limit_w = machine.limit_w()
            machine.power_w = limit_w * self.pace.duty
            machine.temp_c = round(30 + 0.2 * machine.power_w)
            machine.t_s += 1 / (40.0 - 0.03 * (203.0 - limit_w)) / self.pace.duty
            yield TokenGenerated(text="x", n_tok=n_tok)
        yield GenerationFinished(reason="length", n_prompt=512, prefill_tok_s=1000.0)


class Bench:
    def __init__(self, folder: Path) -> None:
        self.machine = FakeMachine(folder)
        self.log = ChangeLog(folder)
        self.cancel = threading.Event()
        self.engine = Engine(self.machine)
        self.hand: CapHand | None = None

    def sweep(self, **changes: object) -> CapSweep:
        fields: dict[str, object] = {
            "devices": {KEY: INFO}, "readings": self.machine.latest,
            "host": self.machine.latest_host, "helper": self.machine.helper,
            "log": self.log, "budget": BudgetName.QUICK, "cancel": self.cancel,
            "clock": lambda: self.machine.t_s, "launch": faulty(),
        }  # fmt: skip
        return CapSweep(a_model(), SETTINGS, WORKLOAD, **(fields | changes))  # type: ignore[arg-type]

    def limits(self, **changes: object) -> Iterator[CapsEvent]:
        client = self.machine.helper()
        client.begin(KEY)
        self.hand = CapHand(KEY, client, self.log)
        return self.sweep(**changes).measure(self.engine, KEY, INFO, self.hand, None)

    def paces(self) -> Iterator[CapsEvent]:
        why = refusal("not_adjustable")
        return self.sweep().measure(self.engine, KEY, INFO, None, why)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    if bench.hand is not None:
        bench.hand.close()


def result_of(events: list[CapsEvent]) -> CapsResult:
    assert isinstance(events[-1], CapsResult)
    return events[-1]


def test_limits_are_measured_recommended_and_put_back(bench: Bench) -> None:
    """From the limit found down to the driver's floor; the saver one wins; 203 W in the end."""
    events = list(bench.limits())
    assert events[0] == CapsStarted(
        device="RX test", knob="power_limit", values=(203.0, 152.0, 102.0)
    )
    result = result_of(events)
    assert result.is_complete
    assert [p.cap_w for p in result.points] == [203.0, 152.0, 102.0]
    assert all(p.is_steady for p in result.points)
    assert result.points[0].decode_tok_s is not None
    assert result.points[0].decode_tok_s.median == pytest.approx(40.0, rel=0.01)
    assert result.points[0].prefill_tok_s is not None
    assert result.cap_w == 152.0  # 102 W is 7 % slower
    assert len(result.sustained) == 3
    assert bench.machine.limit_w() == 203.0
    changes = [(c.requested, c.before, c.after, c.result) for c in bench.log.history()]
    assert changes[1] == (152.0, 203.0, 152.0, "applied")
    assert changes[-1][3] == "restored"


def test_every_prompt_is_read_anew(bench: Bench) -> None:
    """No two prompts begin alike, so no cache spares the prefill that is to be measured."""
    list(bench.paces())
    starts = [messages[0].content[:8] for messages in bench.engine.asked]
    assert len(set(starts)) == len(starts) > 10


def test_where_no_limit_can_be_set_pacing_is_measured(bench: Bench) -> None:
    """Pace by pace the draw falls with the speed; the exact command is there for an admin."""
    result = result_of(list(bench.paces()))
    assert result.knob == "pacing"
    assert [p.cap_w for p in result.points] == list(PACES)
    powers = [p.power_w for p in result.points]
    assert powers == pytest.approx([203.0, 152.25, 101.5], rel=0.01)
    speeds = [p.decode_tok_s.median for p in result.points if p.decode_tok_s]
    assert speeds == pytest.approx([40.0, 30.0, 20.0], rel=0.01)
    assert (result.choice, result.cap_w) == (None, None)
    assert result.why_not is not None
    assert result.why_not.code == "not_adjustable"
    assert bench.engine.pace == Pace()


def test_cancel_keeps_what_was_measured(bench: Bench) -> None:
    """Stopped in the second limit: the first one counts, and the limit is put back."""
    events = []
    for event in bench.limits():
        events.append(event)
        if isinstance(event, CapsProgress) and event.n_done == 1:
            bench.cancel.set()
    result = result_of(events)
    assert not result.is_complete
    assert [p.cap_w for p in result.points] == [203.0]
    assert bench.machine.limit_w() == 203.0


def test_leaving_it_in_the_middle_restores(bench: Bench) -> None:
    """Closed like a window that is shut: the limit is put back."""
    steps = bench.limits()
    for event in steps:
        if isinstance(event, CapsProgress) and event.n_done == 1:
            break
    assert bench.machine.limit_w() == 152.0
    steps.close()  # type: ignore[attr-defined]
    assert bench.machine.limit_w() == 203.0


def test_engine_that_dies_keeps_what_was_measured(bench: Bench) -> None:
    """A crash is a sentence in the result, not the end of it."""
    bench.engine.fails_at = bench.machine.t_s + 200.0
    result = result_of(list(bench.limits()))
    assert len(result.points) == 1
    assert result.why_not is not None
    assert result.why_not.code == "crashed"
    assert bench.machine.limit_w() == 203.0


def test_helper_that_dies_ends_it(bench: Bench) -> None:
    """Without its helper nothing may be measured as if the limit held."""
    steps, events = bench.limits(), []
    for event in steps:
        events.append(event)
        if isinstance(event, CapsProgress) and event.n_done == 1:
            bench.machine.helpers[0].end()
    result = result_of(events)
    assert result.why_not is not None
    assert result.why_not.code == "helper_gone"
    assert bench.machine.limit_w() == 203.0


def test_another_power_source_ends_it(bench: Bench) -> None:
    """Pulled from the mains in the second limit: what follows cannot be ranked with it (B10)."""
    events = []
    for event in bench.limits():
        events.append(event)
        if isinstance(event, CapsProgress) and event.n_done == 1:
            bench.machine.source = PowerSource.BATTERY
    result = result_of(events)
    assert [p.cap_w for p in result.points] == [203.0]
    assert result.why_not is not None
    assert result.why_not.code == "source_differs"
    assert "mains, then battery" in result.why_not.message
    assert bench.machine.limit_w() == 203.0


def test_a_limit_moved_by_another_hand_ends_it(bench: Bench) -> None:
    """Dynamic Boost, the driver or a user turns it meanwhile: not measured under a wrong name."""
    events = []
    for event in bench.limits():
        events.append(event)
        if isinstance(event, CapsProgress) and event.n_done == 1:
            (bench.machine.hwmon / "power1_cap").write_text("170000000\n")
    result = result_of(events)
    assert [p.cap_w for p in result.points] == [203.0]
    assert result.why_not is not None
    assert result.why_not.code == "limit_changed_elsewhere"
    assert bench.machine.limit_w() == 170.0  # theirs, so it stays


def test_what_is_seen_of_the_cooler_is_kept_for_the_governor(bench: Bench) -> None:
    """Each limit is a temperature held by a draw: the next chat begins with the nearest one."""
    steps = bench.sweep().measure(
        bench.engine, KEY, INFO, None, refusal("not_adjustable"), idle_c=30.0
    )
    list(steps)
    known = Coolers(bench.log.folder).find(INFO.key, 61.0, None)
    assert known is not None
    assert 0.2 <= known.c_per_w <= 0.28  # the engine above: 0.2 °C per W, and no less is believed
    assert known.knobs.duty == 0.75


def test_a_model_on_the_cpu_has_no_limits(bench: Bench) -> None:
    """No device, or one that tells nothing: said at once, nothing is loaded."""
    for devices in ({}, {KEY: INFO}):
        bench.machine.temp_c = bench.machine.power_w = None
        events = list(bench.sweep(devices=devices).run())
        assert [type(e) for e in events] == [CapsResult]
        why = result_of(events).why_not
        assert why is not None
        assert why.code == "no_limit_here"


def test_cancel_while_the_password_is_asked_for(bench: Bench) -> None:
    """Nobody types it: the user is free at once, and a helper that comes late is ended."""
    gate = threading.Event()

    def prompt() -> HelperClient:
        gate.wait(10)
        raise EnvironmentProblem("helper_dismissed", "Not given.")

    events: list[CapsEvent] = []
    for event in bench.sweep(helper=prompt).run():
        events.append(event)
        if isinstance(event, CapsProgress) and event.phase == "password":
            bench.cancel.set()
    gate.set()
    assert result_of(events).points == ()
    assert not result_of(events).is_complete
