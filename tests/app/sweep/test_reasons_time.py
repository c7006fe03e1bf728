"""Where the time goes, which bound binds, and a cache type that the device does not compute."""

import pytest

from app.advice.text import render_reason
from app.domain.sweep import Reason, SweepRequest
from app.domain.units import GIB, MIB
from app.rig.simulated import SimulatedRig
from tests.fakes.rigs import machine, search


def said(request: SweepRequest | None = None, **changes: object) -> dict[str, Reason]:
    result = search(SimulatedRig(machine(**changes)), request)
    return {r.code: r for r in result.reasons}


def number(reason: Reason, name: str) -> float:
    return float(reason.data[name] or 0)


@pytest.mark.parametrize("free_gib", [3, 7])
def test_a_token_s_time_adds_up(free_gib: int) -> None:
    """GPU, RAM and context add up to the token, and layers in RAM cost only where there are any."""
    told = said(free_bytes=free_gib * GIB)["token_time"]
    parts = [number(told, n) for n in ("gpu_ms", "ram_ms", "context_ms")]
    assert sum(parts) == pytest.approx(number(told, "total_ms"), abs=0.05)
    assert (parts[1] > 0) == (free_gib == 3)
    assert parts[0] > 0


def test_without_a_gpu_no_time_is_the_gpu_s() -> None:
    """All in RAM: weights and context add up to the token, and no GPU is spoken of."""
    reasons = said(SweepRequest(pinned={"n_gpu_layers": 0}))
    assert "token_time" not in reasons
    told = reasons["token_time_ram"]
    parts = [number(told, n) for n in ("ram_ms", "context_ms")]
    assert sum(parts) == pytest.approx(number(told, "total_ms"), abs=0.05)
    assert "GPU" not in render_reason(told)


@pytest.mark.parametrize("layers", [0, 33])
def test_a_token_s_time_adds_up_where_depth_seems_to_cost_nothing(layers: int) -> None:
    """Where the deep readings happen to be the faster ones, no part exceeds the token."""
    request = SweepRequest(pinned={"n_gpu_layers": layers})
    reasons = said(request, cpu_depth_frac=-0.02, gpu_depth_frac=-0.02)
    told = reasons["token_time" if layers else "token_time_ram"]
    parts = [number(told, n) for n in ("gpu_ms", "ram_ms") if n in told.data]
    assert number(told, "context_ms") == 0
    assert sum(parts) == pytest.approx(number(told, "total_ms"), abs=0.05)


def test_pinned_layers_hide_no_time_in_ram() -> None:
    """With one placement measured, the CPU alone tells what the layers in RAM cost."""
    told = said(SweepRequest(pinned={"n_gpu_layers": 20}))["token_time"]
    # 12 of 32 blocks and the output layer, each 6.4 times as slow as on the device
    assert number(told, "ram_ms") > number(told, "gpu_ms")


def test_time_in_ram_is_that_of_the_machine() -> None:
    """The share of layers in RAM is what the machine really spends there, within a fifth."""
    rig = SimulatedRig(machine(free_bytes=3 * GIB))
    result = search(rig)
    assert result.recommended is not None
    settings = rig.concrete(result.recommended.settings)
    (told,) = (r for r in result.reasons if r.code == "token_time")
    in_ram = rig.machine.n_layer - settings.n_gpu_layers
    true_ms = in_ram * (rig.machine.cpu_layer_ms - rig.machine.gpu_layer_ms)
    assert number(told, "ram_ms") == pytest.approx(true_ms, rel=0.2)


def test_a_cache_type_that_falls_to_the_cpu_is_named() -> None:
    """q8_0 that halves the speed is named with its figure and its trial; a mild loss is not."""
    request = SweepRequest(kv_types=("f16", "q8_0"))
    told = said(request, q8_time=2.0)["kv_falls_to_cpu"]
    assert told.data["type_k"] == "q8_0"
    assert number(told, "slower_pct") > 50
    assert number(told, "trial") >= 1
    assert "kv_falls_to_cpu" not in said(request, q8_time=1.1)


def test_which_bound_keeps_everything_off_the_gpu() -> None:
    """Headroom that leaves no room for a layer is named with what is missing."""
    told = said(SweepRequest(headroom_bytes=6900 * MIB))["gpu_too_small"]
    assert number(told, "headroom_mib") == 6900
    assert number(told, "missing_mib") > 0
    assert "gpu_too_small" not in said()


def test_a_floor_out_of_reach_says_what_holds() -> None:
    """Speed that a full context does not keep: up to which depth it holds, and how fast."""
    deep = {"cpu_depth_frac": 0.4, "gpu_depth_frac": 0.3, "noise_frac": 0.002}
    told = said(SweepRequest(floor_tok_s=40.0), **deep)
    assert "floor_not_met" in told
    assert number(told["floor_nearest"], "tok_s") >= 40
