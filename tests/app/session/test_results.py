"""What can be done with stored searches, on a real store."""

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.events import RigEvent, TrialFinished, TrialProgress
from app.domain.machine import Machine
from app.domain.outcome import Outcome
from app.domain.sweep import SweepRequest
from app.domain.trial import Sample, Trial, TrialRequest
from app.session.results import Recheck, Results
from app.store import Profile, Store, sweep_fingerprint
from tests.fakes import window_data as data
from tests.fakes.records import a_model


class Bench:
    """A session that measures ``decode_tok_s`` every time, or fails with ``outcome``."""

    def __init__(self, machine: Machine = data.MACHINE) -> None:
        self.here = machine
        self.decode_tok_s = 38.9
        self.outcome = Outcome.OK
        self.asked: list[tuple[str, TrialRequest]] = []

    def machine(self, *, refresh: bool = False, wake: bool = False) -> Machine:
        return self.here

    def bench(self, model: str, request: TrialRequest) -> Iterator[RigEvent]:
        self.asked.append((model, request))
        yield TrialProgress(phase="load")
        samples = (Sample(n_tok=64, ns=int(64e9 / self.decode_tok_s)),) * 4
        ok = self.outcome is Outcome.OK
        trial = Trial(
            request=request, load_id=1, outcome=self.outcome, decode=samples if ok else ()
        )
        yield TrialFinished(index=0, trial=trial)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "rigtune.db") as opened:
        yield opened


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def results(store: Store, bench: Bench) -> Results:
    return Results(lambda: store, bench)


def keep(store: Store) -> int:
    """Store the made-up search with its profile, as a real one is."""
    model, request = a_model(), SweepRequest()
    sweep_id = store.start_sweep(
        request=request, plan=data.PLAN, model=model,
        fingerprint=sweep_fingerprint(model, data.MACHINE, request),
        machine=data.MACHINE, policy_version=1,
    )  # fmt: skip
    for trial in data.TRIALS:
        store.add_trial(sweep_id, trial)
    best = data.recommended(0, 6.9)
    profile = store.save_profile(
        Profile(name="mine", settings=best.settings, model_fingerprint=model.fingerprint,
                model_name=model.name, model_path=model.path, sweep_id=sweep_id)
    )  # fmt: skip
    kept = msgspec.structs.replace(best, profile_id=profile.id)
    store.finish_sweep(sweep_id, msgspec.structs.replace(data.result(), recommended=kept))
    return sweep_id


def checked(results: Results, store: Store) -> Recheck:
    (sweep,) = store.sweeps()
    *_, last = results.recheck(sweep, threading.Event())
    assert isinstance(last, Recheck)
    return last


def test_name_goes_to_the_profile_too(store: Store, results: Results) -> None:
    """One name must stand for a search and for what chat offers from it."""
    results.rename(keep(store), "  Büro 机器 ")
    assert store.sweeps()[0].name == "Büro 机器"
    assert store.profiles()[0].name == "Büro 机器"


def test_deleting_can_be_undone_until_the_purge(store: Store, results: Results) -> None:
    """Search and profile must go and come back together, and be gone after the purge."""
    sweep_id = keep(store)
    results.delete(sweep_id)
    assert store.sweeps() == ()
    assert store.profiles() == ()
    results.restore(sweep_id)
    assert store.sweeps()[0].n_trials == len(data.TRIALS)
    assert store.profiles()[0].name == "mine"
    results.delete(sweep_id)
    results.purge()
    with pytest.raises(UsageProblem):
        results.restore(sweep_id)
    assert store.trials(sweep_id) == ()


def test_profile_deleted_before_stays_deleted(store: Store, results: Results) -> None:
    """Undo must bring back what it took away, no more."""
    sweep_id = keep(store)
    store.delete_profile(store.profiles()[0].id)
    results.delete(sweep_id)
    with store._write() as connection:
        connection.execute("UPDATE profiles SET deleted_utc = '2020-01-01T00:00:00Z'")
    results.restore(sweep_id)
    assert store.profiles() == ()


def test_file_comes_back_whole_on_another_machine(
    store: Store, results: Results, tmp_path: Path
) -> None:
    """Trials, answer, name and profile must arrive; where the model lay must not travel."""
    sweep_id = keep(store)
    results.rename(sweep_id, "Mine")
    written = results.write_json(sweep_id)
    assert a_model().path.encode() not in written
    with Store.open(tmp_path / "other.db") as other:
        there = Results(lambda: other, Bench())
        new_id = there.read_json(written)
        (sweep,) = other.sweeps()
        assert sweep.name == "Mine"
        answer = other.sweep(new_id)
        assert answer.trials == data.TRIALS
        assert answer.recommended is not None
        (profile,) = other.profiles()
        assert profile.id == answer.recommended.profile_id
        assert profile.sweep_id == new_id
        with pytest.raises(EnvironmentProblem, match="has not been seen"):
            checked(there, other)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff\xfe", b'{"format": "rigtune-result/9"}', b"[" * 100_000]
)
def test_other_files_are_refused_with_a_sentence(results: Results, content: bytes) -> None:
    """Whatever is chosen, nothing is stored and the reason is said."""
    with pytest.raises(EnvironmentProblem) as error:
        results.read_json(content)
    assert error.value.info.hint


def test_recheck_measures_the_recommendation_again(
    store: Store, results: Results, bench: Bench
) -> None:
    """The deciding trial must be repeated on the recommended settings and compared."""
    keep(store)
    found = checked(results, store)
    ((model, request),) = bench.asked
    assert model == a_model().path
    assert request.settings == data.recommended(0, 6.9).settings
    assert request.workload == data.TRIALS[0].request.workload
    assert found.difference_frac == pytest.approx(38.9 / found.before.median - 1)
    assert not found.is_outside_noise


def test_recheck_tells_noise_from_loss(store: Store, results: Results, bench: Bench) -> None:
    """Six per cent less is a loss; a trial that does not run any more has no speed."""
    keep(store)
    bench.decode_tok_s = 0.9 * bench.decode_tok_s
    assert checked(results, store).is_outside_noise
    bench.outcome = Outcome.OUT_OF_MEMORY
    found = checked(results, store)
    assert found.now is None
    assert found.outcome is Outcome.OUT_OF_MEMORY


def test_changes_are_those_that_last(store: Store, results: Results, bench: Bench) -> None:
    """A new engine must be named; a machine whose engine sleeps says nothing of it."""
    keep(store)
    (sweep,) = store.sweeps()
    assert results.changed(sweep) == ()
    engine = data.MACHINE.engine
    assert engine is not None
    bench.here = msgspec.structs.replace(
        data.MACHINE, engine=msgspec.structs.replace(engine, commit="abc")
    )
    assert results.changed(sweep) == ("engine",)
    bench.here = msgspec.structs.replace(data.MACHINE, engine=None)
    assert results.changed(sweep) == ()
