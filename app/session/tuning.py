"""Runs a search so that nothing measured is lost: every trial is stored before the next one."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import msgspec

from app.advice.rules import result_findings
from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import SweepEvent, SweepFinished, TrialFinished, TrialProgress
from app.domain.machine import HostInfo, Machine
from app.domain.model import ModelSpec
from app.domain.outcome import Outcome
from app.domain.sweep import Recommended, SweepPlan, SweepRequest, SweepResult, SweepStatus
from app.domain.trial import Trial
from app.rig.interface import Rig
from app.rig.replay_file import Replay, check_target, write_replay
from app.session.same_cards import keys_of
from app.store import Profile, Store, StoredSweep, sweep_fingerprint, what_changed
from app.store.records import engine_name, machine_name
from app.sweep.policy import POLICY_VERSION
from app.sweep.record import recorded
from app.sweep.run import DryRuns, cancelled, run_sweep

ENDED_BADLY = {Outcome.CRASHED, Outcome.DEVICE_LOST, Outcome.TIMED_OUT}


def follow(
    plan: SweepPlan,
    rig: Rig,
    cancel: threading.Event,
    *,
    prior: Sequence[Trial] = (),
    keep: Callable[[Trial], None] = lambda _: None,
    record: Path | None = None,
    broken: Callable[[], ErrorInfo | None] = lambda: None,
) -> Iterator[SweepEvent]:
    """Yield the events of a search; ``cancel`` ends it with everything measured so far.

    Args:
        plan: What to do.
        rig: Where to run it.
        cancel: Checked at every event.
        prior: Trials of an interrupted search.
        keep: Called with each finished trial before anything else happens.
        record: File to write the search to, as a replay.
        broken: Asked after each trial: why what follows would not belong to what was measured.

    Raises:
        EnvironmentProblem: The recording could not be written; told before anything is loaded.
    """
    if record is not None:
        check_target(record)
    dry_runs: DryRuns = {}
    trials = list(prior)
    events = run_sweep(plan, rig, prior, dry_runs)
    for event in events:
        if isinstance(event, TrialFinished):
            keep(event.trial)
            trials.append(event.trial)
        why = broken() if isinstance(event, TrialFinished) else None
        if (why or cancel.is_set()) and not isinstance(event, SweepFinished):
            close = getattr(events, "close", None)
            if close is not None:
                close()
            yield event
            event = cancelled(plan, rig, trials, dry_runs, why)  # noqa: PLW2901 - the last one
        if isinstance(event, SweepFinished) and record is not None:
            replay = recorded(plan, trials, dry_runs)
            event = _written(event, replay, record)  # noqa: PLW2901
        yield event
        if isinstance(event, SweepFinished):
            return


def advised(
    result: SweepResult,
    machine: Machine,
    plan: SweepPlan,
    host_now: Callable[[], HostInfo] | None = None,
) -> SweepResult:
    """Return a search's result with the advice that follows from what was measured.

    After a crash the host is looked at again: the system's log may say that a driver was reset.
    """
    if host_now is not None and any(t.outcome in ENDED_BADLY for t in result.trials):
        machine = msgspec.structs.replace(machine, host=host_now())
    found = result_findings(machine, result.trials, plan)
    return msgspec.structs.replace(result, findings=found)


def with_reserve(replay: Replay, reserve_bytes: int) -> Replay:
    """Return ``replay`` with that much less free on its first device."""
    if not (reserve_bytes and replay.devices):
        return replay
    first, *others = replay.devices
    left = max(0, first.free_bytes - reserve_bytes)
    first = msgspec.structs.replace(first, free_bytes=left)
    return msgspec.structs.replace(replay, devices=(first, *others))


def _written(event: SweepFinished, replay: Replay, path: Path) -> SweepFinished:
    """Write the recording; where that fails, the result is kept and says so."""
    try:
        write_replay(replay, path)
    except EnvironmentProblem as problem:
        error = event.result.error or problem.info
        return SweepFinished(result=msgspec.structs.replace(event.result, error=error))
    return event


LookAgain = Callable[[SweepResult], Generator[TrialProgress, None, SweepResult]]


def unchanged(result: SweepResult) -> Generator[TrialProgress, None, SweepResult]:
    """Return ``result`` as it is."""
    yield from ()
    return result


class Tuning:
    """A search of a real model: stored as it goes, its answer kept as a profile."""

    def __init__(
        self, store: Store, spec: ModelSpec, machine: Machine, request: SweepRequest
    ) -> None:
        """Prepare.

        Args:
            store: Where to keep it.
            spec: The model.
            machine: The machine, engine included.
            request: What was asked.
        """
        self._store = store
        self._spec = spec
        self._machine = machine
        self._request = request
        self._fingerprint = sweep_fingerprint(spec, machine, request)
        self._stamps = _stamps(spec)

    def interrupted(self) -> tuple[int, tuple[Trial, ...]] | None:
        """Return number and trials of an interrupted search of the same kind.

        One that another version's policy began, or that was asked with other constraints, is not
        gone on with: the questions that its trials answer are not asked any more, and what they
        cost (loads, failed launches) would be paid twice. It stays stored.
        """
        found = self._store.interrupted_sweep(
            self._fingerprint, lambda sweep: not self._differences(sweep)
        )
        if found is None:
            return None
        sweep, trials = found
        return sweep.id, trials

    def changes(self) -> tuple[str, ...]:
        """Return a note per thing that differs from the last interrupted search of the model."""
        for sweep in self._store.sweeps(self._spec.fingerprint):
            if sweep.status is not SweepStatus.COMPLETE and sweep.n_trials:
                return tuple(f"changed_{name}" for name in self._differences(sweep))
        return ()

    def _differences(self, sweep: StoredSweep) -> tuple[str, ...]:
        """Return what makes ``sweep`` another search than this one; a larger budget does not."""
        found = what_changed(sweep.fingerprint, self._fingerprint)
        if sweep.policy_version != int(POLICY_VERSION):
            found = (*found, "policy")
        asked = msgspec.structs.replace(
            sweep.request, goal=self._request.goal, budget=self._request.budget
        )
        return found if asked == self._request else (*found, "request")

    def run(
        self,
        plan: SweepPlan,
        rig: Rig,
        cancel: threading.Event,
        *,
        resumed: tuple[int, tuple[Trial, ...]] | None = None,
        record: Path | None = None,
        look_again: LookAgain = unchanged,
    ) -> Iterator[SweepEvent]:
        """Yield the events of the search; the result carries the stored profile's id.

        Args:
            plan: What to do.
            rig: Where to run it.
            cancel: Set it to stop.
            resumed: Number and trials of an interrupted search to go on with.
            record: File to write the search to, as a replay.
            look_again: Adds to the result what another look at the loaded model shows.
        """
        if resumed is None:
            prior: tuple[Trial, ...] = ()
            sweep_id = self._store.start_sweep(
                request=self._request,
                plan=plan,
                fingerprint=self._fingerprint,
                model=self._spec,
                machine=self._machine,
                policy_version=int(POLICY_VERSION),
            )
        else:
            sweep_id, prior = resumed
            self._store.resume_sweep(sweep_id)

        def keep(trial: Trial) -> None:
            self._store.add_trial(sweep_id, trial)

        for event in follow(
            plan, rig, cancel, prior=prior, keep=keep, record=record, broken=self._replaced
        ):
            if isinstance(event, SweepFinished):
                result = yield from look_again(event.result)
                result = self._with_profile(result, sweep_id)
                self._store.finish_sweep(sweep_id, result)
                yield SweepFinished(result=result)
            else:
                yield event

    def _replaced(self) -> ErrorInfo | None:
        """Return what to say when the model's files are no longer those of the first trial."""
        now = _stamps(self._spec)
        if now == self._stamps:
            return None
        if None in now:
            return ErrorInfo(
                code="model_gone",
                message=f"The file of {self._spec.name} went away while it was being measured.",
                hint="What was measured is kept. Bring the file back, and start again.",
            )
        return ErrorInfo(
            code="model_replaced",
            message=f"The file of {self._spec.name} was replaced while it was being measured.",
            hint="What was measured belongs to the old file. Start again with the new one.",
        )

    def _with_profile(self, result: SweepResult, sweep_id: int) -> SweepResult:
        best = result.recommended
        if best is None:
            return result
        profile = self._store.save_profile(self._draft(best, sweep_id))
        kept = msgspec.structs.replace(best, profile_id=profile.id)
        return msgspec.structs.replace(result, recommended=kept)

    def _draft(self, best: Recommended, sweep_id: int) -> Profile:
        return Profile(
            name=f"{self._spec.name} {self._request.goal}",
            settings=best.settings,
            model_fingerprint=self._spec.fingerprint,
            model_name=self._spec.name,
            model_path=self._spec.path,
            goal=self._request.goal,
            prefill_tok_s=best.prefill_tok_s,
            decode_tok_s=best.decode_tok_s,
            request_s=best.request_s,
            device_bytes=best.device_bytes,
            device_keys=keys_of(best.settings, self._machine),
            machine=machine_name(self._machine),
            engine=engine_name(self._machine.engine),
            sweep_id=sweep_id,
        )


def _stamps(spec: ModelSpec) -> tuple[tuple[int, int, int] | None, ...]:
    """Return what changes when one of the model's files is replaced or written to."""
    found: list[tuple[int, int, int] | None] = []
    for name in spec.files:
        try:
            status = Path(name).stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
