"""Placements in order, and exact bounds from few dry runs."""

import msgspec
import pytest

from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.settings import Settings
from app.domain.sweep import SweepRequest
from app.domain.units import GIB, MIB
from app.rig.simulated import SimulatedRig
from app.sweep.ladder import Bounds, Rung, expert_ladder, layer_ladder
from tests.fakes.rigs import machine

BASE = Settings(n_gpu_layers=0, devices=("gpu0",))


def estimate(n_bytes: int, *, headroom: int = 256 * MIB, uncounted: int = 0) -> MemoryEstimate:
    device = DeviceMemory(
        device="gpu0",
        total_bytes=n_bytes,
        free_bytes=8 * GIB,
        headroom_bytes=headroom,
        driver_context_bytes=uncounted,
        verdict=Verdict.FITS,
    )
    return MemoryEstimate(devices=(device,), source=MemorySource.DRY_RUN, verdict=Verdict.FITS)


def test_dense_ladder_counts_the_output_layer() -> None:
    """A model of 32 blocks has 34 rungs, from none to everything."""
    ladder = layer_ladder(SweepRequest(), machine().space())
    assert [r.n_gpu_layers for r in ladder] == list(range(34))
    assert expert_ladder(SweepRequest(), machine().space()) == ()


def test_expert_ladder_rises_in_memory() -> None:
    """More and more layers without experts, then all of them with more and more experts."""
    rig = SimulatedRig(machine(expert_frac=0.9))
    ladder = expert_ladder(SweepRequest(), rig.space())
    needs = [rig.machine.need_bytes(rig.concrete(r.of(BASE))) for r in ladder]
    assert needs == sorted(needs)
    assert ladder[-1] == Rung(n_gpu_layers=33, n_cpu_moe=0)
    assert ladder[31] == Rung(n_gpu_layers=32, n_cpu_moe=32)


def test_pins_leave_one_rung() -> None:
    """A pinned layer count is the only rung; pinned expert layers leave plain layers."""
    space = machine(expert_frac=0.9).space()
    pinned = SweepRequest(pinned={"n_gpu_layers": 12})
    assert layer_ladder(pinned, space) == (Rung(n_gpu_layers=12),)
    moe = SweepRequest(pinned={"n_cpu_moe": 5})
    assert expert_ladder(moe, space) == ()
    assert layer_ladder(moe, space)[3] == Rung(n_gpu_layers=3, n_cpu_moe=5)


def test_rules_of_the_user_s_for_experts_leave_plain_layers() -> None:
    """They decide before ``n_cpu_moe``: rungs that differ by it alone would be one and the same."""
    space = machine(expert_frac=0.9).space()
    assert expert_ladder(SweepRequest(pinned={"override_tensor": "up_exps=CPU"}), space) == ()
    other = SweepRequest(pinned={"override_tensor": "attn_k=CPU"})
    assert expert_ladder(other, space) == expert_ladder(SweepRequest(), space)


def test_a_reserve_is_not_room() -> None:
    """What is kept for a game is not used, beside the headroom."""
    need = estimate(7 * GIB)
    device = msgspec.structs.replace(need.devices[0], reserve_bytes=GIB)
    kept = msgspec.structs.replace(need, devices=(device,))
    assert Bounds(lambda _: need, None).ok(BASE)
    assert not Bounds(lambda _: kept, None).ok(BASE)
    assert Bounds(lambda _: kept, 0).ok(BASE)


@pytest.mark.parametrize("free_gib", [1, 2, 3, 4, 8])
def test_largest_is_exact_with_few_dry_runs(free_gib: int) -> None:
    """The bisection finds what a full scan finds and asks at most a dozen times."""
    rig = SimulatedRig(machine(free_bytes=free_gib * GIB))
    asked = []

    def fits(settings: Settings) -> MemoryEstimate:
        asked.append(settings)
        return rig.dry_run(settings)

    bounds, ladder = Bounds(fits, None), layer_ladder(SweepRequest(), rig.space())
    found = bounds.largest(ladder, BASE)
    assert len(set(asked)) <= 12
    scanned = [i for i, r in enumerate(ladder) if bounds.ok(r.of(BASE))]
    assert found == (scanned[-1] if scanned else None)


def test_gaps_in_a_recording_are_scanned() -> None:
    """Where rungs are not recorded the largest recorded one that fits is found all the same."""
    known = {0, 7, 8, 30}

    def fits(settings: Settings) -> MemoryEstimate:
        n = settings.n_gpu_layers
        if n not in known:
            return MemoryEstimate(
                devices=(), source=MemorySource.REPLAY, verdict=Verdict.DOES_NOT_FIT, note="gap"
            )
        return estimate(n * GIB // 2)

    ladder = layer_ladder(SweepRequest(), machine().space())
    assert Bounds(fits, None).largest(ladder, BASE) == 8


def test_headroom_and_ceiling() -> None:
    """The user's headroom replaces the device's; a proven ceiling beats what is reported."""
    need = 8 * GIB - 300 * MIB
    assert Bounds(lambda _: estimate(need), None).ok(BASE)
    assert not Bounds(lambda _: estimate(need), 400 * MIB).ok(BASE)
    assert not Bounds(lambda _: estimate(need, headroom=512 * MIB), None).ok(BASE)
    bounds = Bounds(lambda _: estimate(need), None)
    bounds.ceiling = {"gpu0": need - 1}
    assert not bounds.ok(BASE)


def test_auto_fit_counts_as_llama_cpp_does() -> None:
    """llama.cpp leaves 1,024 MiB of what it counts, without driver context and growth."""
    ladder = (Rung(n_gpu_layers=0), Rung(n_gpu_layers=1))

    def fits(settings: Settings) -> MemoryEstimate:
        return estimate(7 * GIB + 500 * MIB * settings.n_gpu_layers, uncounted=500 * MIB)

    assert Bounds(fits, None).auto_fit(ladder, BASE) == 1
    assert Bounds(lambda s: estimate(7 * GIB + s.n_gpu_layers), None).auto_fit(ladder, BASE) == 0
