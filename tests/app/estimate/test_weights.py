"""Placement of tensors: llama.cpp's rule, and sizes that real runs have logged."""

import re

import msgspec
import pytest

from app.domain.model import ModelSpec
from app.domain.settings import Settings, SplitMode
from app.domain.units import MIB
from app.estimate.formula import Formula
from app.estimate.profile import FormulaDevice
from app.estimate.weights import HOST, layer_devices
from tests.fakes.shapes import a_spec, dense_tensors, moe_tensors, tensor

GPU = FormulaDevice(name="CUDA0", split=1.0)
REMOTE = FormulaDevice(
    name="RPC0", split=1.0, has_host_buffer=False, has_op_offload=False, alignment=32
)


def weights(
    spec: ModelSpec, n_gpu_layers: int, *devices: FormulaDevice, n_cpu_moe: int = 0
) -> list[int]:
    names = tuple(d.name for d in devices)
    settings = Settings(n_gpu_layers=n_gpu_layers, n_cpu_moe=n_cpu_moe, devices=names)
    return [p.weights_bytes or 0 for p in Formula(spec, devices).estimate(settings)]


def dense(*, tied: bool = False, kind: str = "q8_0") -> ModelSpec:
    table = dense_tensors(
        n_layer=4, n_embd=256, n_vocab=1024, n_ff=512, n_q=256, n_kv=128, tied=tied, kind=kind
    )
    return a_spec(tensors=table)


def moe() -> ModelSpec:
    table = moe_tensors(
        n_layer=4, n_embd=256, n_vocab=1024, n_ff_exp=256, n_expert=8, n_q=256, n_kv=128
    )
    return a_spec(tensors=table, n_expert=8, n_expert_used=2)


def test_30b_moe_splits_as_logged() -> None:
    """Q8_0 of 48 layers: the token table in RAM, the rest on the card, within 0.1 %."""
    table = moe_tensors(
        n_layer=48, n_embd=2048, n_vocab=151936, n_ff_exp=768, n_expert=128, n_q=4096, n_kv=512
    )
    spec = a_spec(n_layer=48, n_embd=2048, tensors=table, n_expert=128, n_expert_used=8)
    on_gpu, in_ram = weights(spec, 49, GPU)
    assert in_ram / MIB == pytest.approx(315.30, rel=1e-3)
    assert on_gpu / MIB == pytest.approx(30658.12, rel=1e-3)


def test_tied_embedding_is_counted_twice() -> None:
    """262208 × 5376 words in Q6_K stay in RAM (1102.77 MiB logged) and are copied as output."""
    table = dense_tensors(
        n_layer=1, n_embd=5376, n_vocab=262208, n_ff=256, n_q=256, n_kv=256,
        kind="q6_K", tied=True,
    )  # fmt: skip
    spec = a_spec(n_layer=1, n_embd=5376, n_vocab=262208, tensors=table)
    on_gpu, in_ram = weights(spec, 2, GPU)
    assert in_ram / MIB == pytest.approx(1102.77, abs=0.01)
    assert on_gpu == spec.weights_bytes


def test_last_blocks_and_the_output_layer_go_first() -> None:
    """``n_gpu_layers`` counts the output layer, then blocks from the last one down."""
    assert layer_devices(4, 0, (GPU,)) == (HOST,) * 5
    assert layer_devices(4, 1, (GPU,)) == (HOST, HOST, HOST, HOST, 0)
    assert layer_devices(4, 3, (GPU,)) == (HOST, HOST, 0, 0, 0)
    assert layer_devices(4, 99, (GPU,)) == (0,) * 5
    assert layer_devices(4, 99, ()) == (HOST,) * 5


def test_several_devices_share_in_proportion() -> None:
    """A device with three times the memory gets three times the layers."""
    small = FormulaDevice(name="CUDA0", split=1.0)
    large = FormulaDevice(name="CUDA1", split=3.0)
    assert layer_devices(7, 8, (small, large)) == (0, 0, 1, 1, 1, 1, 1, 1)


def test_devices_without_known_memory_share_equally() -> None:
    """Free memory of 0 on all of them is no reason to divide by it."""
    blind = (FormulaDevice(name="A", split=0.0), FormulaDevice(name="B", split=0.0))
    assert layer_devices(3, 4, blind) == (0, 0, 1, 1)


def test_nothing_is_lost_between_devices() -> None:
    """Whatever the split, the parts add up to the file."""
    spec = dense()
    for n_gpu_layers in range(6):
        assert sum(weights(spec, n_gpu_layers, GPU, REMOTE)) == spec.weights_bytes


