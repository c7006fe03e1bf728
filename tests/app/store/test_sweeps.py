"""Sweeps survive what happens to programs: kills, full disks, a second instance."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import runtime
from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.settings import Settings
from app.domain.sweep import Goal, Recommended, SweepRequest, SweepResult, SweepStatus
from app.domain.trial import Trial
from app.store import Store, SweepFingerprint, sweep_fingerprint, what_changed
from tests.fakes.records import a_machine, a_model, a_plan, a_trial, records

REQUEST = SweepRequest()
FINGERPRINT = sweep_fingerprint(a_model(), a_machine(), REQUEST)

CHILD = """
import sys
from pathlib import Path
from tests.app.store.test_sweeps import start
from tests.fakes.records import a_trial
from app.store import Store
store = Store.open(Path(sys.argv[1]))
sweep = start(store)
for n in range(int(sys.argv[2])):
    store.add_trial(sweep, a_trial(n))
    print(n, flush=True)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "rigtune.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("shared") / "rigtune.db") as opened:
        yield opened


def start(store: Store, fingerprint: SweepFingerprint = FINGERPRINT) -> int:
    return store.start_sweep(
        request=REQUEST,
        plan=a_plan(REQUEST),
        fingerprint=fingerprint,
        model=a_model(fingerprint.model),
        machine=a_machine(),
        policy_version=1,
    )


def _child(path: Path, n_trials: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(n_trials)],
        env=runtime.sibling_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )


def _result(status: SweepStatus = SweepStatus.COMPLETE) -> SweepResult:
    best = Recommended(
        settings=Settings(n_gpu_layers=5),
        prefill_tok_s=None,
        decode_tok_s=None,
        request_s=1.5,
        device_bytes={"CUDA0": 8},
        trial=0,
    )
    return SweepResult(status=status, recommended=best, trials=(a_trial(),), n_model_loads=1)


def test_a_finished_sweep_reads_back_whole(store: Store) -> None:
    """Result and trials come back as they were given, and the list shows the answer."""
    sweep = start(store)
    assert store.sweeps()[0].status is None
    assert store.add_trial(sweep, a_trial()) == 0
    store.finish_sweep(sweep, _result())
    assert store.sweep(sweep) == _result()
    (listed,) = store.sweeps()
    assert listed.status is SweepStatus.COMPLETE
    assert (listed.request, listed.plan) == (REQUEST, a_plan(REQUEST))
    assert listed.recommended == _result().recommended
    assert (listed.n_trials, listed.model_name) == (1, "Tiny")
    assert store.interrupted_sweep(FINGERPRINT) is None


@given(trials=st.lists(records(Trial), max_size=2), result=records(SweepResult))
@settings(max_examples=25, deadline=None)
def test_any_record_round_trips(shared: Store, trials: list[Trial], result: SweepResult) -> None:
    """Whatever a trial or a result holds comes back equal."""
    sweep = start(shared)
    for trial in trials:
        shared.add_trial(sweep, trial)
    shared.finish_sweep(sweep, result)
    assert shared.sweep(sweep) == msgspec.structs.replace(result, trials=tuple(trials))


@pytest.mark.parametrize("status", [None, SweepStatus.CANCELLED, SweepStatus.FAILED])
def test_interrupted_sweeps_resume(store: Store, status: SweepStatus | None) -> None:
    """A sweep that stopped early is offered with its trials, and goes on in place."""
    sweep = start(store)
    assert store.interrupted_sweep(FINGERPRINT) is None, "nothing measured, nothing to resume"
    store.add_trial(sweep, a_trial(3))
    if status:
        store.finish_sweep(sweep, _result(status))
    found = store.interrupted_sweep(FINGERPRINT)
    assert found is not None
    assert (found[0].id, found[1]) == (sweep, (a_trial(3),))
    assert store.resume_sweep(sweep) == (a_trial(3),)
    assert store.add_trial(sweep, a_trial(4)) == 1
    store.finish_sweep(sweep, _result())
    assert store.interrupted_sweep(FINGERPRINT) is None


def test_a_newer_whole_sweep_ends_the_offer(store: Store) -> None:
    """Once the same question was answered, the old attempt is not offered any more."""
    store.add_trial(start(store), a_trial())
    store.finish_sweep(start(store), _result())
    assert store.interrupted_sweep(FINGERPRINT) is None


