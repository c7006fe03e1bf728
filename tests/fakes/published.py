"""Further published models: the compute formula's peculiarities of families were found on them."""

from collections.abc import Callable
from pathlib import Path

from tests.fakes.model_tables import Value
from tests.fakes.shape_files import (
    Shape,
    Table,
    attention,
    expert_keys,
    experts,
    forward,
    heads,
    mamba_keys,
    write_shape,
)


def published_model(path: Path, name: str) -> Path:
    """Write header and tensor table of ``name`` (see ``PUBLISHED``); the weights are a hole."""
    return write_shape(path, name, PUBLISHED[name])


def _deepseek_v2_lite(il: int) -> Table:
    yield "attn_norm.weight", (2048,)
    yield "attn_q.weight", (2048, 16 * 192)
    yield "attn_kv_a_mqa.weight", (2048, 576)
    yield "attn_kv_a_norm.weight", (512,)
    yield "attn_k_b.weight", (128, 512, 16)
    yield "attn_v_b.weight", (512, 128, 16)
    yield "attn_output.weight", (16 * 128, 2048)
    if il == 0:
        yield from forward(2048, 10944)
        return
    yield "ffn_norm.weight", (2048,)
    yield from experts(2048, 1408, 64, 2816)


def latent_block(n_head: int, n_expert: int, n_dense: int) -> Callable[[int], Table]:
    """DeepSeek-V3 and what is built like it: ``n_dense`` blocks without experts come first."""

    def block(il: int) -> Table:
        yield "attn_norm.weight", (7168,)
        yield "attn_q_a.weight", (7168, 1536)
        yield "attn_q_a_norm.weight", (1536,)
        yield "attn_q_b.weight", (1536, n_head * 192)
        yield "attn_kv_a_mqa.weight", (7168, 576)
        yield "attn_kv_a_norm.weight", (512,)
        yield "attn_k_b.weight", (128, 512, n_head)
        yield "attn_v_b.weight", (512, 128, n_head)
        yield "attn_output.weight", (n_head * 128, 7168)
        if il < n_dense:
            yield from forward(7168, 18432)
            return
        yield "ffn_norm.weight", (7168,)
        yield from experts(7168, 2048, n_expert, 2048)
        yield "exp_probs_b.bias", (n_expert,)

    return block


def _mixtral(_il: int) -> Table:
    yield from attention(4096, 4096, 1024)
    yield "ffn_norm.weight", (4096,)
    yield from experts(4096, 14336, 8)


def _phi4(_il: int) -> Table:
    yield "attn_norm.weight", (5120,)
    yield "attn_qkv.weight", (5120, 5120 + 2 * 1280)
    yield "attn_output.weight", (5120, 5120)
    yield "ffn_norm.weight", (5120,)
    yield "ffn_up.weight", (5120, 2 * 17920)
    yield "ffn_down.weight", (17920, 5120)


def _phi3_mini(_il: int) -> Table:
    yield "attn_norm.weight", (3072,)
    yield "attn_qkv.weight", (3072, 3 * 3072)
    yield "attn_output.weight", (3072, 3072)
    yield "ffn_norm.weight", (3072,)
    yield "ffn_up.weight", (3072, 2 * 8192)
    yield "ffn_down.weight", (8192, 3072)


def _glm_air(il: int) -> Table:
    yield from attention(4096, 96 * 128, 8 * 128, bias=True)
    yield "post_attention_norm.weight", (4096,)
    if il == 0:
        yield from forward(4096, 10944, None)
        return
    yield from experts(4096, 1408, 128, 1408)
    yield "exp_probs_b.bias", (128,)
    if il == 46:  # the draft block
        yield "nextn.eh_proj.weight", (8192, 4096)
        for name in ("enorm", "hnorm", "shared_head_norm"):
            yield f"nextn.{name}.weight", (4096,)


def _command_r7b(_il: int) -> Table:
    yield from attention(4096, 4096, 1024)
    yield from forward(4096, 14336, None)


def _granite_8b(_il: int) -> Table:
    yield from attention(4096, 4096, 1024)
    yield from forward(4096, 12800)


def _olmo2_13b(_il: int) -> Table:
    yield from (
        (n, s) for n, s in attention(5120, 5120, 5120, norm=5120) if n != "attn_norm.weight"
    )
    yield "post_attention_norm.weight", (5120,)
    yield from forward(5120, 13824, None)
    yield "post_ffw_norm.weight", (5120,)


def _starcoder2_7b(_il: int) -> Table:
    yield from attention(4608, 4608, 512, bias=True)
    for name, rows in (("attn_norm", 4608), ("attn_output", 4608), ("ffn_norm", 4608)):
        yield f"{name}.bias", (rows,)
    yield "ffn_norm.weight", (4608,)
    yield "ffn_up.weight", (4608, 18432)
    yield "ffn_up.bias", (18432,)
    yield "ffn_down.weight", (18432, 4608)
    yield "ffn_down.bias", (4608,)


