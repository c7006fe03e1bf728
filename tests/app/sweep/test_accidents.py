"""What may happen to a machine during a search: lost devices, power, heat, another file."""

from collections.abc import Iterator

import msgspec
import pytest
from typing_extensions import override

from app.domain.errors import ErrorInfo
from app.domain.events import RigEvent, SweepFinished, SweepPaused, TrialFinished
from app.domain.outcome import Outcome
from app.domain.sweep import BudgetName, SweepRequest, SweepResult, SweepStatus
from app.domain.trial import TelemetryWindow, Trial, TrialRequest
from app.domain.units import GIB
from app.rig.simulated import SimulatedRig
from app.sweep.run import run_sweep
from tests.fakes.rigs import machine, plan_for, search


class Accident(SimulatedRig):
    """A rig to whose trials from number ``after`` on something happens."""

    def __init__(self, after: int, **changes: object) -> None:
        super().__init__(machine(free_bytes=3 * GIB))
        self.after, self.changes, self.n_trials = after, changes, 0

    @override
    def run_trial(self, request: TrialRequest) -> Iterator[RigEvent]:
        self.n_trials += 1
        for event in super().run_trial(request):
            if isinstance(event, TrialFinished) and self.happens(request):
                trial = msgspec.structs.replace(event.trial, **self.changes)
                yield TrialFinished(index=0, trial=trial)
            else:
                yield event

    def happens(self, request: TrialRequest) -> bool:
        return self.n_trials > self.after and bool(request.settings.devices)


LOST = {
    "outcome": Outcome.DEVICE_LOST,
    "prefill": (),
    "decode": (),
    "error": ErrorInfo(code="device_lost", message="The device is gone."),
}


@pytest.mark.parametrize("after", [0, 3, 9])
def test_a_device_that_vanishes(after: int) -> None:
    """The search ends with what was measured before, or with the CPU; never with a crash."""
    rig = Accident(after, **LOST)
    result = search(rig)
    assert result.recommended is not None
    assert result.trials[result.recommended.trial].outcome is Outcome.OK
    if not after:
        assert result.recommended.settings.devices == ()


def test_another_file_ends_the_search() -> None:
    """A model that was replaced meanwhile: nothing more is loaded, and the error says why."""
    replaced = ErrorInfo(code="file_replaced", message="Another file.")
    failed = {**LOST, "outcome": Outcome.LOAD_FAILED, "error": replaced}
    rig = Accident(4, **failed)
    result = search(rig)
    assert result.status is SweepStatus.FAILED
    assert result.error == replaced
    assert rig.n_trials == 5


class Unplugged(Accident):
    """The power source changes during one trial."""

    @override
    def happens(self, request: TrialRequest) -> bool:
        return self.n_trials == self.after + 1


@pytest.mark.parametrize("why", ["power_source_changed", "power_mode_changed"])
def test_unplugged_pauses_asks_and_goes_on(why: str) -> None:
    """The trial does not count and is repeated; the search waits for an answer before that."""
    window = TelemetryWindow(n_samples=5, disturbed=why)
    rig = Unplugged(2, telemetry=window)
    trials: list[Trial] = []
    paused: list[int] = []
    result: SweepResult | None = None
    for event in run_sweep(plan_for(rig, SweepRequest()), rig):
        if isinstance(event, TrialFinished):
            trials.append(event.trial)
        if isinstance(event, SweepPaused):
            assert event.code == why
            paused.append(rig.n_trials)
        if isinstance(event, SweepFinished):
            result = event.result
    assert paused == [3]
    assert trials[3].request == trials[2].request
    assert result is not None
    assert result.status is SweepStatus.COMPLETE


def test_heat_that_stays_does_not_double_the_search() -> None:
    """A throttled trial is repeated once; where that is throttled too, no other one is."""
    rig = Accident(0, outcome=Outcome.THROTTLED)
    cool = SimulatedRig(rig.machine)
    n_cool = len(search(cool).trials)
    result = search(rig)
    assert result.recommended is not None
    assert len(result.trials) <= n_cool + 2


def test_a_budget_without_room_for_one_load_is_said() -> None:
    """A very large model and a quick search: which bound it is, not that nothing runs."""
    slow = SimulatedRig(machine(load_s=400.0))
    result = search(slow, SweepRequest(budget=BudgetName.QUICK))
    assert (result.status, result.trials) == (SweepStatus.FAILED, ())
    assert result.error is not None
    assert result.error.code == "budget_too_small"
    assert {"400", "180"} <= set(result.error.message.split())
    assert "--budget" in result.error.hint
