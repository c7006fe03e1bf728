"""The worker rig against a child that fails in every way known."""

import contextlib
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.events import RigEvent, TrialFinished, TrialProgress
from app.domain.memory import Verdict
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import SearchHost
from app.domain.trial import TelemetryWindow, Trial, TrialRequest, Workload
from app.domain.units import MIB
from app.rig.process import Launch
from app.rig.workers import WorkerRig
from tests.fakes.faulty_worker import HOST_BYTES, faulty
from tests.fakes.records import a_model
from tests.fakes.wine import is_wine

SETTINGS = Settings(n_gpu_layers=0)
REQUEST = TrialRequest(stage="test", settings=SETTINGS, workload=Workload())
GONE_S = 60.0


def rig_with(launch: Launch) -> WorkerRig:
    host = SearchHost(cores_physical=1, cores_logical=1, ram_bytes=1 << 30)
    model = msgspec.structs.replace(a_model(), file_bytes=1000)
    return WorkerRig(model, host, launch=launch)


@pytest.fixture
def rigs() -> Iterator[list[WorkerRig]]:
    opened: list[WorkerRig] = []
    yield opened
    for rig in opened:
        rig.close()


def run(rig: WorkerRig, request: TrialRequest = REQUEST) -> Trial:
    last: RigEvent | None = None
    for event in rig.run_trial(request):
        last = event
    assert isinstance(last, TrialFinished)
    return last.trial


def run_with(rigs: list[WorkerRig], *faults: str) -> Trial:
    rigs.append(rig_with(faulty(*faults)))
    return run(rigs[-1])


def advance(events: Iterator[RigEvent], phase: str) -> None:
    for event in events:
        if isinstance(event, TrialProgress) and event.phase == phase:
            return
    pytest.fail(f"never reached {phase}")


def children() -> list[psutil.Process]:
    return psutil.Process().children()


def test_trial_carries_what_the_worker_said(rigs: list[WorkerRig]) -> None:
    """Samples, bytes, effective settings and the number of the load arrive."""
    trial = run_with(rigs)
    assert trial.outcome is Outcome.OK
    assert trial.load_id == 1
    assert trial.load_s == pytest.approx(0.001)
    assert trial.host_bytes == HOST_BYTES
    assert trial.effective == SETTINGS
    assert [s.n_tok for s in trial.decode] == [8]


def test_loaded_weights_are_used_again(rigs: list[WorkerRig]) -> None:
    """A change at context level keeps the load, one at load level makes a new one."""
    first = run_with(rigs)
    other_context = msgspec.structs.replace(SETTINGS, n_ctx=8192)
    other_load = msgspec.structs.replace(SETTINGS, n_gpu_layers=1)
    second = run(rigs[0], msgspec.structs.replace(REQUEST, settings=other_context))
    third = run(rigs[0], msgspec.structs.replace(REQUEST, settings=other_load))
    assert [first.load_id, second.load_id, third.load_id] == [1, 1, 2]
    assert second.load_s is None


@pytest.mark.parametrize(
    ("fault", "outcome", "code"),
    [
        ("abort@load", Outcome.CRASHED, "crashed"),
        ("segfault@load", Outcome.CRASHED, "crashed"),
        ("hang@load", Outcome.TIMED_OUT, "timed_out"),
        ("exit@load", Outcome.CRASHED, "crashed"),
        ("cuda_out_of_memory@load", Outcome.OUT_OF_MEMORY, "out_of_memory"),
        ("abort@decode", Outcome.CRASHED, "crashed"),
        ("engine_abort@decode", Outcome.CRASHED, "engine_abort"),
        ("segfault@decode", Outcome.CRASHED, "crashed"),
        ("hang@decode", Outcome.TIMED_OUT, "timed_out"),
        ("hang_stubbornly@decode", Outcome.TIMED_OUT, "timed_out"),
        ("cuda_out_of_memory@decode", Outcome.OUT_OF_MEMORY, "out_of_memory"),
        ("device_lost@decode", Outcome.DEVICE_LOST, "device_lost"),
        ("garbage@decode", Outcome.CRASHED, "protocol"),
        ("wrong_version@decode", Outcome.CRASHED, "protocol"),
        ("oversized@decode", Outcome.CRASHED, "protocol"),
        pytest.param(
            *("closed_pipe@decode", Outcome.CRASHED, "crashed"),
            marks=pytest.mark.skipif(is_wine(), reason="Wine's console host keeps the pipe open"),
        ),
        ("abort@hello", Outcome.CRASHED, "crashed"),
    ],
)
def test_failure_is_an_outcome(
    rigs: list[WorkerRig], fault: str, outcome: Outcome, code: str
) -> None:
    """Whatever the child does ends the trial with a cause and a next step."""
    trial = run_with(rigs, fault)
    assert trial.outcome is outcome
    assert trial.error
    assert trial.error.code == code
    assert trial.error.message
    assert trial.error.hint or code == "engine_abort"
    if fault.endswith("@decode"):
        assert [s.n_tok for s in trial.prefill] == [8]


