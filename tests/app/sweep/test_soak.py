"""A speed that fades is seen, and one that lasts; only a thorough search takes the time."""

from collections.abc import Iterator

import msgspec
import pytest
from typing_extensions import override

from app.domain.events import RigEvent, TrialFinished
from app.domain.sweep import BUDGETS, BudgetName, SweepRequest, SweepResult
from app.domain.trial import TelemetryWindow, TrialRequest
from app.rig.simulated import SimulatedRig
from app.sweep.soak import SOAK_STAGE
from tests.fakes.rigs import machine, search


class Warming(SimulatedRig):
    """A machine whose passes grow longer the longer a trial runs: GDDR that cooks."""

    def __init__(self, loss_frac: float) -> None:
        super().__init__(machine(noise_frac=0.005))
        self.loss_frac = loss_frac

    @override
    def run_trial(self, request: TrialRequest) -> Iterator[RigEvent]:
        for event in super().run_trial(request):
            if isinstance(event, TrialFinished) and request.stage == SOAK_STAGE:
                slow = tuple(
                    msgspec.structs.replace(s, ns=int(s.ns / (1 - self.loss_frac * i / 100)))
                    for i, s in enumerate(event.trial.decode[:100])
                )
                seen = TelemetryWindow(n_samples=99, temp_max_c={"gpu": 75.0})
                trial = msgspec.structs.replace(event.trial, decode=slow, telemetry=seen)
                yield TrialFinished(index=0, trial=trial)
            else:
                yield event


def soaked(loss_frac: float, budget: BudgetName = BudgetName.THOROUGH) -> SweepResult:
    return search(Warming(loss_frac), SweepRequest(budget=budget))


def test_a_speed_that_fades_is_said() -> None:
    """The last quarter is 40 % slower than the first: said, with time and temperature."""
    result = soaked(0.75)
    told = {r.code: r.data for r in result.reasons}["speed_fades"]
    assert float(told["loss_pct"] or 0) > 20
    assert told["temp_c"] == 75.0
    assert float(told["minutes"] or 0) > 1


def test_a_speed_that_lasts_is_said() -> None:
    """Without a loss beyond noise it lasts; the passes do not mix with the compared ones."""
    result = soaked(0.0)
    assert "speed_lasts" in {r.code for r in result.reasons}
    assert result.recommended is not None
    assert result.trials[result.recommended.trial].request.stage != SOAK_STAGE
    assert result.virtual_s <= BUDGETS[BudgetName.THOROUGH].max_s


@pytest.mark.parametrize("budget", [BudgetName.QUICK, BudgetName.STANDARD])
def test_shorter_searches_do_not_soak(budget: BudgetName) -> None:
    """Minutes of warm-up are for those who asked for a thorough search."""
    assert not [t for t in soaked(0.0, budget).trials if t.request.stage == SOAK_STAGE]
