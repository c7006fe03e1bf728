"""The plan is bounded, says what it will do, and refuses what cannot be."""

from typing import Any

import msgspec
import pytest

from app.domain.errors import UsageProblem
from app.domain.sweep import BUDGETS, BudgetName, Goal, SweepPlan, SweepRequest
from app.domain.units import GIB
from app.rig.replay import ReplayRig
from app.rig.simulated import SimulatedRig
from app.sweep.cost import streamed_tok_s
from app.sweep.plan import make_plan
from tests.fakes.rigs import GOLDEN, machine, plan_for, point, replay, search


def plan(request: SweepRequest | None = None, **changes: Any) -> SweepPlan:
    return plan_for(SimulatedRig(machine(**changes)), request)


def refused(request: SweepRequest, **changes: Any) -> str:
    with pytest.raises(UsageProblem) as caught:
        plan(request, **changes)
    return caught.value.info.code


@pytest.mark.parametrize(
    ("goal", "n_ctx", "depth", "n_prompt", "n_seq"),
    [
        (Goal.CHAT, 4096, 2048, 512, 1),
        (Goal.DOCUMENTS, 16384, 0, 2048, 1),
        (Goal.AGENT, 16384, 0, 2048, 4),
    ],
)
def test_goals(goal: Goal, n_ctx: int, depth: int, n_prompt: int, n_seq: int) -> None:
    """Each goal gets a context that holds its request, and a timed share of it."""
    made = plan(SweepRequest(goal=goal))
    work = made.workload
    assert (made.n_ctx, work.depth, work.n_prompt, work.n_seq) == (n_ctx, depth, n_prompt, n_seq)


def test_loads_of_the_stages_keep_the_budget() -> None:
    """The stages shown to the user never add up to more loads than the budget."""
    for name in BudgetName:
        made = plan(SweepRequest(budget=name))
        assert sum(s.max_loads for s in made.stages) == BUDGETS[name].max_loads
        assert made.time_low_s < made.time_high_s == BUDGETS[name].max_s


def test_bound_comes_from_the_dry_run() -> None:
    """The plan shows the exact bound and its estimate before anything is loaded."""
    made = plan_for(ReplayRig(GOLDEN / "partial_33.json.gz"))
    assert made.max_n_gpu_layers == 24
    assert made.first is not None
    assert made.first.device_bytes()["gpu0"] == 6_026_375_987


def test_context_asked_for_is_kept_and_rounded() -> None:
    """The user's context is kept, rounded up to what llama.cpp allocates."""
    assert plan(SweepRequest(n_ctx_min=5000)).n_ctx == 5120
    assert plan(SweepRequest(pinned={"n_ctx": 8192})).n_ctx == 8192


def test_context_too_small_is_a_usage_error() -> None:
    """A context that cannot hold depth, prompt and answer per slot is refused."""
    assert refused(SweepRequest(n_ctx_min=2815)) == "n_ctx_too_small"
    assert plan(SweepRequest(n_ctx_min=2816)).n_ctx == 2816
    assert refused(SweepRequest(goal=Goal.AGENT, n_ctx_min=9215)) == "n_ctx_too_small"


def test_a_pinned_context_below_the_least_is_a_usage_error() -> None:
    """Neither of the two is left out unsaid; at least as much as is needed is no contradiction."""
    both = SweepRequest(n_ctx_min=8192, pinned={"n_ctx": 4096})
    assert refused(both) == "n_ctx_pin_too_small"
    assert plan(SweepRequest(n_ctx_min=4096, pinned={"n_ctx": 8192})).n_ctx == 8192


def test_short_trained_models_are_timed_shallower() -> None:
    """A model trained for 1,024 tokens is timed at what its context leaves."""
    rig = SimulatedRig(machine())
    model = msgspec.structs.replace(rig.space().model, n_ctx_train=1024)
    space = msgspec.structs.replace(rig.space(), model=model)
    made = make_plan(SweepRequest(), space, rig.dry_run)
    assert (made.workload.depth, made.n_ctx) == (256, 1024)
    assert made.notes == ("depth_reduced_to_model",)
    with pytest.raises(UsageProblem, match="8704"):
        make_plan(SweepRequest(goal=Goal.DOCUMENTS), space, rig.dry_run)


def test_unrecorded_context_takes_the_next_recorded_one() -> None:
    """A replay that knows 16,384 tokens only is searched there when 8,192 are asked for."""
    rig = ReplayRig(replay([point(0, 10.0, 0, n_ctx=16384)], n_layer=8, free_bytes=GIB))
    assert plan_for(rig, SweepRequest(n_ctx_min=8192)).n_ctx == 16384


@pytest.mark.parametrize(
    ("pinned", "code"),
    [
        ({"ngl": 3}, "unknown_pin"),
        ({"devices": "gpu0"}, "unknown_pin"),
        ({"n_gpu_layers": 34}, "bad_pin"),
        ({"n_gpu_layers": -1}, "bad_pin"),
        ({"n_gpu_layers": "most"}, "bad_pin"),
        ({"flash_attn": "maybe"}, "bad_pin"),
        ({"override_tensor": "exps"}, "bad_overrides"),
        ({"override_tensor": "exps=CUDA7"}, "unknown_buffer"),
        ({"n_ubatch": 4096}, "ubatch_over_batch"),
        ({"type_v": "q8_0", "flash_attn": "off"}, "v_needs_flash_attn"),
        ({"split_mode": "rows"}, "bad_pin"),
        ({"split_mode": "tensor", "flash_attn": "off"}, "tensor_split_without_flash_attn"),
    ],
)
def test_bad_pins(pinned: dict[str, int | str], code: str) -> None:
    """A pin that the engine could not take is refused by name."""
    assert refused(SweepRequest(pinned=pinned)) == code