def _qwen_moe(_il: int) -> Table:
    yield from attention(2048, 2048, 2048, bias=True)
    yield "ffn_norm.weight", (2048,)
    yield from experts(2048, 1408, 60, 5632)
    yield "ffn_gate_inp_shexp.weight", (2048,)


def _qwen3_next(il: int) -> Table:
    if il % 4 == 3:
        yield from attention(2048, 4096, 512, norm=256)
    else:
        yield "attn_norm.weight", (2048,)
        yield "attn_qkv.weight", (2048, 8192)
        yield "attn_gate.weight", (2048, 4096)
        yield "ssm_conv1d.weight", (4, 8192)
        yield "ssm_dt.bias", (32,)
        yield "ssm_a", (32,)
        yield "ssm_ba.weight", (2048, 64)
        yield "ssm_norm.weight", (128,)
        yield "ssm_out.weight", (4096, 2048)
    yield "post_attention_norm.weight", (2048,)
    yield from experts(2048, 512, 512, 512)
    yield "ffn_gate_inp_shexp.weight", (2048,)


def _gated_q(block: Callable[[int], Table]) -> Callable[[int], Table]:
    """Qwen3-Next's attention computes a gate beside Q."""
    return lambda il: (
        (n, (s[0], 2 * s[1])) if n == "attn_q.weight" else (n, s) for n, s in block(il)
    )


def _falcon_h1_7b(_il: int) -> Table:
    yield from attention(3072, 12 * 128, 2 * 128)
    conv = 3072 + 2 * 256
    yield "ssm_in.weight", (3072, 3072 + conv + 24)
    yield "ssm_conv1d.weight", (4, conv)
    yield "ssm_conv1d.bias", (conv,)
    yield "ssm_dt.bias", (24,)
    yield "ssm_a", (1, 24)
    yield "ssm_d", (1, 24)
    yield "ssm_out.weight", (3072, 3072)
    yield from forward(3072, 12288, "ffn_norm")


def _mamba_8192(_il: int) -> Table:
    """Yield what Falcon-Mamba-7B is made of, and Jamba-Mini has between its attention blocks."""
    yield "attn_norm.weight", (4096,)
    yield "ssm_in.weight", (4096, 16384)
    yield "ssm_conv1d.weight", (4, 8192)
    yield "ssm_conv1d.bias", (8192,)
    yield "ssm_x.weight", (8192, 256 + 32)
    yield "ssm_dt.weight", (256, 8192)
    yield "ssm_dt.bias", (8192,)
    yield "ssm_a", (16, 8192)
    yield "ssm_d", (8192,)
    yield "ssm_out.weight", (8192, 4096)


def _scout(_il: int) -> Table:
    yield from attention(5120, 5120, 1024)
    yield "ffn_norm.weight", (5120,)
    yield from experts(5120, 8192, 16, 8192)


_LFM2_ATTENTION = frozenset({2, 5, 8, 10, 12, 14})


def _lfm2(il: int) -> Table:
    if il in _LFM2_ATTENTION:
        yield from attention(2048, 2048, 512, norm=64)
    else:
        yield "attn_norm.weight", (2048,)
        yield "shortconv.conv.weight", (3, 2048)
        yield "shortconv.in_proj.weight", (2048, 6144)
        yield "shortconv.out_proj.weight", (2048, 2048)
    yield from forward(2048, 8192)


def _jamba_mini(il: int) -> Table:
    if il % 8 == 4:
        yield from attention(4096, 4096, 1024)
    else:
        yield from _mamba_8192(il)
        for name, size in (("dt", 256), ("b", 16), ("c", 16)):
            yield f"ssm_{name}_norm.weight", (size,)
    if il % 2:
        yield "ffn_norm.weight", (4096,)
        yield from experts(4096, 14336, 16)
    else:
        yield from forward(4096, 14336)


LATENT: dict[str, Value] = {
    "attention.key_length": 576,
    "attention.value_length": 512,
    "attention.key_length_mla": 192,
    "attention.value_length_mla": 128,
    "attention.kv_lora_rank": 512,
    "rope.dimension_count": 64,
    "feed_forward_length": 10944,
    "leading_dense_block_count": 1,
    "expert_shared_count": 2,
}
_LFM2_HEADS = [8 if il in _LFM2_ATTENTION else 0 for il in range(16)]

