"""Speed ceilings from bandwidth."""

import pytest

from app.domain.settings import Settings, SplitMode
from app.estimate.ceiling import ceiling_tok_s, token_bytes
from app.estimate.profile import FormulaDevice
from tests.fakes.shapes import a_spec, dense_tensors, moe_tensors

GPU = FormulaDevice(name="CUDA0", split=1.0)
DENSE = a_spec(
    tensors=dense_tensors(n_layer=4, n_embd=256, n_vocab=1024, n_ff=512, n_q=256, n_kv=128)
)


def test_a_token_reads_all_weights_but_the_embedding_table() -> None:
    """The table is looked up, everything else is multiplied."""
    table = DENSE.tensors[0].n_bytes
    read = token_bytes(DENSE, Settings(n_gpu_layers=99), (GPU,))
    assert read == {"CUDA0": DENSE.weights_bytes - table, "host": 0}


def test_depth_adds_the_filled_part_of_the_cache() -> None:
    """At half the context half of the cache is read."""
    settings = Settings(n_gpu_layers=99, n_ctx=4096)
    shallow = token_bytes(DENSE, settings, (GPU,))["CUDA0"]
    deep = token_bytes(DENSE, settings, (GPU,), depth=2048)["CUDA0"]
    assert deep - shallow == 4 * 2048 * (2 * 64 + 2 * 64) * 2


def test_only_used_experts_are_read() -> None:
    """Two of eight experts: a quarter of their bytes, on whichever side they are."""
    spec = a_spec(
        n_expert=8, n_expert_used=2,
        tensors=moe_tensors(
            n_layer=4, n_embd=256, n_vocab=1024, n_ff_exp=256, n_expert=8, n_q=256, n_kv=128
        ),
    )  # fmt: skip
    experts = sum(t.n_bytes for t in spec.tensors if "_exps" in t.name)
    read = token_bytes(spec, Settings(n_gpu_layers=99, n_cpu_moe=4), (GPU,))
    ruled = Settings(n_gpu_layers=99, override_tensor="exps=CPU")
    assert token_bytes(spec, ruled, (GPU,)) == pytest.approx(read, abs=spec.n_layer)
    assert read["host"] == pytest.approx(experts / 4, abs=4)


def test_devices_that_share_each_layer_have_no_sum() -> None:
    """They read at the same time: no bytes, and so no speed; one device of several is itself."""
    pair = (GPU, FormulaDevice(name="CUDA1", split=1.0))
    for mode in (SplitMode.ROW, SplitMode.TENSOR):
        assert token_bytes(DENSE, Settings(n_gpu_layers=99, split_mode=mode), pair) == {}
    alone = token_bytes(DENSE, Settings(n_gpu_layers=99), (GPU,))
    only = token_bytes(DENSE, Settings(n_gpu_layers=99, split_mode=SplitMode.NONE), pair)
    assert only == {**alone, "CUDA1": 0}


def test_devices_work_one_after_the_other() -> None:
    """Times add up; a device without known bandwidth leaves the answer open."""
    read = {"CUDA0": 4_000_000_000, "host": 1_000_000_000}
    assert ceiling_tok_s(read, {"CUDA0": 400.0, "host": 50.0}) == pytest.approx(1 / 0.03)
    assert ceiling_tok_s(read, {"CUDA0": 400.0}) is None
    assert ceiling_tok_s({"CUDA0": 0}, {}) is None
