"""A recorded search replays to the same recommendation."""

from itertools import product
from pathlib import Path

import msgspec
import pytest

from app.domain.events import SweepFinished, TrialFinished
from app.domain.sweep import SweepRequest
from app.domain.units import GIB
from app.rig.replay import ReplayRig
from app.rig.replay_check import read_replay
from app.rig.replay_file import write_replay
from app.rig.simulated import SimulatedRig
from app.rig.simulated_machine import SimulatedMachine
from app.sweep.record import recorded
from app.sweep.run import DryRuns, run_sweep
from tests.fakes.rigs import machine, plan_for, point, replay, search


@pytest.mark.parametrize(
    "recorded_machine",
    [
        machine(),
        machine(free_bytes=3 * GIB),
        machine(free_bytes=3 * GIB, prefill_cpu_ms=2.0, pinned_gain=4.0),
        machine(free_bytes=3 * GIB, spills=True, lie_frac=0.15),
        machine(free_bytes=3 * GIB, expert_frac=0.9),
        machine(cpu_layer_ms=0.2),
    ],
)
def test_replay_recommends_the_same(tmp_path: Path, recorded_machine: SimulatedMachine) -> None:
    """Fitting, partial, pinned, spilling, with experts, on the CPU: the same, or within 2 %."""
    rig, dry_runs, result = SimulatedRig(recorded_machine), DryRuns(), None
    plan = plan_for(rig, SweepRequest())
    for event in run_sweep(plan, rig, (), dry_runs):
        if isinstance(event, SweepFinished):
            result = event.result
    assert result is not None
    assert result.recommended is not None
    path = tmp_path / "sweep.json"
    write_replay(recorded(plan, result.trials, dry_runs), path)
    again = search(ReplayRig(path), plan.request)
    assert again.recommended is not None
    first, second = (
        rig.true_request_s(r.recommended.settings, plan.request)
        for r in (result, again)
        if r.recommended is not None
    )
    assert second == pytest.approx(first, rel=0.02)
    assert again.recommended.request_s == pytest.approx(result.recommended.request_s, rel=0.03)


def test_recording_states_its_noise_and_load() -> None:
    """Noise and load time are what the trials showed."""
    rig, dry_runs, result = SimulatedRig(machine(noise_frac=0.03)), DryRuns(), None
    plan = plan_for(rig)
    for event in run_sweep(plan, rig, (), dry_runs):
        if isinstance(event, SweepFinished):
            result = event.result
    assert result is not None
    replay = recorded(plan, result.trials, dry_runs)
    assert replay.noise_frac == pytest.approx(0.03, rel=0.35)
    assert replay.load_s == pytest.approx(3.0)
    assert replay.devices == rig.space().devices


def test_what_was_only_planned_stays_unmeasured(tmp_path: Path) -> None:
    """Planned configurations keep their need, and running them is unsupported."""
    rig, dry_runs = SimulatedRig(machine(free_bytes=3 * GIB)), DryRuns()
    plan = plan_for(rig)
    for _ in run_sweep(plan, rig, (), dry_runs):
        pass
    replay = recorded(plan, (), dry_runs)
    write_replay(replay, tmp_path / "planned.json")
    assert {p.outcome for p in read_replay(tmp_path / "planned.json").points} == {"unsupported"}


def test_cpu_only_replay_keeps_the_knob_that_won(tmp_path: Path) -> None:
    """Without a card, flash attention off is measured at depth only: it wins again."""
    points = [
        point(0, speed, 0, depth=depth, prefill_tok_s=100.0, flash_attn=flash)
        for flash, speed in (("on", 10.0), ("off", 14.0))
        for depth in (0, 2048)
    ]
    points = [msgspec.structs.replace(p, device_bytes={}) for p in points]
    made = msgspec.structs.replace(replay(points, n_layer=16, free_bytes=GIB), devices=())
    rig, dry_runs, result = ReplayRig(made), DryRuns(), None
    plan = plan_for(rig)
    for event in run_sweep(plan, rig, (), dry_runs):
        if isinstance(event, SweepFinished):
            result = event.result
    assert result is not None
    assert result.recommended is not None
    assert result.recommended.settings.flash_attn == "off"
    write_replay(recorded(plan, result.trials, dry_runs), tmp_path / "cpu.json.gz")
    again = search(ReplayRig(tmp_path / "cpu.json.gz"))
    assert again.recommended is not None
    assert again.recommended.settings.flash_attn == "off"


def test_planned_points_do_not_hide_measured_ones() -> None:
    """Settings measured at any depth have no planned point beside them."""
    rig, dry_runs, result = SimulatedRig(machine(free_bytes=3 * GIB)), DryRuns(), None
    plan = plan_for(rig)
    for event in run_sweep(plan, rig, (), dry_runs):
        if isinstance(event, SweepFinished):
            result = event.result
    assert result is not None
    made = recorded(plan, result.trials, dry_runs)
    measured = [p.settings for p in made.points if p.decode_tok_s is not None]
    assert not [p for p in made.points if p.outcome == "unsupported" and p.settings in measured]


def test_contexts_only_planned_on_the_cpu_still_fit(tmp_path: Path) -> None:
    """Without a card a need has no bytes: the larger context that fitted fits again."""
    points = [
        msgspec.structs.replace(
            point(0, 10.0, 0, depth=depth, prefill_tok_s=100.0, n_ctx=n_ctx), device_bytes={}
        )
        for n_ctx, depth in product((4096, 8192, 16384, 32768), (0, 2048, 3840))
    ]
    made = msgspec.structs.replace(replay(points, n_layer=16, free_bytes=GIB), devices=())
    rig, dry_runs, first = ReplayRig(made), DryRuns(), None
    # what was planned was planned with these: no draw of the noise may choose others
    request = SweepRequest(pinned={"flash_attn": "on", "n_ubatch": 512, "n_threads": 8})
    plan = plan_for(rig, request)
    for event in run_sweep(plan, rig, (), dry_runs):
        if isinstance(event, SweepFinished):
            first = event.result
    assert first is not None
    write_replay(recorded(plan, first.trials, dry_runs), tmp_path / "cpu.json")
    again = search(ReplayRig(tmp_path / "cpu.json"), request)
    longest = [max(p.n_ctx for p in r.context_curve if p.fits) for r in (first, again)]
    assert longest[0] == 32768
    assert longest[1] == longest[0]


def test_switches_that_were_off_are_stated() -> None:
    """A recording made without KV offload says so: with it the machine may behave otherwise."""
    rig, dry_runs = SimulatedRig(machine()), DryRuns()
    request = SweepRequest(pinned={"offload_kqv": "off"})
    plan = plan_for(rig, request)
    trials = [e.trial for e in run_sweep(plan, rig, (), dry_runs) if isinstance(e, TrialFinished)]
    made = recorded(plan, trials, dry_runs)
    assert trials
    assert {p.settings["offload_kqv"] for p in made.points if p.decode_tok_s} == {"off"}