def test_experts_of_the_first_layers_stay_in_ram() -> None:
    """``n_cpu_moe`` moves exactly the expert tensors of that many layers."""
    spec = moe()
    experts = sum(t.n_bytes for t in spec.tensors if "_exps" in t.name and t.name < "blk.2")
    everything, half = weights(spec, 5, GPU), weights(spec, 5, GPU, n_cpu_moe=2)
    assert half[0] == everything[0] - experts
    assert half[1] == everything[1] + experts


def test_cpu_copies_a_tied_output_it_rearranges() -> None:
    """Without pinned memory the CPU keeps a Q4_K output layer in a layout of its own."""
    spec = dense(tied=True, kind="q4_K")
    table_bytes = spec.tensors[0].n_bytes
    assert weights(spec, 0) == [spec.weights_bytes + table_bytes]
    assert sum(weights(spec, 0, GPU)) == spec.weights_bytes
    assert weights(dense(tied=True), 0) == [dense(tied=True).weights_bytes]


def test_mapped_weights_are_copied_when_rearranged() -> None:
    """With mmap the copies come on top of the mapped file; only for layers the CPU computes."""
    spec = dense(kind="q4_K")
    blocks = [t for t in spec.tensors if t.name.startswith("blk.") and t.type == "q4_K"]
    formula = Formula(spec, (REMOTE,))
    assert formula.repacked_bytes(Settings(n_gpu_layers=0)) == sum(t.n_bytes for t in blocks)
    assert formula.repacked_bytes(Settings(n_gpu_layers=5)) == 0
    named = Settings(n_gpu_layers=0, devices=("CUDA0",))
    assert Formula(spec, (GPU,)).repacked_bytes(named) == 0


def test_draft_layers_are_not_loaded() -> None:
    """A block with ``nextn`` tensors takes part in the count of layers but holds nothing."""
    draft = (
        tensor("blk.4.attn_q.weight", (256, 256), "q8_0"),
        tensor("blk.4.nextn.eh_proj.weight", (512, 256), "q8_0"),
    )
    plain = dense()
    spec = a_spec(n_layer=5, tensors=plain.tensors + draft)
    assert sum(weights(spec, 99, GPU)) == plain.weights_bytes


