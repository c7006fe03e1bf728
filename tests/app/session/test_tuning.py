"""A recording that fails costs neither a search nor its result."""

import threading
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.events import SweepFinished, TrialFinished
from app.domain.sweep import BudgetName, SweepRequest
from app.rig.simulated import SimulatedRig
from app.session.tuning import follow, with_reserve
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


def test_a_reserve_is_taken_from_the_first_recorded_device() -> None:
    """A replay keeps it free, never below nothing; without one the recording is as it was."""
    made = replay([point(0, 10.0, 0)], n_layer=4, free_bytes=1000)
    assert with_reserve(made, 0) is made
    assert with_reserve(made, 400).devices[0].free_bytes == 600
    assert with_reserve(made, 4000).devices[0].free_bytes == 0
