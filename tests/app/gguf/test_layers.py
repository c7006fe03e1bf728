"""Per-layer heads, windows and states follow llama.cpp, architecture by architecture."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.gguf.architectures import FORMULA_ARCHS, SLIDING_WINDOWS, SPECIAL_ARCHS
from app.gguf.layers import Layers, Shape, derive_layers
from app.gguf.metadata import Metadata, Value
from app.gguf.reader import read_model
from tests.fakes.models import make_model

ATTENTION = frozenset({"attn_q.weight", "attn_k.weight"})
STATE = frozenset({"ssm_in.weight", "ssm_conv1d.weight"})


def derive(
    arch: str,
    n_layer: int,
    values: Mapping[str, int],
    *,
    n_embd: int = 4096,
    tensors: Mapping[int, frozenset[str]] | None = None,
    n_draft: int = 0,
) -> Layers:
    pairs: dict[str, Value] = {f"{arch}.{key}": value for key, value in values.items()}
    return derive_layers(
        Shape(
            arch, Metadata(Path("m.gguf"), pairs), n_layer, n_layer - n_draft, n_embd, tensors or {}
        )
    )


def windowed(layers: Layers) -> str:
    return "".join("w" if swa else "." for swa in layers.swa_layers)


HEADS = {"attention.head_count": 32, "attention.head_count_kv": 8}


def test_grouped_heads_and_their_size() -> None:
    """KV heads default to heads, and the head size to an even share of the embedding."""
    grouped = derive("llama", 2, HEADS)
    assert grouped.n_head_kv == (8, 8)
    assert grouped.n_embd_head_k == grouped.n_embd_head_v == (128, 128)
    plain = derive("llama", 2, {"attention.head_count": 32, "attention.key_length": 96})
    assert plain.n_head_kv == (32, 32)
    assert (plain.n_embd_head_k, plain.n_embd_head_v) == ((96, 96), (128, 128))


@pytest.mark.parametrize(
    ("arch", "values", "n_layer", "pattern", "n_swa"),
    [
        ("gemma2", {}, 4, "w.w.", 4096),
        ("gemma3", {"attention.sliding_window": 512}, 7, "wwwww.w", 512),
        ("gemma3", {}, 7, ".......", 0),
        ("gpt-oss", {"attention.sliding_window": 128}, 4, "w.w.", 128),
        ("cohere2", {"attention.sliding_window": 4096}, 5, "www.w", 4096),
        ("llama4", {}, 5, "www.w", 8192),
        ("llama4", {"attention.sliding_window": 0}, 5, ".....", 0),
        ("phi3", {"attention.sliding_window": 2048}, 3, "...", 0),
        ("llama", {"attention.sliding_window": 4096}, 3, "...", 0),
        ("laguna", {"attention.sliding_window": 512}, 5, ".www.", 512),
        ("smallthinker", {"attention.sliding_window": 1000}, 5, ".www.", 4096),
        ("smallthinker", {}, 5, ".....", 0),
        ("exaone4", {"attention.sliding_window": 4096}, 30, "." * 30, 0),
        ("exaone4", {"attention.sliding_window": 4096}, 64, "www." * 16, 4096),
        (
            "gemma3",
            {"attention.sliding_window": 512, "attention.sliding_window_pattern": 3},
            4,
            "ww.w",
            512,
        ),
    ],
)
def test_window_patterns(
    arch: str, values: dict[str, int], n_layer: int, pattern: str, n_swa: int
) -> None:
    """Which layers have the window, and how wide it is."""
    layers = derive(arch, n_layer, HEADS | values)
    assert (windowed(layers), layers.n_swa) == (pattern, n_swa)


def test_shared_kv_and_windowed_head_size(tmp_path: Path) -> None:
    """gemma4: the file's list of windowed layers, their own head size, shared last layers."""
    spec = read_model(make_model(tmp_path / "m.gguf", "gemma4", n_layer=6, n_head_kv=2))
    assert spec.swa_layers == (True, True, False) * 2
    assert spec.n_embd_head_k == (16, 16, 32) * 2
    assert spec.kv_shared_from == 3
    assert spec.n_head_kv == (2, 2, 2, 0, 0, 0)


def test_gemma3n_shares_from_layer_20() -> None:
    """gemma3n keeps 20 caches whatever its size."""
    layers = derive("gemma3n", 30, HEADS | {"attention.sliding_window": 512})
    assert layers.kv_shared_from == 20
    assert layers.n_head_kv == (8,) * 20 + (0,) * 10