def test_all_layers_are_the_model_s_own() -> None:
    """Pinned to all, the layers of this model are meant, the output layer included."""
    made = plan(SweepRequest(pinned={"n_gpu_layers": "all", "n_threads": 4}))
    assert made.request.pinned == {"n_gpu_layers": 33, "n_threads": 4}


def test_unknown_device_and_type() -> None:
    """A device or cache type that does not exist is refused."""
    assert refused(SweepRequest(devices=("gpu7",))) == "unknown_device"
    assert refused(SweepRequest(kv_types=("q7_7",))) == "bad_kv_type"


def test_only_quantised_caches_need_flash_attention() -> None:
    """Without f16 among the allowed types, flash attention cannot be pinned off."""
    off: dict[str, int | str] = {"flash_attn": "off"}
    only = SweepRequest(kv_types=("q8_0",), pinned=off)
    assert refused(only) == "v_needs_flash_attn"
    plan(SweepRequest(kv_types=("f16", "q8_0"), pinned=off))


def test_model_larger_than_the_machine() -> None:
    """A model larger than RAM and VRAM together is refused before anything loads."""
    assert refused(SweepRequest(), layer_bytes=4 * GIB) == "model_too_large"


def test_of_experts_only_those_a_token_uses_are_streamed() -> None:
    """4 of 64: a sixteenth of what is missing is read per token, as far as it is theirs."""
    space = SimulatedRig(machine(layer_bytes=4 * GIB)).space()
    dense, n_bytes = space.model, space.model.file_bytes
    moe = msgspec.structs.replace(
        dense, n_expert=64, n_expert_used=4, expert_bytes=n_bytes * 9 // 10
    )
    over = n_bytes // 2
    slow = streamed_tok_s(space, over)
    fast = streamed_tok_s(msgspec.structs.replace(space, model=moe), over)
    assert fast == pytest.approx(16 * slow)
    # all experts and half of the rest are missing
    most = streamed_tok_s(msgspec.structs.replace(space, model=moe), n_bytes * 95 // 100)
    assert most == pytest.approx(slow * 0.5 / (0.9 / 16 + 0.05))


def test_a_model_larger_than_the_machine_if_insisted() -> None:
    """Pinned to mapped weights it is searched to the end, and said to be read from the file."""
    rig = SimulatedRig(machine(layer_bytes=4 * GIB))
    request = SweepRequest(pinned={"load_mode": "mmap"})
    assert "streams_from_file" in plan_for(rig, request).notes
    result = search(rig, request)
    assert result.recommended is not None
    assert {t.request.settings.load_mode for t in result.trials} == {"mmap"}
    assert result.recommended.settings.n_gpu_layers < 33
    assert result.n_model_loads <= BUDGETS[request.budget].max_loads


def test_context_beyond_the_trained_one() -> None:
    """A context the model was not trained for is refused with both numbers, per slot."""
    for request in (SweepRequest(n_ctx_min=40000), SweepRequest(pinned={"n_ctx": 40000})):
        with pytest.raises(UsageProblem, match=r"40000.*32768"):
            plan(request)
    assert plan(SweepRequest(goal=Goal.AGENT, n_ctx_min=40000)).n_ctx == 40192
    assert refused(SweepRequest(goal=Goal.AGENT, n_ctx_min=4 * 32768 + 4)) == "n_ctx_over_trained"


def test_impossible_numbers_are_refused() -> None:
    """Negative, endless and absurd numbers never reach the search."""
    for request in (
        SweepRequest(headroom_bytes=-1),
        SweepRequest(headroom_bytes=1 << 60),
        SweepRequest(floor_tok_s=-1.0),
        SweepRequest(floor_tok_s=float("nan")),
        SweepRequest(floor_tok_s=float("inf")),
        SweepRequest(n_ctx_min=-5),
    ):
        assert refused(request) == "bad_number"


def test_shortest_time_is_never_above_the_longest() -> None:
    """A slow disk raises the shortest time to the budget at most."""
    made = plan(SweepRequest(budget=BudgetName.QUICK), load_s=500.0)
    assert made.time_low_s <= made.time_high_s


@pytest.mark.parametrize("layers", [1, "all"])
def test_pinned_layers_need_a_device(layers: int | str) -> None:
    """On a machine without one: said before the CPU is measured for nothing; none are welcome."""
    space = msgspec.structs.replace(SimulatedRig(machine()).space(), devices=())
    with pytest.raises(UsageProblem) as caught:
        make_plan(
            SweepRequest(pinned={"n_gpu_layers": layers}), space, SimulatedRig(machine()).dry_run
        )
    assert caught.value.info.code == "no_device"
    on_cpu = SweepRequest(pinned={"n_gpu_layers": 0})
    assert make_plan(on_cpu, space, SimulatedRig(machine()).dry_run).request == on_cpu
