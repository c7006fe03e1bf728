"""KV cache and recurrent state against sizes that real llama.cpp runs have logged."""

from typing import NamedTuple

import pytest

from app.domain.model import ModelSpec, RecurrentSpec
from app.domain.settings import FlashAttn, Settings
from app.domain.units import MIB
from app.estimate.formula import Formula
from app.estimate.kv import kv_bytes_per_token, layer_caches
from app.estimate.profile import EngineProfile, FormulaDevice
from tests.fakes.shapes import a_spec

UNIFIED = EngineProfile(kv_unified=True)
FULL_WINDOW = EngineProfile(swa_full=True)
PLAIN = EngineProfile()


def alternating(n_layer: int) -> tuple[bool, ...]:
    """Every first of two layers uses the window."""
    return tuple(i % 2 == 0 for i in range(n_layer))


def one_full_in(n_layer: int, period: int) -> tuple[bool, ...]:
    """The last layer of each period sees everything."""
    return tuple((i + 1) % period != 0 for i in range(n_layer))


def gpt_oss(n_layer: int) -> ModelSpec:
    return a_spec(
        arch="gpt-oss", n_layer=n_layer, n_embd=2880, n_head=64, n_head_kv=8, k_dim=64,
        n_swa=128, swa_layers=alternating(n_layer),
    )  # fmt: skip


def hybrid(n_layer: int, d_inner: int, n_group: int = 16) -> ModelSpec:
    """Qwen3.5: three of four layers hold a gated delta net, state 128, convolution 4."""
    has_kv = tuple(4 if (i + 1) % 4 == 0 else 0 for i in range(n_layer))
    return a_spec(
        arch="qwen35", n_layer=n_layer, n_head=24, n_head_kv=has_kv, k_dim=256,
        recurrent=RecurrentSpec(
            layers=tuple(i for i, n in enumerate(has_kv) if n == 0),
            n_embd_r=3 * (d_inner + 2 * n_group * 128),
            n_embd_s=128 * d_inner,
        ),
    )  # fmt: skip


def mamba(n_layer: int, d_inner: int, d_state: int, n_group: int = 0) -> ModelSpec:
    recurrent = RecurrentSpec(
        layers=tuple(range(n_layer)),
        n_embd_r=3 * (d_inner + 2 * n_group * d_state),
        n_embd_s=d_state * d_inner,
    )
    return a_spec(arch="mamba", n_layer=n_layer, n_head=0, n_head_kv=0, recurrent=recurrent)


GEMMA3_27B = a_spec(
    arch="gemma3", n_layer=62, n_embd=5376, n_head=32, n_head_kv=16, k_dim=128,
    n_swa=1024, swa_layers=one_full_in(62, 6),
)  # fmt: skip
GEMMA4_12B = a_spec(
    n_layer=48, n_swa=1024, swa_layers=one_full_in(48, 6),
    n_head_kv=tuple(8 if windowed else 1 for windowed in one_full_in(48, 6)),
    k_dim=tuple(256 if windowed else 512 for windowed in one_full_in(48, 6)),
)  # fmt: skip
FALCON_H1_1_5B = a_spec(
    arch="falcon-h1", n_layer=24, n_head=8, n_head_kv=2, k_dim=128,
    recurrent=RecurrentSpec(
        layers=tuple(range(24)), n_embd_r=3 * (3072 + 2 * 256), n_embd_s=256 * 3072
    ),
)  # fmt: skip


class Logged(NamedTuple):
    """A run whose log gave these sizes, MiB."""

    spec: ModelSpec
    settings: Settings
    profile: EngineProfile = PLAIN
    kv_mib: float = 0.0
    state_mib: float = 0.0


def with_ctx(
    n_ctx: int, n_seq_max: int = 1, n_ubatch: int = 512, kv: tuple[str, str] = ("f16", "f16")
) -> Settings:
    return Settings(
        n_gpu_layers=0, n_ctx=n_ctx, n_seq_max=n_seq_max, n_ubatch=n_ubatch,
        type_k=kv[0], type_v=kv[1],
    )  # fmt: skip


