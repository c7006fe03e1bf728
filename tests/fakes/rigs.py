"""Recorded and simulated rigs for the tests of the search."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.domain.events import SweepFinished, TrialFinished
from app.domain.outcome import Outcome
from app.domain.sweep import (
    SearchDevice,
    SearchHost,
    SearchModel,
    SweepPlan,
    SweepRequest,
    SweepResult,
)
from app.domain.trial import Trial, TrialRequest
from app.domain.units import GIB, MIB
from app.rig.interface import Rig
from app.rig.replay_file import FORMAT, Replay, ReplayPoint
from app.rig.simulated_machine import SimulatedMachine
from app.sweep.plan import make_plan
from app.sweep.run import run_sweep

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "replays"


def point(
    n_gpu_layers: int,
    decode_tok_s: float | None,
    n_bytes: int,
    *,
    prefill_tok_s: float | None = None,
    depth: int = 0,
    growth_bytes: int = 0,
    **settings: int | str,
) -> ReplayPoint:
    """Return a point; without a speed it ran out of memory."""
    speed = decode_tok_s is not None
    return ReplayPoint(
        settings={"n_gpu_layers": n_gpu_layers, **settings},
        depth=depth,
        outcome=Outcome.OK if speed else Outcome.OUT_OF_MEMORY,
        prefill_tok_s=(prefill_tok_s or 1000.0) if speed else None,
        decode_tok_s=decode_tok_s,
        device_bytes={"gpu0": n_bytes},
        shared_growth_bytes=growth_bytes,
    )


def replay(
    points: Iterable[ReplayPoint],
    *,
    n_layer: int,
    free_bytes: int,
    n_expert: int = 0,
    noise_frac: float = 0.01,
    cores: int = 8,
    kind: str = "discrete",
) -> Replay:
    """Return a recording with one device."""
    return Replay(
        format=FORMAT,
        model=SearchModel(
            name="recorded", n_layer=n_layer, n_expert=n_expert, n_ctx_train=32768,
            file_bytes=8 * GIB,
        ),
        host=SearchHost(cores_physical=cores, cores_logical=2 * cores, ram_bytes=64 * GIB),
        devices=(
            SearchDevice(
                id="gpu0", kind=kind, backend="CUDA", total_bytes=free_bytes + 256 * MIB,
                free_bytes=free_bytes,
            ),
        ),
        noise_frac=noise_frac,
        seed=7,
        load_s=3.0,
        points=tuple(points),
    )  # fmt: skip


def machine(**changes: object) -> SimulatedMachine:
    """Return an 8 GiB card with a 32-block model; ``changes`` replace parameters."""
    base = SimulatedMachine(n_layer=32, layer_bytes=120 * MIB, output_bytes=110 * MIB, seed=7)
    return msgspec.structs.replace(base, **changes)


def plan_for(rig: Rig, request: SweepRequest | None = None) -> SweepPlan:
    """Return the plan of ``request`` on ``rig``."""
    return make_plan(request or SweepRequest(), rig.space(), rig.dry_run)


def search(rig: Rig, request: SweepRequest | None = None) -> SweepResult:
    """Run a whole search and return its result."""
    for event in run_sweep(plan_for(rig, request), rig):
        if isinstance(event, SweepFinished):
            return event.result
    raise AssertionError("the search did not finish")


def run_one(rig: Rig, request: TrialRequest) -> Trial:
    """Run one trial and return it."""
    for event in rig.run_trial(request):
        if isinstance(event, TrialFinished):
            return event.trial
    raise AssertionError("the trial did not finish")
