"""After an engine's death: a driver's reset of just now is found, said, and known to advice."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typing_extensions import override

from app.advice.rules import machine_findings
from app.domain.errors import ErrorInfo
from app.domain.events import GenerationFinished
from app.domain.machine import DriverReset, ProbeSet
from app.domain.settings import Settings
from app.rig.lease import Lease
from app.rig.process import Launch
from app.session import Chat
from app.session.aftermath import explained
from app.session.here import Here
from app.worker.protocol import ChatMessage
from probes import registry
from probes.reading import Absence
from probes.system import SystemFacts
from probes.windows.recording import RecordedWindows, WindowsRecording
from tests.fakes.faulty_worker import faulty
from tests.fakes.probe import FakeNvml, FakeSystem, FakeTree
from tests.fakes.recorded import RecordedMachine
from tests.fakes.records import a_model

CRASH = ErrorInfo(code="crashed", message="The engine crashed.", hint="Try other settings.")
QUESTION = (ChatMessage(role="user", content="hi"),)


def reset(ago_s: float) -> DriverReset:
    at = datetime.now(UTC) - timedelta(seconds=ago_s)
    return DriverReset(provider="nvlddmkm", event_id=153, time_utc=at.isoformat())


class Log(RecordedWindows):
    """A Windows whose event log grows."""

    def __init__(self) -> None:
        super().__init__(WindowsRecording())
        self.entries: tuple[DriverReset, ...] = ()

    @override
    def resets(self) -> tuple[DriverReset, ...] | Absence:
        return self.entries


class WithLog(RecordedMachine):
    """A machine without GPU whose log the test writes."""

    def __init__(self, log: Log) -> None:
        super().__init__("windows-no-gpu")
        self._log = log

    @override
    def detect(self) -> ProbeSet:
        system = FakeSystem(SystemFacts(os="windows", allowed_cpus=(0,)))
        nvml = FakeNvml()
        nvml.problem = Absence.LIB_MISSING
        return registry.build(registry.Doors(FakeTree({}), nvml, system, self._log))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def here(log: Log) -> Here:
    here = Here(WithLog(log), None, Launch())
    here._machine = here.joined()
    return here


def test_reset_of_just_now_is_found_and_known_to_advice(here: Here, log: Log) -> None:
    """The log is read again, although the machine was looked at before."""
    assert here.look_after_death() is None
    log.entries = (reset(2), reset(90_000))
    found = here.look_after_death()
    assert found is not None
    assert found.event_id == 153
    assert "driver_resets" in {f.id for f in machine_findings(here.machine())}


def test_reset_of_yesterday_is_no_cause(here: Here, log: Log) -> None:
    """Old entries, damaged times and times without a zone explain no crash of now."""
    odd = DriverReset(provider="Display", event_id=4101, time_utc="not a time")
    log.entries = (reset(86_400), odd, DriverReset(provider="Display", event_id=4101))
    assert here.look_after_death() is None


def test_error_says_the_reset_and_the_remedy() -> None:
    """Another backend or driver first; nothing about the system's timeouts."""
    error = explained(CRASH, lambda: reset(1))
    assert error.code == "driver_reset"
    assert "nvlddmkm 153" in error.message
    assert CRASH.message in error.message
    assert "backend" in error.hint
    assert "Tdr" not in error.hint
    assert explained(CRASH, lambda: None) is CRASH


@pytest.mark.parametrize(("ago_s", "code"), [(1.0, "driver_reset"), (None, "crashed")])
def test_chat_says_why_its_engine_died(tmp_path: Path, ago_s: float | None, code: str) -> None:
    """An answer that ends with the worker's death names a reset, where there was one."""
    found = reset(ago_s) if ago_s is not None else None
    chat = Chat(
        a_model(), Settings(n_gpu_layers=0, n_ctx=512), faulty("abort@token"), None, (),
        lease=Lease("chat", tmp_path / "lock"), after_death=lambda: found,
    )  # fmt: skip
    with chat:
        end = list(chat.generate(QUESTION))[-1]
    assert isinstance(end, GenerationFinished)
    assert end.error is not None
    assert end.error.code == code