Q8 = ("q8_0", "q8_0")
LOGGED: dict[str, Logged] = {
    "a unified pool is not multiplied by its slots": Logged(
        a_spec(n_layer=48, n_head=32, n_head_kv=4, k_dim=128), with_ctx(65536, 4),
        UNIFIED, kv_mib=6144.0,
    ),
    "hybrid: 16 layers have a cache, 48 a state": Logged(
        hybrid(64, 6144), with_ctx(131072, n_ubatch=1024), kv_mib=8192.0, state_mib=149.62,
    ),
    "window of 128 and batch of 512 round to 768 cells": Logged(
        gpt_oss(24), with_ctx(131072), kv_mib=3072.0 + 18.0
    ),
    "a larger batch enlarges the window's cache": Logged(
        gpt_oss(24), with_ctx(131072, n_ubatch=2048), kv_mib=3072.0 + 54.0
    ),
    "two slots of their own": Logged(
        gpt_oss(36), with_ctx(262144, 2, 1024), kv_mib=9216.0 + 90.0
    ),
    "an engine without window cache (20B)": Logged(
        gpt_oss(24), with_ctx(131072), FULL_WINDOW, kv_mib=6144.0
    ),
    "four unified slots saturate the window": Logged(
        a_spec(n_layer=26, n_head_kv=4, k_dim=256, n_swa=4096, swa_layers=alternating(26)),
        with_ctx(8192, 4), UNIFIED, kv_mib=832.0,
    ),
    "window layers with other heads than full ones": Logged(
        GEMMA4_12B, with_ctx(8192, 4, 2048), UNIFIED, kv_mib=128.0 + 1920.0
    ),
    "27B without window cache": Logged(
        GEMMA3_27B, with_ctx(32768), FULL_WINDOW, kv_mib=15872.0
    ),
    "27B without window cache, whole context": Logged(
        GEMMA3_27B, with_ctx(131072), FULL_WINDOW, kv_mib=63488.0
    ),
    "27B with it": Logged(GEMMA3_27B, with_ctx(32768), kv_mib=2560.0 + 624.0),
    "8 KV heads of 128": Logged(
        a_spec(n_layer=64, n_head_kv=8, k_dim=128), with_ctx(8192), kv_mib=2048.0
    ),
    "the same at 40k": Logged(
        a_spec(n_layer=64, n_head_kv=8, k_dim=128), with_ctx(40960), kv_mib=10240.0
    ),
    "latent attention written without its latent": Logged(
        a_spec(n_layer=61, n_head_kv=128, k_dim=192, v_dim=128), with_ctx(2048), kv_mib=9760.0
    ),
    "two KV heads, quantised": Logged(
        a_spec(n_layer=61, n_head_kv=2, k_dim=128), with_ctx(5120, kv=Q8), kv_mib=162.03
    ),
    "quantised at 48k": Logged(
        a_spec(n_layer=56, n_head_kv=8, k_dim=128), with_ctx(49152, kv=Q8), kv_mib=5712.0
    ),
    "one KV head": Logged(
        a_spec(n_layer=18, n_head_kv=1, k_dim=256), with_ctx(2048), kv_mib=36.0
    ),
    "four slots times two rollback states": Logged(
        hybrid(64, 6144), with_ctx(8192, 4), EngineProfile(kv_unified=True, n_rs_seq=2),
        kv_mib=512.0, state_mib=1795.5,
    ),
    "9B, one slot": Logged(hybrid(32, 4096), with_ctx(8192), kv_mib=256.0, state_mib=50.25),
    "9B, four slots": Logged(
        hybrid(32, 4096), with_ctx(8192, 4), UNIFIED, kv_mib=256.0, state_mib=201.0
    ),
    "Mamba 3B, whatever the context": Logged(
        mamba(64, 5120, 16), with_ctx(131072), state_mib=23.75
    ),
    "Mamba 1.4B": Logged(mamba(48, 4096, 16), with_ctx(4096), state_mib=14.25),
    "Falcon-Mamba": Logged(mamba(64, 8192, 16), with_ctx(4096), state_mib=38.0),
    "Mamba-2 with groups": Logged(mamba(64, 8192, 128, 8), with_ctx(4096), state_mib=263.5),
    "Falcon-H1: both in every layer": Logged(
        FALCON_H1_1_5B, with_ctx(32768), kv_mib=768.0, state_mib=72.98
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LOGGED.values(), ids=LOGGED.keys())
def test_cache_and_state_equal_the_logged_sizes(case: Logged) -> None:
    """Cache and state reproduce what llama.cpp printed, to its two decimals."""
    caches = layer_caches(case.spec, case.settings, case.profile)
    assert sum(c.kv_bytes for c in caches) / MIB == pytest.approx(case.kv_mib, abs=0.01)
    assert sum(c.state_bytes for c in caches) / MIB == pytest.approx(case.state_mib, abs=0.01)


def test_hybrid_splits_cache_and_state_between_gpu_and_ram() -> None:
    """25 of 64 blocks on the GPU hold 7 of 16 caches and 18 of 48 states (logged)."""
    gpu = FormulaDevice(name="CUDA0", split=1.0)
    formula = Formula(hybrid(64, 6144), (gpu,))
    settings = Settings(n_gpu_layers=26, n_ctx=131072, n_ubatch=1024)
    on_gpu, in_ram = formula.estimate(settings)
    assert on_gpu.kv_cache_bytes == 3584 * MIB
    assert in_ram.kv_cache_bytes == 4608 * MIB
    assert (on_gpu.recurrent_state_bytes or 0) / MIB == pytest.approx(56.11, abs=0.01)
    assert (in_ram.recurrent_state_bytes or 0) / MIB == pytest.approx(93.52, abs=0.01)


NEMOTRON_KV_LAYERS = (
    "111111111000011111000000111000001111000111010000001111000001111000001111000001111"
    "000001111001111001000000001000001101000000000000000000000000000000000011011111111"
)


def test_layers_without_attention_hold_no_cache_and_split_over_four_cards() -> None:
    """64 of 162 layers have a cache; each of four unequal cards gets what was logged."""
    heads = tuple(8 * int(c) for c in NEMOTRON_KV_LAYERS)
    cards = tuple(
        FormulaDevice(name=f"CUDA{i}", split=split) for i, split in enumerate((6.5, 6, 10, 4))
    )
    spec = a_spec(arch="deci", n_layer=162, n_head=128, n_head_kv=heads, k_dim=128)
    settings = Settings(n_gpu_layers=163, n_ctx=12228, type_k="q8_0", type_v="q4_0")
    devices = Formula(spec, cards).estimate(settings)
    found = [(d.kv_cache_bytes or 0) / MIB for d in devices]
    assert sum(found) == pytest.approx(1248.0, abs=0.01)
    assert found[:4] == pytest.approx([429.02, 292.52, 331.53, 195.01], abs=0.04)


def test_latent_attention_keeps_only_the_latent() -> None:
    """With MLA tensors a cell holds rank + rotary part once, no V."""
    spec = a_spec(n_layer=27, n_head=16, n_head_kv=1, k_dim=576, v_dim=512, mla=(512, 64))
    caches = layer_caches(spec, with_ctx(4096), PLAIN)
    assert sum(c.kv_bytes for c in caches) == 27 * 4096 * 576 * 2


def test_layers_that_reuse_a_cache_have_none() -> None:
    """From ``kv_shared_from`` on nothing is stored."""
    spec = a_spec(n_layer=6, kv_shared_from=4)
    caches = layer_caches(spec, with_ctx(1024), PLAIN)
    assert [c.kv_bytes > 0 for c in caches] == [True] * 4 + [False] * 2


def test_v_is_padded_to_the_widest_layer_without_flash_attention() -> None:
    """Layers of different V width all take the widest when attention is computed plainly."""
    spec = a_spec(n_layer=2, n_head_kv=(2, 4), k_dim=64)
    settings = Settings(n_gpu_layers=0, n_ctx=1024, flash_attn=FlashAttn.OFF)
    first, second = layer_caches(spec, settings, PLAIN)
    assert first.kv_bytes == 1024 * 2 * (2 * 64 + 4 * 64)
    assert second.kv_bytes == 1024 * 2 * (4 * 64 + 4 * 64)


def test_growth_per_token_leaves_out_windows() -> None:
    """One more token costs only the layers that see everything; unknown stays unknown."""
    settings = with_ctx(4096)
    per_token = 12 * 2 * 8 * 64 * 2
    assert kv_bytes_per_token(gpt_oss(24), settings) == per_token
    assert kv_bytes_per_token(gpt_oss(24), settings, FULL_WINDOW) == 2 * per_token
    assert kv_bytes_per_token(a_spec(formula_known=False), settings) is None