def test_what_was_asked_since_does_not_end_the_offer(store: Store) -> None:
    """Another question, answered or not, and one stopped before it began: the first goes on."""
    first = start(store)
    store.add_trial(first, a_trial())
    for status in (SweepStatus.COMPLETE, SweepStatus.CANCELLED):
        other = start(store)
        store.add_trial(other, a_trial())
        store.finish_sweep(other, _result(status))
    store.finish_sweep(start(store), _result(SweepStatus.CANCELLED))
    found = store.interrupted_sweep(FINGERPRINT, lambda sweep: sweep.id in {first, first + 3})
    assert found is not None
    assert found[0].id == first


def test_another_fingerprint_never_resumes(store: Store) -> None:
    """Trials measured with another driver are not mixed in, and the difference has a name."""
    store.add_trial(start(store), a_trial())
    now = msgspec.structs.replace(FINGERPRINT, driver="600", power_source="battery")
    assert store.interrupted_sweep(now) is None
    (before,) = store.sweeps(FINGERPRINT.model)
    assert what_changed(before.fingerprint, now) == ("driver", "power_source")
    assert what_changed(now, now) == ()


def test_fingerprint_follows_what_matters() -> None:
    """Model content, engine, devices in use and goal make a fingerprint."""
    other_goal = SweepRequest(goal=Goal.DOCUMENTS)
    other = sweep_fingerprint(a_model("beef"), a_machine("CUDA1"), other_goal)
    assert what_changed(FINGERPRINT, other) == ("model", "devices", "goal")
    moved = a_model(path="/elsewhere/tiny.gguf")
    assert sweep_fingerprint(moved, a_machine(), REQUEST) == FINGERPRINT
    chosen = SweepRequest(devices=("Vulkan0",))
    assert sweep_fingerprint(a_model(), a_machine(), chosen).devices == ()


def test_a_moved_model_is_found_at_its_new_place(store: Store) -> None:
    """Sweeps name the path where the same content was seen last."""
    start(store)
    store.remember_model(a_model(path="/new/tiny.gguf"))
    assert store.sweeps()[0].model_path == "/new/tiny.gguf"


def test_deleting_a_sweep_takes_its_trials(store: Store) -> None:
    """A deleted sweep is gone, its trials with it, and others stay."""
    first, second = start(store), start(store)
    store.add_trial(first, a_trial())
    store.add_trial(second, a_trial())
    store.delete_sweep(first)
    store.purge_sweeps()
    assert store.trials(first) == ()
    assert len(store.trials(second)) == 1
    with pytest.raises(UsageProblem):
        store.sweep(first)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_kill_loses_no_stored_trial(tmp_path: Path) -> None:
    """After kill -9 every trial that was reported stored is there, and resume offers them."""
    path = tmp_path / "rigtune.db"
    with _child(path, 10_000) as child:
        assert child.stdout is not None
        reported = [child.stdout.readline() for _ in range(5)]
        child.send_signal(signal.SIGKILL)
        reported += child.stdout.readlines()
    with Store.open(path) as store:
        found = store.interrupted_sweep(FINGERPRINT)
        assert found is not None
        layers = [t.request.settings.n_gpu_layers for t in found[1]]
    assert layers == list(range(len(layers)))
    assert len(layers) - len(reported) in {0, 1}


def test_two_programs_share_the_file(tmp_path: Path) -> None:
    """Two instances that create the file and write at once both keep everything."""
    path = tmp_path / "rigtune.db"
    with _child(path, 15) as first, _child(path, 15) as second:
        outputs = [child.communicate()[0] for child in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert [len(out.splitlines()) for out in outputs] == [15, 15]
    with Store.open(path) as store:
        assert [s.n_trials for s in store.sweeps()] == [15, 15]


def test_full_disk_keeps_what_was_stored(store: Store) -> None:
    """When the file cannot grow, the problem is named and earlier trials stay readable."""
    sweep = start(store)
    store.add_trial(sweep, a_trial())
    (pages,) = store._connection().execute("PRAGMA page_count").fetchone()
    store._connection().execute(f"PRAGMA max_page_count = {pages}")
    huge = msgspec.structs.replace(a_trial(), log_tail=("x" * 100_000,))
    with pytest.raises(EnvironmentProblem) as caught:
        store.add_trial(sweep, huge)
    assert caught.value.info.code == "disk_full"
    assert store.trials(sweep) == (a_trial(),)
