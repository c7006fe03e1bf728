"""The kinds of logged runs (see ``test_logged_machines``) in figures of our own.

Every expectation is worked out here by hand, from what the logs showed llama.cpp does: a formula
that only knew the logged figures would not pass.
"""

from typing import NamedTuple

import pytest

from app.domain.model import ModelSpec, RecurrentSpec
from app.domain.settings import Settings, SplitMode
from app.domain.units import MIB
from app.estimate.formula import Formula
from app.estimate.profile import EngineProfile, FormulaDevice
from tests.fakes.shapes import a_spec, dense_tensors

GPU = FormulaDevice(name="CUDA0", split=1.0)
PAIR = (FormulaDevice(name="CUDA0", split=1.0), FormulaDevice(name="CUDA1", split=1.0))
UNIFIED = EngineProfile(kv_unified=True)


class Kind(NamedTuple):
    """A shape, settings, and what the caches of all devices together must be."""

    spec: ModelSpec
    settings: Settings
    profile: EngineProfile
    kv_mib: float
    state_mib: float = 0.0


def windowed(n_layer: int, n_swa: int, n_head_kv: int, *, period: int = 2) -> ModelSpec:
    """Every layer but the last of a period has the window; heads of 128."""
    return a_spec(
        n_layer=n_layer, n_head=16, n_head_kv=n_head_kv, k_dim=128, n_swa=n_swa,
        swa_layers=tuple((i + 1) % period != 0 for i in range(n_layer)),
    )  # fmt: skip


def interval(n_layer: int, period: int) -> ModelSpec:
    """The last layer of a period has attention (2 heads of 128), the others 3 + 5 MiB of state."""
    has_kv = tuple(0 if (i + 1) % period else 2 for i in range(n_layer))
    return a_spec(
        arch="qwen35", n_layer=n_layer, n_head=8, n_head_kv=has_kv, k_dim=128,
        recurrent=RecurrentSpec(
            layers=tuple(i for i, n in enumerate(has_kv) if n == 0),
            n_embd_r=3 * MIB // 4, n_embd_s=5 * MIB // 4,
        ),
    )  # fmt: skip