def test_mla_with_and_without_latent_cache() -> None:
    """With the MLA lengths one latent row per token is cached; without, full heads."""
    mla = {
        "attention.head_count": 128,
        "attention.head_count_kv": 1,
        "attention.key_length": 576,
        "attention.value_length": 512,
        "attention.kv_lora_rank": 512,
    }
    latent = derive(
        "deepseek2", 2, mla | {"attention.key_length_mla": 192, "attention.value_length_mla": 128}
    )
    assert (latent.mla_kv_lora_rank, latent.mla_rope_dim) == (512, 64)
    assert latent.n_head_kv[0] * latent.n_embd_head_k[0] == 576
    old = {"attention.head_count_kv": 128, "attention.key_length": 192}
    full = derive("deepseek2", 2, mla | old | {"attention.value_length": 128})
    assert full.mla_kv_lora_rank is None
    assert full.n_head_kv[0] * full.n_embd_head_k[0] == 24576
    assert full.n_head_kv[0] * full.n_embd_head_v[0] == 16384


def test_draft_layers_hold_no_cache() -> None:
    """NextN (MTP) blocks at the end are outside of the text context's cache."""
    assert derive("glm4moe", 3, HEADS, n_draft=1).n_head_kv == (8, 8, 0)


def test_qwen35_hybrid_as_logged() -> None:
    """Qwen3.5-27B: 16 of 64 layers attend, 48 keep 149.62 MiB of state per sequence."""
    values = {
        "attention.head_count": 24,
        "attention.head_count_kv": 4,
        "attention.key_length": 256,
        "attention.value_length": 256,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 6144,
        "ssm.state_size": 128,
        "ssm.time_step_rank": 48,
        "ssm.group_count": 16,
    }
    layers = derive("qwen35", 65, values, n_embd=5120, n_draft=1)
    assert sum(heads > 0 for heads in layers.n_head_kv) == 16
    assert layers.n_head_kv[3] == 4
    assert layers.recurrent is not None
    assert len(layers.recurrent.layers) == 48
    mib = 4 / 2**20 * 48
    assert round(layers.recurrent.n_embd_r * mib, 2) == 5.62
    assert round(layers.recurrent.n_embd_s * mib, 2) == 144.0


@pytest.mark.parametrize(
    ("arch", "n_layer", "n_embd", "values", "mib"),
    [
        (
            "mamba2",
            64,
            4096,
            {"ssm.inner_size": 8192, "ssm.state_size": 128, "ssm.group_count": 8},
            263.5,
        ),
        ("mamba", 64, 4096, {"ssm.inner_size": 8192, "ssm.state_size": 16}, 38.0),
        ("mamba", 64, 2560, {"ssm.inner_size": 5120, "ssm.state_size": 16}, 23.75),
    ],
)
def test_pure_state_as_logged(
    arch: str, n_layer: int, n_embd: int, values: dict[str, int], mib: float
) -> None:
    """Mamba-Codestral, Falcon-Mamba and the 3B class: logged MiB per sequence, no KV."""
    layers = derive(arch, n_layer, values | {"ssm.conv_kernel": 4}, n_embd=n_embd)
    state = layers.recurrent
    assert state is not None
    assert sum(layers.n_head_kv) == 0
    assert len(state.layers) * (state.n_embd_r + state.n_embd_s) * 4 / 2**20 == mib


def test_rwkv_lfm_and_kda_states() -> None:
    """The other state formulas of ``llama_hparams``."""
    rwkv = derive("rwkv7", 2, {"wkv.head_size": 64}, n_embd=2048).recurrent
    assert rwkv is not None
    assert (rwkv.n_embd_r, rwkv.n_embd_s) == (2 * 2048, 2048 * 64)
    conv = {0: frozenset({"shortconv.conv.weight"}), 1: ATTENTION}
    lfm2 = derive("lfm2", 2, HEADS | {"shortconv.l_cache": 3}, n_embd=1024, tensors=conv)
    assert lfm2.recurrent is not None
    assert (lfm2.recurrent.layers, lfm2.recurrent.n_embd_r) == ((0,), 2048)
    kda = {"attention.head_count": 32, "kda.head_dim": 128, "ssm.conv_kernel": 4}
    linear = derive("kimi-linear", 1, kda, tensors={0: STATE}).recurrent
    assert linear is not None
    assert (linear.n_embd_r, linear.n_embd_s) == (3 * 3 * 4096, 524288)


def test_tensors_tell_recurrent_from_attention_layers(tmp_path: Path) -> None:
    """Hybrids: state and cache lie where the tensors do; Falcon-H1 has both everywhere."""
    jamba = read_model(make_model(tmp_path / "a.gguf", "jamba", n_layer=4))
    assert jamba.recurrent is not None
    assert (jamba.recurrent.layers, jamba.n_head_kv) == ((0, 2), (0, 2, 0, 2))
    falcon = read_model(make_model(tmp_path / "b.gguf", "falcon-h1", n_layer=3))
    assert falcon.recurrent is not None
    assert (falcon.recurrent.layers, falcon.n_head_kv) == ((0, 1, 2), (2, 2, 2))


def test_architecture_tables_do_not_contradict() -> None:
    """No architecture is both covered and special; windows belong to covered ones."""
    assert not FORMULA_ARCHS & SPECIAL_ARCHS
    assert set(SLIDING_WINDOWS) <= FORMULA_ARCHS
