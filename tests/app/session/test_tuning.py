"""A recording that fails costs neither a search nor its result."""

import threading
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.events import SweepFinished, TrialFinished
from app.domain.sweep import BudgetName, SweepRequest, SweepResult, SweepStatus
from app.rig.simulated import SimulatedRig
from app.session.tuning import advised, follow, with_reserve
from tests.fakes import situations
from tests.fakes.rigs import machine, plan_for, point, replay

QUICK = SweepRequest(budget=BudgetName.QUICK)


def test_no_folder_for_the_recording_ends_before_anything_runs(tmp_path: Path) -> None:
    """The folder is looked at first: no trial runs whose recording has nowhere to go."""
    rig = SimulatedRig(machine())
    events = follow(
        plan_for(rig, QUICK), rig, threading.Event(), record=tmp_path / "none" / "out.json"
    )
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        next(events)
    assert rig.now_s() == 0


def test_failed_recording_keeps_the_result(tmp_path: Path) -> None:
    """A folder that vanishes meanwhile: the answer comes, with the reason beside it."""
    rig, folder = SimulatedRig(machine()), tmp_path / "gone"
    folder.mkdir()
    result = None
    for event in follow(plan_for(rig, QUICK), rig, threading.Event(), record=folder / "out.json"):
        if isinstance(event, TrialFinished) and folder.is_dir():
            folder.rmdir()
        if isinstance(event, SweepFinished):
            result = event.result
    assert result is not None
    assert result.recommended is not None
    assert result.status == "complete"
    assert result.error is not None
    assert result.error.code == "not_writable"


def test_a_result_carries_the_advice_on_its_trials() -> None:
    """A spilled trial is explained wherever the result is shown, stored ones included."""
    situation = situations.plan()
    assert situation.plan is not None
    spilled = situations.trial(growth=300 << 20)
    result = SweepResult(status=SweepStatus.COMPLETE, recommended=None, trials=(spilled,))
    found = advised(result, situation.machine, situation.plan)
    assert [finding.id for finding in found.findings] == ["spilled"]


def test_after_a_crash_the_systems_log_is_read_again() -> None:
    """A driver reset that Windows noted during the search explains the crashed trial."""
    situation = situations.plan()
    assert situation.plan is not None
    crashed = situations.crashed("2026-01-02T03:04:09Z")
    result = SweepResult(status=SweepStatus.COMPLETE, recommended=None, trials=(crashed,))
    settings = msgspec.structs.replace(situations.windows(), resets=(situations.reset(),))
    host = situations.host(os="windows", windows=settings)
    found = advised(result, situation.machine, situation.plan, lambda: host).findings
    assert [finding.id for finding in found] == ["reset_in_run"]
    assert advised(result, situation.machine, situation.plan).findings == ()


def test_a_reserve_is_taken_from_the_first_recorded_device() -> None:
    """A replay keeps it free, never below nothing; without one the recording is as it was."""
    made = replay([point(0, 10.0, 0)], n_layer=4, free_bytes=1000)
    assert with_reserve(made, 0) is made
    assert with_reserve(made, 400).devices[0].free_bytes == 600
    assert with_reserve(made, 4000).devices[0].free_bytes == 0