def everywhere(n_layer: int) -> ModelSpec:
    """Attention and state in every layer, side by side."""
    state = RecurrentSpec(layers=tuple(range(n_layer)), n_embd_r=MIB // 4, n_embd_s=MIB // 4)
    return a_spec(
        arch="falcon-h1", n_layer=n_layer, n_head=8, n_head_kv=4, k_dim=64, recurrent=state
    )


SOME = tuple(8 if i in {0, 1, 2, 9, 17, 18} else 0 for i in range(20))
KINDS = {
    # 20 layers · 32,768 cells of one pool · 2 · (2 heads · 128) · 2 bytes
    "A01: five slots of one pool": Kind(
        a_spec(n_layer=20, n_head=16, n_head_kv=2, k_dim=128),
        Settings(n_gpu_layers=99, n_ctx=32768, n_seq_max=5), UNIFIED, 20 * 32,
    ),
    # 5 of 15 layers have a cache, 10 a state of 8 MiB
    "A03: every third layer attends": Kind(
        interval(15, 3), Settings(n_gpu_layers=99, n_ctx=16384), EngineProfile(), 5 * 16, 10 * 8
    ),
    # window 200 + batch 1,024 → 1,280 cells; 6 windows and 6 full layers of 4 KiB a cell
    "A04: a window and a large batch": Kind(
        windowed(12, 200, 8), Settings(n_gpu_layers=99, n_ctx=40960, n_ubatch=1024),
        EngineProfile(), 6 * 160 + 6 * 5,
    ),
    # three slots of 8,192 cells each; the windows of 256 + 512 cells thrice
    "A06: three slots of their own": Kind(
        windowed(8, 256, 4), Settings(n_gpu_layers=99, n_ctx=24576, n_seq_max=3),
        EngineProfile(), 4 * 48 + 4 * 3 * 1.5,
    ),
    # 3 · 1,500 + 512 cells are more than there are: no saving
    "A07: windows as long as the context": Kind(
        windowed(10, 1500, 4), Settings(n_gpu_layers=99, n_ctx=4096, n_seq_max=3), UNIFIED, 10 * 8
    ),
    # six windows of 2 · 700 + 256 → 1,792 cells, in one pool
    "A09: one full layer of seven": Kind(
        windowed(7, 700, 8, period=7),
        Settings(n_gpu_layers=99, n_ctx=20480, n_ubatch=256, n_seq_max=2), UNIFIED, 80 + 6 * 7,
    ),
    "A10, A27: an engine without window cache": Kind(
        windowed(12, 200, 8), Settings(n_gpu_layers=99, n_ctx=40960),
        EngineProfile(swa_full=True), 12 * 160,
    ),
    # 6 of 20 layers; K at 34/32 bytes, V at 18/32 bytes an element, 1,024 elements a cell
    "A15: layers without attention, two types": Kind(
        a_spec(n_layer=20, n_head=tuple(4 * n for n in SOME), n_head_kv=SOME, k_dim=128),
        Settings(n_gpu_layers=99, n_ctx=8192, type_k="q8_0", type_v="q4_0"),
        EngineProfile(), 6 * 8 * (34 + 18) / 32,
    ),
    # keys wider than values, all heads, no latent
    "A17: latent attention without its latent": Kind(
        a_spec(n_layer=9, n_head=32, n_head_kv=32, k_dim=192, v_dim=128),
        Settings(n_gpu_layers=99, n_ctx=1024), EngineProfile(), 9 * 32 * (192 + 128) * 2 / 1024,
    ),
    "A19: one KV head at five bits": Kind(
        a_spec(n_layer=32, n_head=24, n_head_kv=1, k_dim=256),
        Settings(n_gpu_layers=99, n_ctx=6144, type_k="q5_0", type_v="q5_0"),
        EngineProfile(), 32 * 6144 * 2 * 256 * 22 / 32 / MIB,
    ),
    # three slots, each with one state and three more to go back to
    "A24: rollback of a hybrid": Kind(
        interval(6, 3), Settings(n_gpu_layers=99, n_ctx=12288, n_seq_max=3),
        EngineProfile(kv_unified=True, n_rs_seq=3), 2 * 12, 4 * 8 * 3 * 4,
    ),
    "A25: cache and state side by side": Kind(
        everywhere(11), Settings(n_gpu_layers=99, n_ctx=8192, n_seq_max=2), EngineProfile(),
        11 * 8, 11 * 2 * 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_caches_are_what_the_kind_says(kind: Kind) -> None:
    """Cache and state to the byte, whatever the figures."""
    parts = Formula(kind.spec, (GPU,), kind.profile).estimate(kind.settings)
    assert sum(p.kv_cache_bytes or 0 for p in parts) / MIB == pytest.approx(kind.kv_mib, abs=0)
    assert sum(p.recurrent_state_bytes or 0 for p in parts) / MIB == kind.state_mib


def test_a_partly_offloaded_hybrid_splits_by_layer() -> None:
    """A03: the last 6 of 15 blocks are on the card: 2 with a cache, 4 with a state."""
    on_gpu, in_ram = Formula(interval(15, 3), (GPU,)).estimate(
        Settings(n_gpu_layers=7, n_ctx=16384)
    )
    assert (on_gpu.kv_cache_bytes, on_gpu.recurrent_state_bytes) == (2 * 16 * MIB, 4 * 8 * MIB)
    assert (in_ram.kv_cache_bytes, in_ram.recurrent_state_bytes) == (3 * 16 * MIB, 6 * 8 * MIB)


def test_row_split_leaves_cache_and_compute_on_the_first_card() -> None:
    """A12: only matrices are divided."""
    table = dense_tensors(n_layer=10, n_embd=1024, n_vocab=8192, n_ff=4096, n_q=1024, n_kv=256)
    spec = a_spec(n_layer=10, n_embd=1024, n_vocab=8192, n_head=8, n_head_kv=2, k_dim=128,
                  tensors=table)  # fmt: skip
    first, second, _ = Formula(spec, PAIR).estimate(
        Settings(n_gpu_layers=99, n_ctx=4096, split_mode=SplitMode.ROW)
    )
    assert (first.kv_cache_bytes, second.kv_cache_bytes) == (10 * 4 * MIB, 0)
    assert (second.compute_bytes or 0) == 0
    assert abs((first.weights_bytes or 0) - (second.weights_bytes or 0)) < MIB


def test_a_tied_embedding_is_there_twice() -> None:
    """A22: one copy for the input in RAM, one for the output on the card."""
    table = dense_tensors(
        n_layer=3, n_embd=512, n_vocab=65536, n_ff=1024, n_q=512, n_kv=128, tied=True
    )
    spec = a_spec(n_layer=3, n_embd=512, n_vocab=65536, tensors=table)
    on_gpu, in_ram = Formula(spec, (GPU,)).estimate(Settings(n_gpu_layers=99))
    embedding = next(t.n_bytes for t in table if t.name == "token_embd.weight")
    assert in_ram.weights_bytes == embedding
    total = (on_gpu.weights_bytes or 0) + embedding
    assert total == pytest.approx(spec.weights_bytes + embedding, abs=4096)
