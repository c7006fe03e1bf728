"""Stored searches: named, deleted with undo, written to files, and measured again."""

import threading
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.events import RigEvent, TrialFinished
from app.domain.machine import Machine
from app.domain.outcome import Outcome
from app.domain.record import Record
from app.domain.sweep import SweepResult
from app.domain.trial import Rate, Trial, TrialRequest
from app.store import Profile, Store, StoredSweep, what_changed
from app.store.documents import read_document
from app.store.records import engine_name
from app.sweep.stats import rate

# Settings are chosen on one machine with one build; these are what changes under them.
LASTING = ("engine", "driver")
LOAD_SPREAD_FRAC = 0.02
"""How far two loads of the same configuration lie apart without any cause."""


class Recheck(Record, frozen=True, kw_only=True):
    """A recommendation measured again.

    Attributes:
        sweep_id: The stored search.
        before: Decode speed then.
        now: Decode speed now; ``None`` where it did not run.
        outcome: How the new trial ended.
        difference_frac: Now against before, e.g. -0.06.
        is_outside_noise: Whether the difference is more than intervals and loads scatter.
        changed: What differs since: ``engine``, ``driver``.
    """

    sweep_id: int
    before: Rate
    now: Rate | None
    outcome: Outcome
    difference_frac: float | None = None
    is_outside_noise: bool = False
    changed: tuple[str, ...] = ()


class Measuring(Protocol):
    """What a check needs of the session."""

    def machine(self, *, refresh: bool = False, wake: bool = False) -> Machine:
        """Return host, GPUs and engine."""
        ...

    def bench(self, model: str, request: TrialRequest) -> Iterator[RigEvent]:
        """Run one trial."""
        ...


class Results:
    """What the user can do with stored searches. Calls block: never on a GUI thread."""

    def __init__(self, store: Callable[[], Store], session: Measuring) -> None:
        """Use the store that ``store`` opens."""
        self._store = store
        self._session = session

    def rename(self, sweep_id: int, name: str) -> None:
        """Give a search, and the profile made from it, a name."""
        self._store().rename_sweep(sweep_id, name.strip())

    def delete(self, sweep_id: int) -> None:
        """Hide a search and its profile until ``restore`` or ``purge``."""
        self._store().delete_sweep(sweep_id)

    def restore(self, sweep_id: int) -> None:
        """Undo ``delete``."""
        self._store().restore_sweep(sweep_id)

    def purge(self) -> None:
        """Delete for good what is hidden."""
        store = self._store()
        store.purge_sweeps()
        store.purge_profiles()

    def write_json(self, sweep_id: int) -> bytes:
        """Return a search with everything it measured as a file."""
        store = self._store()
        result = store.sweep(sweep_id)
        return store.export_sweep(sweep_id, result, self._profile_of(sweep_id))

    def read_json(self, data: bytes) -> int:
        """Store a search from a file, with its profile, and return its number.

        Raises:
            EnvironmentProblem: The file is something else, or damaged.
        """
        store = self._store()
        document = read_document(data)
        sweep_id = store.import_sweep(document)
        result = document.result
        if document.profile is not None and result.recommended is not None:
            draft = msgspec.structs.replace(document.profile, id="", sweep_id=sweep_id)
            kept = store.save_profile(draft)
            best = msgspec.structs.replace(result.recommended, profile_id=kept.id)
            store.finish_sweep(sweep_id, msgspec.structs.replace(result, recommended=best))
        return sweep_id

    def changed(self, sweep: StoredSweep) -> tuple[str, ...]:
        """Return what has changed since a search here: ``engine``, ``driver``; wakes no GPU."""
        machine = self._session.machine()
        drivers = {g.info.driver for g in machine.gpus if g.info and g.info.driver}
        now = msgspec.structs.replace(sweep.fingerprint, driver=", ".join(sorted(drivers)))
        if machine.engine is not None:
            now = msgspec.structs.replace(now, engine=engine_name(machine.engine))
        return tuple(name for name in what_changed(sweep.fingerprint, now) if name in LASTING)

    def recheck(self, sweep: StoredSweep, cancel: threading.Event) -> Iterator[RigEvent | Recheck]:
        """Measure a recommendation again; the last event is the ``Recheck``.

        Raises:
            UsageProblem: There is nothing to measure again.
            EnvironmentProblem: The model is gone, or the devices are busy.
        """
        result = self._store().sweep(sweep.id)
        request, before = _deciding(result)
        if not sweep.model_path:
            hint = "Open the model once under Find best settings; it is recognised by its content."
            message = f"{sweep.model_name} has not been seen on this machine."
            raise EnvironmentProblem("model_not_found", message, hint)
        changed = self.changed(sweep)
        last: Trial | None = None
        for event in self._session.bench(sweep.model_path, request):
            if cancel.is_set():
                return
            if isinstance(event, TrialFinished):
                last = event.trial
            yield event
        if last is not None:
            yield compare(sweep.id, before, last, changed)

    def _profile_of(self, sweep_id: int) -> Profile | None:
        profiles = self._store().profiles()
        return next((p for p in profiles if p.sweep_id == sweep_id), None)


def _deciding(result: SweepResult) -> tuple[TrialRequest, Rate]:
    best = result.recommended
    if best is None or best.decode_tok_s is None or best.trial >= len(result.trials):
        message = "This search has no recommendation that could be measured again."
        raise UsageProblem("nothing_to_check", message, "Search again.")
    asked = result.trials[best.trial].request
    return msgspec.structs.replace(
        asked, stage="recheck", settings=best.settings
    ), best.decode_tok_s


def compare(sweep_id: int, before: Rate, trial: Trial, changed: tuple[str, ...]) -> Recheck:
    """Return what the new trial says about the old speed.

    Outside noise: further apart than both intervals and the scatter between two loads allow,
    added in quadrature.
    """
    now = rate(trial.decode)
    if now is None:
        return Recheck(
            sweep_id=sweep_id, before=before, now=None, outcome=trial.outcome, changed=changed
        )
    difference = now.median / before.median - 1
    halves = [(r.high - r.low) / 2 / r.median for r in (before, now)]
    noise = sum(h * h for h in (*halves, LOAD_SPREAD_FRAC)) ** 0.5
    return Recheck(
        sweep_id=sweep_id, before=before, now=now, outcome=trial.outcome,
        difference_frac=difference, is_outside_noise=abs(difference) > noise, changed=changed,
    )  # fmt: skip