PUBLISHED: dict[str, Shape] = {
    "DeepSeek-V2-Lite": Shape(
        "deepseek2", 27, 2048, 102400,
        heads(16, 1, 576) | expert_keys(1408, 64, 6, expert_weights_scale=1.0) | LATENT,
        _deepseek_v2_lite,
    ),
    "DeepSeek-V3": Shape(
        "deepseek2", 61, 7168, 129280,
        heads(128, 1, 576)
        | expert_keys(
            2048, 256, 8, expert_weights_scale=2.5, expert_gating_func=2, expert_weights_norm=True
        )
        | LATENT
        | {
            "attention.q_lora_rank": 1536, "leading_dense_block_count": 3,
            "expert_shared_count": 1, "feed_forward_length": 18432,
        },
        latent_block(128, 256, 3),
    ),
    "Mixtral-8x7B": Shape(
        "llama", 32, 4096, 32000,
        heads(32, 8, 128, feed_forward_length=14336) | expert_keys(14336, 8, 2), _mixtral,
    ),
    "Phi-3-mini": Shape(
        "phi3", 32, 3072, 32064, heads(32, 32, 96, feed_forward_length=8192), _phi3_mini
    ),
    "Phi-4": Shape(
        "phi3", 40, 5120, 100352, heads(40, 10, 128, feed_forward_length=17920), _phi4
    ),
    "GLM-4.5-Air": Shape(
        "glm4moe", 47, 4096, 151552,
        heads(96, 8, 128, feed_forward_length=10944, leading_dense_block_count=1)
        | expert_keys(
            1408, 128, 8, expert_shared_count=1, nextn_predict_layers=1, expert_gating_func=2,
            expert_weights_scale=1.0, expert_weights_norm=True,
        ),
        _glm_air,
    ),
    "Command-R7B": Shape(
        "cohere2", 32, 4096, 256000,
        heads(32, 8, 128, feed_forward_length=14336, logit_scale=0.25)
        | {"attention.sliding_window": 4096},
        _command_r7b, tied=True,
    ),
    "Granite-3.1-8B": Shape(
        "granite", 40, 4096, 49155,
        heads(32, 8, 128, feed_forward_length=12800, logit_scale=16.0, embedding_scale=12.0)
        | {"attention.scale": 0.0078125, "residual_scale": 0.22},
        _granite_8b, tied=True,
    ),
    "OLMo-2-13B": Shape(
        "olmo2", 40, 5120, 100352, heads(40, 40, 128, feed_forward_length=13824), _olmo2_13b
    ),
    "StarCoder2-7B": Shape(
        "starcoder2", 32, 4608, 49152, heads(36, 4, 128, feed_forward_length=18432),
        _starcoder2_7b, tied=True, output_bias=True,
    ),
    "Qwen1.5-MoE-A2.7B": Shape(
        "qwen2moe", 24, 2048, 151936,
        heads(16, 16, 128, feed_forward_length=5632)
        | expert_keys(1408, 60, 4, expert_shared_feed_forward_length=5632),
        _qwen_moe,
    ),
    "Qwen3-Next-80B-A3B": Shape(
        "qwen3next", 48, 2048, 151936,
        heads(16, 2, 256, feed_forward_length=5120)
        | expert_keys(512, 512, 10, expert_shared_feed_forward_length=512)
        | mamba_keys(4096, 128, 32, 16) | {"rope.dimension_count": 64},
        _gated_q(_qwen3_next),
    ),
    "Falcon-H1-7B": Shape(
        "falcon-h1", 44, 3072, 130048,
        heads(12, 2, 128, feed_forward_length=12288) | mamba_keys(3072, 256, 24, 1),
        _falcon_h1_7b,
    ),
    "Falcon-Mamba-7B": Shape(
        "mamba", 64, 4096, 65024,
        {"feed_forward_length": 0, "attention.head_count": 0} | mamba_keys(8192, 16, 256),
        _mamba_8192,
    ),
    "Llama-4-Scout": Shape(
        "llama4", 48, 5120, 202048,
        heads(40, 8, 128, feed_forward_length=16384)
        | expert_keys(8192, 16, 1, interleave_moe_layer_step=1),
        _scout,
    ),
    "LFM2-1.2B": Shape(
        "lfm2", 16, 2048, 65536,
        heads(32, _LFM2_HEADS, 64, feed_forward_length=8192) | {"shortconv.l_cache": 3},
        _lfm2, tied=True, output_norm="token_embd_norm",
    ),
    "Jamba-1.5-Mini": Shape(
        "jamba", 32, 4096, 65536,
        heads(32, [8 if il % 8 == 4 else 0 for il in range(32)], 128, feed_forward_length=14336)
        | expert_keys(14336, 16, 2) | mamba_keys(8192, 16, 256),
        _jamba_mini,
    ),
}  # fmt: skip
"""The models ``published_model`` can write, all with llama-quantize's Q4_K_M types."""