def test_noise_on_stdout_does_not_disturb(rigs: list[WorkerRig]) -> None:
    """What libraries print lands beside the protocol."""
    assert run_with(rigs, "noise@load", "noise@decode").outcome is Outcome.OK


def test_next_trial_after_a_crash_loads_again(rigs: list[WorkerRig]) -> None:
    """A dead child is replaced, under a new load number."""
    assert run_with(rigs, "abort@decode").load_id == 1
    assert run(rigs[0]).load_id == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to tell it by")
def test_kill_from_outside_is_named(rigs: list[WorkerRig]) -> None:
    """SIGKILL in the middle of a trial reads as killed, with the usual reason."""
    rigs.append(rig_with(faulty("deaf@decode")))
    events = rigs[0].run_trial(REQUEST)
    advance(events, "decode")
    children()[0].kill()
    last = list(events)[-1]
    assert isinstance(last, TrialFinished)
    assert last.trial.outcome is Outcome.CRASHED
    assert last.trial.error
    assert last.trial.error.code == "killed"
    assert "RAM" in last.trial.error.hint


@pytest.mark.parametrize("fault", ["hang@decode", "hang_stubbornly@decode", "deaf@load"])
def test_closing_a_trial_ends_a_worker_that_does_not_react(
    rigs: list[WorkerRig], fault: str
) -> None:
    """The stop ladder goes on until the process and its children are gone."""
    rigs.append(rig_with(faulty(fault)))
    events = rigs[0].run_trial(REQUEST)
    advance(events, fault.rpartition("@")[2])
    started = psutil.Process().children(recursive=True)
    events.close()  # type: ignore[attr-defined]
    rigs[0].close()
    _, alive = psutil.wait_procs(started, timeout=GONE_S)
    assert started
    assert not alive


def test_closing_the_rig_leaves_no_process(rigs: list[WorkerRig]) -> None:
    """Planner and worker end with the rig."""
    run_with(rigs)
    rigs[0].dry_run(SETTINGS)
    assert children()
    rigs[0].close()
    assert not children()


def test_dry_run_that_aborts_does_not_fit(rigs: list[WorkerRig]) -> None:
    """The planner's death is an answer, and the next question gets a new planner."""
    rigs.append(rig_with(faulty("abort@dry_run")))
    for _ in range(2):
        estimate = rigs[0].dry_run(SETTINGS)
        assert estimate.verdict is Verdict.DOES_NOT_FIT
        assert estimate.note


def test_planner_that_cannot_start_is_a_problem(rigs: list[WorkerRig]) -> None:
    """No engine at all is something for the user to fix, not a verdict."""
    rigs.append(rig_with(Launch(command=("/nonexistent/rigtune",))))
    with pytest.raises(EnvironmentProblem) as caught:
        rigs[0].dry_run(SETTINGS)
    assert caught.value.info.code == "engine_not_started"


