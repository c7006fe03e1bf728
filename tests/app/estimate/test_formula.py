"""The whole formula: monotone in every knob, silent about what it does not know."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.domain.model import ModelSpec
from app.domain.settings import KV_TYPES, FlashAttn, Settings, SplitMode, Switch
from app.estimate.formula import Formula
from app.estimate.profile import FormulaDevice
from tests.fakes.shapes import a_spec, dense_tensors, moe_tensors

GPU = FormulaDevice(name="RPC0", split=1.0, has_op_offload=False, has_host_buffer=False)
PAIR = (GPU, FormulaDevice(name="RPC1", split=2.0, has_op_offload=False, has_host_buffer=False))
N_LAYER = 6

DENSE = a_spec(
    n_layer=N_LAYER, n_swa=256, swa_layers=(True, False) * 3,
    tensors=dense_tensors(n_layer=N_LAYER, n_embd=256, n_vocab=1024, n_ff=512, n_q=256, n_kv=128),
)  # fmt: skip
MOE = a_spec(
    n_layer=N_LAYER, n_expert=8, n_expert_used=2,
    tensors=moe_tensors(
        n_layer=N_LAYER, n_embd=256, n_vocab=1024, n_ff_exp=128, n_expert=8, n_q=256, n_kv=128
    ),
)  # fmt: skip

specs = st.sampled_from([DENSE, MOE])
settings = st.builds(
    Settings,
    n_gpu_layers=st.integers(0, N_LAYER + 1),
    n_cpu_moe=st.integers(0, N_LAYER),
    n_ctx=st.integers(256, 65536),
    n_ubatch=st.integers(32, 2048),
    flash_attn=st.sampled_from([FlashAttn.ON, FlashAttn.OFF]),
    type_k=st.sampled_from(sorted(KV_TYPES)),
    type_v=st.sampled_from(sorted(KV_TYPES)),
    n_seq_max=st.integers(1, 4),
    tensor_split=st.sampled_from(["", "1", "0,1", "3,1", "1,9"]),
    override_tensor=st.sampled_from(["", "attn=CPU", r"blk\.[01]\.=CPU", "exps=CPU", ".=CPU"]),
    split_mode=st.sampled_from(list(SplitMode)),
    offload_kqv=st.sampled_from(list(Switch)),
    op_offload=st.sampled_from(list(Switch)),
)


def on_gpus(spec: ModelSpec, asked: Settings) -> int:
    return sum(d.total_bytes for d in Formula(spec, (GPU,)).estimate(asked)[:-1])


def everywhere(spec: ModelSpec, asked: Settings) -> int:
    return sum(d.total_bytes for d in Formula(spec, (GPU,)).estimate(asked))


@given(spec=specs, asked=settings, more=st.integers(1, N_LAYER))
def test_more_layers_never_need_less_of_the_device(
    spec: ModelSpec, asked: Settings, more: int
) -> None:
    """Each further GPU layer costs device memory or nothing.

    One exception is the engine's own: with experts, the step to *all* layers releases the
    buffers that copies between RAM and device needed.
    """
    most = N_LAYER if spec.n_expert else N_LAYER + 1
    fewer = msgspec.structs.replace(asked, n_gpu_layers=min(asked.n_gpu_layers, most))
    wider = msgspec.structs.replace(asked, n_gpu_layers=min(asked.n_gpu_layers + more, most))
    assert on_gpus(spec, wider) >= on_gpus(spec, fewer)


@given(spec=specs, asked=settings, more=st.integers(1, 65536))
def test_more_context_never_needs_less(spec: ModelSpec, asked: Settings, more: int) -> None:
    """A longer context costs memory or nothing, on each device and in RAM."""
    longer = msgspec.structs.replace(asked, n_ctx=asked.n_ctx + more)
    formula = Formula(spec, PAIR)
    for before, after in zip(formula.estimate(asked), formula.estimate(longer), strict=True):
        assert after.total_bytes >= before.total_bytes


@given(spec=specs, asked=settings, kv_type=st.sampled_from(sorted(KV_TYPES)))
def test_a_wider_type_never_needs_less(spec: ModelSpec, asked: Settings, kv_type: str) -> None:
    """A type with more bytes per element costs memory or nothing."""
    other = msgspec.structs.replace(asked, type_k=kv_type, type_v=kv_type)
    f32 = msgspec.structs.replace(asked, type_k="f32", type_v="f32")
    assert everywhere(spec, f32) >= everywhere(spec, other)


@given(asked=settings, more=st.integers(1, N_LAYER))
def test_experts_in_ram_never_need_more_of_the_device(asked: Settings, more: int) -> None:
    """Keeping the experts of further layers in RAM frees device memory or nothing."""
    kept = msgspec.structs.replace(asked, n_cpu_moe=asked.n_cpu_moe + more)
    assert on_gpus(MOE, kept) <= on_gpus(MOE, asked)


@given(spec=specs, asked=settings)
def test_total_is_the_sum_of_its_parts(spec: ModelSpec, asked: Settings) -> None:
    """No byte of a device is outside a part, and none is negative."""
    for device in Formula(spec, PAIR).estimate(asked):
        parts = (
            device.weights_bytes,
            device.kv_cache_bytes,
            device.recurrent_state_bytes,
            device.compute_bytes,
            device.output_bytes,
        )
        known = [p for p in parts if p is not None]
        assert min(known) >= 0
        assert device.total_bytes == sum(known)


def test_unknown_architecture_gives_weights_only() -> None:
    """Where cache and compute are not covered they are ``None``, never a guess."""
    spec = msgspec.structs.replace(DENSE, formula_known=False)
    on_gpu, in_ram = Formula(spec, (GPU,)).estimate(Settings(n_gpu_layers=99))
    assert (on_gpu.weights_bytes or 0) + (in_ram.weights_bytes or 0) == spec.weights_bytes
    assert on_gpu.kv_cache_bytes is None
    assert on_gpu.compute_bytes is None


def test_named_devices_are_used_in_the_order_asked() -> None:
    """``Settings.devices`` picks and orders; others get nothing."""
    formula = Formula(DENSE, PAIR)
    used = formula.estimate(Settings(n_gpu_layers=99, devices=("RPC1",)))
    assert [d.device for d in used] == ["RPC1", "host"]


def test_no_layers_and_no_names_mean_no_device() -> None:
    """As the engine: CPU only opens nothing; a device named is opened even for zero layers."""
    formula = Formula(DENSE, PAIR)
    assert [d.device for d in formula.estimate(Settings(n_gpu_layers=0))] == ["host"]
    named = formula.estimate(Settings(n_gpu_layers=0, devices=("RPC0",)))
    assert [d.device for d in named] == ["RPC0", "host"]


def test_a_split_is_shares_of_the_layers_and_the_output_layer() -> None:
    """``3,1`` gives the first device three quarters of the seven places, whatever is free."""
    formula = Formula(DENSE, PAIR)
    asked = Settings(n_gpu_layers=99, tensor_split="3,1")
    assert formula.places(asked) == (0, 0, 0, 0, 0, 0, 1)
    both = msgspec.structs.replace(asked, tensor_split="1,1")
    assert formula.places(both) == (0, 0, 0, 0, 1, 1, 1)


def test_a_split_may_leave_devices_out() -> None:
    """A share that is 0 or missing gets no layer; zeros alone mean free memory."""
    formula = Formula(DENSE, PAIR)
    split = {s: formula.places(Settings(n_gpu_layers=99, tensor_split=s)) for s in SPLITS}
    assert set(split["1"]) == {0}
    assert set(split["0,1"]) == {1}
    assert split["0,0"] == split[""] == (0, 0, 0, 1, 1, 1, 1)


SPLITS = ("", "1", "0,1", "0,0")


@given(spec=specs, asked=settings)
def test_a_cache_in_ram_is_the_same_cache_elsewhere(spec: ModelSpec, asked: Settings) -> None:
    """Without ``offload_kqv`` no device holds a cache, and RAM holds all of it."""
    formula = Formula(spec, PAIR)
    on = msgspec.structs.replace(asked, offload_kqv=Switch.ON)
    off = msgspec.structs.replace(asked, offload_kqv=Switch.OFF)
    *devices, host = formula.estimate(off)
    assert {d.kv_cache_bytes for d in devices} <= {0}
    assert host.kv_cache_bytes == sum(d.kv_cache_bytes or 0 for d in formula.estimate(on))


@given(spec=specs, asked=settings)
def test_computing_in_ram_never_needs_more_of_the_device(spec: ModelSpec, asked: Settings) -> None:
    """Without ``op_offload`` a card keeps no copies of weights that lie in RAM."""
    card = (FormulaDevice(name="CUDA0", split=1.0),)
    totals = []
    for switch in (Switch.ON, Switch.OFF):
        changed = msgspec.structs.replace(asked, op_offload=switch, tensor_split="")
        totals.append(sum(d.total_bytes for d in Formula(spec, card).estimate(changed)[:-1]))
    assert totals[1] <= totals[0]