def test_quantised_rows_are_padded_where_the_device_does() -> None:
    """CUDA pads the end of a quantised matrix to 512 elements per row."""
    padded = FormulaDevice(name="CUDA0", split=1.0, row_pad=512)
    table = (tensor("blk.0.attn_q.weight", (2880, 4), "q8_0"),)
    spec = a_spec(n_layer=1, tensors=table)
    missing = (3072 - 2880) // 32 * 34
    plain = -(-table[0].n_bytes // 128) * 128
    expected = -(-(table[0].n_bytes + missing) // 128) * 128
    assert weights(spec, 2, GPU)[0] == plain
    assert weights(spec, 2, padded)[0] == expected


def test_rotary_factors_are_on_every_device_with_blocks() -> None:
    """One small tensor without a block number is copied to each of them."""
    factors = tensor("rope_freqs.weight", (32,), "f32")
    plain = dense()
    spec = a_spec(tensors=(*plain.tensors, factors))
    assert sum(weights(spec, 5, GPU, REMOTE)) == plain.weights_bytes + 2 * factors.n_bytes


def test_row_split_divides_matrices_and_nothing_else() -> None:
    """Cache, compute and vectors stay on the first card; a 32B on two cards has half each."""
    table = dense_tensors(
        n_layer=64, n_embd=5120, n_vocab=151936, n_ff=25600, n_q=8192, n_kv=1024, kind="q6_K"
    )
    spec = a_spec(n_layer=64, n_embd=5120, n_vocab=151936, n_head=64, n_head_kv=8, k_dim=128,
                  tensors=table)  # fmt: skip
    cards = tuple(FormulaDevice(name=f"CUDA{i}", split=1.0) for i in range(2))
    settings = Settings(
        n_gpu_layers=65, n_ctx=8192, devices=("CUDA0", "CUDA1"), split_mode=SplitMode.ROW
    )
    first, second, host = Formula(spec, cards).estimate(settings)
    assert (first.kv_cache_bytes, second.kv_cache_bytes) == (2048 * MIB, 0)
    assert (second.compute_bytes, second.output_bytes) == (0, 0)
    whole = spec.weights_bytes - (host.weights_bytes or 0)
    assert (first.weights_bytes or 0) + (second.weights_bytes or 0) == whole
    vectors = sum(t.n_bytes for t in table if len(t.shape) == 1)
    assert (first.weights_bytes or 0) - (second.weights_bytes or 0) == pytest.approx(vectors, abs=1)
    (alone, _) = Formula(spec, cards[:1]).estimate(Settings(n_gpu_layers=65, n_ctx=8192))
    assert first.compute_bytes == alone.compute_bytes


def test_row_split_leaves_experts_whole() -> None:
    """Expert tensors are no plain matrices."""
    cards = tuple(FormulaDevice(name=f"CUDA{i}", split=1.0) for i in range(2))
    parts = Formula(moe(), cards).estimate(
        Settings(n_gpu_layers=5, devices=("CUDA0", "CUDA1"), split_mode=SplitMode.ROW)
    )
    experts = sum(t.n_bytes for t in moe().tensors if "_exps" in t.name)
    assert (parts[0].weights_bytes or 0) - (parts[1].weights_bytes or 0) >= experts


def test_tensor_split_divides_weights_and_cache_and_repeats_the_rest() -> None:
    """Even shares whatever memory is free; vectors and compute buffers lie on every device."""
    table = dense_tensors(n_layer=8, n_embd=512, n_vocab=8192, n_ff=2048, n_q=512, n_kv=256)
    spec = a_spec(n_layer=8, n_embd=512, n_vocab=8192, n_head=8, n_head_kv=4, tensors=table)
    cards = (FormulaDevice(name="CUDA0", split=3.0), FormulaDevice(name="CUDA1", split=1.0))
    asked = Settings(n_gpu_layers=99, split_mode=SplitMode.TENSOR)
    first, second, _ = Formula(spec, cards).estimate(asked)
    (alone, _) = Formula(spec, cards[:1]).estimate(Settings(n_gpu_layers=99))
    vectors = sum(t.n_bytes for t in table if len(t.shape) == 1)
    assert first.weights_bytes == second.weights_bytes
    assert 2 * (first.weights_bytes or 0) == pytest.approx((alone.weights_bytes or 0) + vectors)
    assert 2 * (first.kv_cache_bytes or 0) == 2 * (second.kv_cache_bytes or 0)
    assert 2 * (first.kv_cache_bytes or 0) == alone.kv_cache_bytes
    assert first.compute_bytes == second.compute_bytes == alone.compute_bytes
    uneven = msgspec.structs.replace(asked, tensor_split="3,1")
    first, second, _ = Formula(spec, cards).estimate(uneven)
    assert first.kv_cache_bytes == 3 * (second.kv_cache_bytes or 0)


def test_tensor_split_divides_experts_on_devices() -> None:
    """Unlike by rows; those that are kept in RAM are nobody's."""
    cards = tuple(FormulaDevice(name=f"CUDA{i}", split=1.0) for i in range(2))
    for kept in (0, 2):
        asked = Settings(n_gpu_layers=99, n_cpu_moe=kept, split_mode=SplitMode.TENSOR)
        first, second, _ = Formula(moe(), cards).estimate(asked)
        assert first.weights_bytes == second.weights_bytes


def test_split_mode_none_is_the_first_device() -> None:
    """The other devices are not opened, whatever is to be split."""
    cards = tuple(FormulaDevice(name=f"CUDA{i}", split=1.0) for i in range(2))
    asked = Settings(n_gpu_layers=5, split_mode=SplitMode.NONE, tensor_split="1,9")
    assert Formula(moe(), cards).estimate(asked) == Formula(moe(), cards[:1]).estimate(
        Settings(n_gpu_layers=5)
    )


EXPERTS = r"blk\.(0|1)\.ffn_(up|down|gate)_exps"


def overridden(pattern: str, spec: ModelSpec, *, n_cpu_moe: int = 0) -> list[int]:
    settings = Settings(n_gpu_layers=5, n_cpu_moe=n_cpu_moe, override_tensor=f"{pattern}=CPU")
    parts = Formula(spec, (GPU,)).estimate(settings)
    return [p.weights_bytes or 0 for p in parts]


def test_overrides_keep_what_they_name_in_ram() -> None:
    """The pattern of ``--n-cpu-moe 2`` puts every byte where that setting does, not twice."""
    spec = moe()
    assert overridden(EXPERTS, spec) == weights(spec, 5, GPU, n_cpu_moe=2)
    assert overridden(EXPERTS, spec, n_cpu_moe=2) == weights(spec, 5, GPU, n_cpu_moe=2)


@pytest.mark.parametrize("pattern", ["attn_k", r"ffn_.*_exps\.weight", "^output", "nothing", "."])
def test_overrides_lose_nothing(pattern: str) -> None:
    """Whatever a pattern names moves from the device to RAM, whole; inputs are there already."""
    spec = moe()
    before, after = weights(spec, 5, GPU), overridden(pattern, spec)
    named = sum(t.n_bytes for t in spec.tensors if re.search(pattern, t.name))
    named -= sum(t.n_bytes for t in spec.tensors if pattern == "." and "token_embd" in t.name)
    assert after == [before[0] - named, before[1] + named]
