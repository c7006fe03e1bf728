"""Published models that nothing in the memory formula was made for: a check, never a guide.

If one of them shows a fault, mend the formula by what the engine does, move the model to
``published`` and put another one here.
"""

from collections.abc import Callable

from tests.fakes.published import LATENT, latent_block
from tests.fakes.shape_files import (
    Shape,
    Table,
    attention,
    expert_keys,
    experts,
    forward,
    heads,
    mamba_keys,
)


def _dense(n_embd: int, q: int, kv: int, n_ff: int) -> Callable[[int], Table]:
    def block(_il: int) -> Table:
        yield from attention(n_embd, q, kv)
        yield from forward(n_embd, n_ff)

    return block


def _qwen3_235b(_il: int) -> Table:
    yield from attention(4096, 8192, 512, norm=128)
    yield "ffn_norm.weight", (4096,)
    yield from experts(4096, 1536, 128)


def _glm4_9b(_il: int) -> Table:
    yield from attention(4096, 4096, 256, bias=True)
    yield "post_attention_norm.weight", (4096,)
    yield "ffn_norm.weight", (4096,)
    yield "ffn_up.weight", (4096, 2 * 13696)
    yield "ffn_down.weight", (13696, 4096)
    yield "post_ffw_norm.weight", (4096,)


def _granite_4_small(il: int) -> Table:
    if il % 10 == 5:
        yield from attention(4096, 4096, 1024)
    else:
        yield "attn_norm.weight", (4096,)
        yield "ssm_in.weight", (4096, 2 * 8192 + 2 * 128 + 128)
        yield "ssm_conv1d.weight", (4, 8192 + 2 * 128)
        yield "ssm_conv1d.bias", (8192 + 2 * 128,)
        yield "ssm_dt.bias", (128,)
        yield "ssm_a", (1, 128)
        yield "ssm_d", (1, 128)
        yield "ssm_norm.weight", (8192, 1)
        yield "ssm_out.weight", (8192, 4096)
    yield "ffn_norm.weight", (4096,)
    yield from experts(4096, 768, 72, 1536)


UNSEEN: dict[str, Shape] = {
    "Mistral-Nemo-12B": Shape(
        "llama", 40, 5120, 131072, heads(32, 8, 128, feed_forward_length=14336),
        _dense(5120, 4096, 1024, 14336),
    ),
    "Gemma-7B": Shape(
        "gemma", 28, 3072, 256000, heads(16, 16, 256, feed_forward_length=24576),
        _dense(3072, 4096, 4096, 24576), tied=True,
    ),
    "Qwen3-235B-A22B": Shape(
        "qwen3moe", 94, 4096, 151936,
        heads(64, 4, 128, feed_forward_length=12288) | expert_keys(1536, 128, 8), _qwen3_235b,
    ),
    "Llama-2-13B": Shape(
        "llama", 40, 5120, 32000, heads(40, 40, 128, feed_forward_length=13824),
        _dense(5120, 5120, 5120, 13824),
    ),
    "GLM-4-9B": Shape(
        "glm4", 40, 4096, 151552, heads(32, 2, 128, feed_forward_length=13696), _glm4_9b
    ),
    "Kimi-K2": Shape(
        "deepseek2", 61, 7168, 163840,
        heads(64, 1, 576)
        | expert_keys(
            2048, 384, 8, expert_weights_scale=2.827, expert_gating_func=2, expert_weights_norm=True
        )
        | LATENT
        | {
            "attention.q_lora_rank": 1536, "leading_dense_block_count": 1,
            "expert_shared_count": 1, "feed_forward_length": 18432,
        },
        latent_block(64, 384, 1),
    ),
    "Granite-4.0-H-Small": Shape(
        "granitehybrid", 40, 4096, 100352,
        heads(32, [8 if il % 10 == 5 else 0 for il in range(40)], 128, feed_forward_length=768)
        | expert_keys(768, 72, 10, expert_shared_feed_forward_length=1536)
        | mamba_keys(8192, 128, 128, 1), _granite_4_small,
    ),
}  # fmt: skip
"""Models for ``write_shape``."""