@pytest.mark.parametrize("content", [None, b"no library at all"])
def test_a_folder_without_an_engine_is_named(
    rigs: list[WorkerRig], tmp_path: Path, content: bytes | None
) -> None:
    """--engine-dir with nothing usable in it: the folder and the reason, not a crash."""
    if content is not None:
        (tmp_path / "libllama.so").write_bytes(content)
    rigs.append(rig_with(Launch(engine_dir=str(tmp_path))))
    with pytest.raises(EnvironmentProblem) as caught:
        rigs[0].dry_run(SETTINGS)
    assert caught.value.info.code == "engine_unusable"
    assert str(tmp_path) in caught.value.info.message


def test_trial_without_an_engine_is_an_outcome(rigs: list[WorkerRig]) -> None:
    """Losing the program in the middle of a sweep does not break the sweep."""
    rigs.append(rig_with(Launch(command=("/nonexistent/rigtune",))))
    trial = run(rigs[0])
    assert trial.outcome is Outcome.CRASHED
    assert trial.error
    assert trial.error.code == "engine_not_started"


class Window:
    """A telemetry window that notes what it is told."""

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.began_with: list[int] = []
        self.result: TelemetryWindow | None = None

    def own(self, pid: int) -> None:
        self.pids.append(pid)

    def begin(self) -> None:
        self.began_with = list(self.pids)


def test_telemetry_window_surrounds_the_trial() -> None:
    """The window knows the engine's process and is closed before it is read."""
    window = Window()

    @contextlib.contextmanager
    def opened(own_pids: Collection[int]) -> Iterator[Window]:
        yield window
        window.result = TelemetryWindow(n_samples=7)

    rig = WorkerRig(
        msgspec.structs.replace(a_model(), file_bytes=1000),
        SearchHost(cores_physical=1, cores_logical=1, ram_bytes=1 << 30),
        launch=faulty(),
        window=opened,
    )
    events = rig.run_trial(REQUEST)
    advance(events, "decode")
    pids = [p.pid for p in children()]
    trial = list(events)[-1]
    rig.close()
    assert window.pids == pids
    assert window.began_with == pids  # the measured part begins once weights are loaded
    assert isinstance(trial, TrialFinished)
    assert trial.trial.telemetry == TelemetryWindow(n_samples=7)


def test_load_waits_until_memory_is_back() -> None:
    """After a worker ended, the next one starts when its device memory is free again."""
    readings = [8000 * MIB, 1000 * MIB, 4000 * MIB, 7990 * MIB]
    asked: list[str] = []

    def free_now(device: str) -> int:
        asked.append(device)
        return readings[len(asked) - 1]

    rig = WorkerRig(
        msgspec.structs.replace(a_model(), file_bytes=1000),
        SearchHost(cores_physical=1, cores_logical=1, ram_bytes=1 << 30),
        launch=faulty("device@hello", "abort@decode"),
        free_now=free_now,
    )
    assert rig.space().devices[0].free_bytes == 8000 * MIB
    run(rig)
    assert asked == ["CUDA0"]
    run(rig)
    rig.close()
    assert asked == ["CUDA0"] * 4


def test_a_file_that_was_replaced_is_not_loaded(tmp_path: Path) -> None:
    """Another file under the model's name: the next load is refused by name, the same one runs."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    rig = WorkerRig(
        msgspec.structs.replace(a_model(), file_bytes=1000, path=str(path)),
        SearchHost(cores_physical=1, cores_logical=1, ram_bytes=1 << 30),
        launch=faulty("abort@decode"),
    )
    try:
        assert run(rig).outcome is Outcome.CRASHED
        path.write_bytes(b"GGUF of another model")
        trial = run(rig)
    finally:
        rig.close()
    assert trial.outcome is Outcome.LOAD_FAILED
    assert trial.error is not None
    assert trial.error.code == "file_replaced"


def test_a_clock_that_jumps_costs_nothing(
    rigs: list[WorkerRig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Durations come from a clock that nobody sets: a jump of a day changes neither."""
    jumps = iter(range(0, 86_400 * 1000, 86_400))
    monkeypatch.setattr(time, "time", lambda: float(next(jumps)))
    trial = run_with(rigs)
    assert trial.outcome is Outcome.OK
    assert 0 <= trial.elapsed_s < 3600
