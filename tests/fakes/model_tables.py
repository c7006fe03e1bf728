"""Tensor tables and metadata of model architectures, as llama.cpp's loader expects them.

Shapes are in ggml order (innermost first). Source: ``load_arch_tensors`` in src/models/*.cpp.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

Table = Iterator[tuple[str, tuple[int, ...]]]
Value = int | float | bool | str | list[int] | list[bool]


class Sizes(NamedTuple):
    """Dimensions of a model; those an architecture has no use for are ignored."""

    n_layer: int = 4
    n_embd: int = 128
    n_head: int = 4
    n_head_kv: int = 2
    n_embd_head: int = 32
    n_ff: int = 128
    n_vocab: int = 320
    n_ctx_train: int = 4096
    n_expert: int = 8
    n_expert_used: int = 2
    n_ff_exp: int = 64
    n_swa: int = 128
    n_draft: int = 0


class Arch(NamedTuple):
    """How to build one architecture.

    Attributes:
        block: Tensors of block ``il``, without ``blk.N.``.
        metadata: Its own keys, without ``<arch>.``.
        tied: Whether the output layer is the token embedding.
        output_norm: Name of the last norm.
    """

    block: Callable[[Sizes, int], Table]
    metadata: Callable[[Sizes], dict[str, Value]]
    tied: bool = False
    output_norm: str = "output_norm.weight"


def table(arch: str, sizes: Sizes) -> Table:
    """Yield every tensor of the model: name and shape."""
    build = ARCHS[arch]
    yield "token_embd.weight", (sizes.n_embd, sizes.n_vocab)
    yield build.output_norm, (sizes.n_embd,)
    if not build.tied:
        yield "output.weight", (sizes.n_embd, sizes.n_vocab)
    if arch == "gemma4":
        yield from _gemma4_shared(sizes)
    for il in range(sizes.n_layer):
        for name, shape in build.block(sizes, il):
            yield f"blk.{il}.{name}", shape


def metadata(arch: str, sizes: Sizes) -> dict[str, Value]:
    """Return the architecture's keys, without ``<arch>.``."""
    values: dict[str, Value] = {
        "block_count": sizes.n_layer,
        "context_length": sizes.n_ctx_train,
        "embedding_length": sizes.n_embd,
        "feed_forward_length": sizes.n_ff,
        "attention.layer_norm_rms_epsilon": 1e-6,
    }
    return values | ARCHS[arch].metadata(sizes)


def _heads(s: Sizes) -> dict[str, Value]:
    return {
        "attention.head_count": s.n_head,
        "attention.head_count_kv": s.n_head_kv,
        "attention.key_length": s.n_embd_head,
        "attention.value_length": s.n_embd_head,
        "rope.freq_base": 10000.0,
        "rope.dimension_count": s.n_embd_head,
    }


def _experts(s: Sizes) -> dict[str, Value]:
    return {
        "expert_count": s.n_expert,
        "expert_used_count": s.n_expert_used,
        "expert_feed_forward_length": s.n_ff_exp,
    }


def _attention(s: Sizes, *, bias: bool = False, norm: bool = False) -> Table:
    q, kv = s.n_head * s.n_embd_head, s.n_head_kv * s.n_embd_head
    yield "attn_norm.weight", (s.n_embd,)
    yield "attn_q.weight", (s.n_embd, q)
    yield "attn_k.weight", (s.n_embd, kv)
    yield "attn_v.weight", (s.n_embd, kv)
    yield "attn_output.weight", (q, s.n_embd)
    if bias:
        yield "attn_q.bias", (q,)
        yield "attn_k.bias", (kv,)
        yield "attn_v.bias", (kv,)
    if norm:
        yield "attn_q_norm.weight", (s.n_embd_head,)
        yield "attn_k_norm.weight", (s.n_embd_head,)


def _feed_forward(s: Sizes, norm: str = "ffn_norm.weight") -> Table:
    yield norm, (s.n_embd,)
    yield "ffn_gate.weight", (s.n_embd, s.n_ff)
    yield "ffn_up.weight", (s.n_embd, s.n_ff)
    yield "ffn_down.weight", (s.n_ff, s.n_embd)


def _moe(s: Sizes) -> Table:
    yield "ffn_gate_inp.weight", (s.n_embd, s.n_expert)
    yield "ffn_gate_exps.weight", (s.n_embd, s.n_ff_exp, s.n_expert)
    yield "ffn_up_exps.weight", (s.n_embd, s.n_ff_exp, s.n_expert)
    yield "ffn_down_exps.weight", (s.n_ff_exp, s.n_embd, s.n_expert)


def _shared_expert(s: Sizes) -> Table:
    yield "ffn_gate_shexp.weight", (s.n_embd, s.n_ff_exp)
    yield "ffn_up_shexp.weight", (s.n_embd, s.n_ff_exp)
    yield "ffn_down_shexp.weight", (s.n_ff_exp, s.n_embd)


def _llama(s: Sizes, _il: int) -> Table:
    yield from _attention(s)
    yield from _feed_forward(s)


def _qwen2(s: Sizes, _il: int) -> Table:
    yield from _attention(s, bias=True)
    yield from _feed_forward(s)


def _qwen3(s: Sizes, _il: int) -> Table:
    yield from _attention(s, norm=True)
    yield from _feed_forward(s)


def _qwen3moe(s: Sizes, _il: int) -> Table:
    yield from _attention(s, norm=True)
    yield "ffn_norm.weight", (s.n_embd,)
    yield from _moe(s)


def _gemma2(s: Sizes, _il: int) -> Table:
    yield from _attention(s)
    yield "post_attention_norm.weight", (s.n_embd,)
    yield from _feed_forward(s)
    yield "post_ffw_norm.weight", (s.n_embd,)


def _gemma3(s: Sizes, il: int) -> Table:
    yield from _gemma2(s, il)
    yield "attn_q_norm.weight", (s.n_embd_head,)
    yield "attn_k_norm.weight", (s.n_embd_head,)


def _gemma4_windowed(s: Sizes) -> list[bool]:
    return [il % 3 != 2 for il in range(s.n_layer)]


def _gemma4(s: Sizes, il: int) -> Table:
    half = s._replace(n_embd_head=s.n_embd_head // 2)
    yield from _gemma3(half if _gemma4_windowed(s)[il] else s, il)
    yield "inp_gate.weight", (s.n_embd, 32)
    yield "proj.weight", (32, s.n_embd)
    yield "post_norm.weight", (s.n_embd,)


def _gemma4_shared(s: Sizes) -> Table:
    yield "per_layer_token_embd.weight", (32 * s.n_layer, s.n_vocab)
    yield "per_layer_model_proj.weight", (s.n_embd, 32 * s.n_layer)
    yield "per_layer_proj_norm.weight", (32,)
    yield "rope_freqs.weight", (s.n_embd_head // 2,)


def _gemma4_metadata(s: Sizes) -> dict[str, Value]:
    own: dict[str, Value] = {
        "embedding_length_per_layer_input": 32,
        "attention.sliding_window": s.n_swa,
        "attention.sliding_window_pattern": _gemma4_windowed(s),
        # The last layers with a cache of their own must be one windowed and one full layer.
        "attention.shared_kv_layers": s.n_layer - 3 * max(1, s.n_layer // 6),
        "attention.key_length_swa": s.n_embd_head // 2,
        "attention.value_length_swa": s.n_embd_head // 2,
        "rope.dimension_count_swa": s.n_embd_head // 2,
        "rope.freq_base_swa": 10000.0,
    }
    return _heads(s) | own


def _gpt_oss(s: Sizes, _il: int) -> Table:
    yield from _attention(s, bias=True)
    yield "attn_output.bias", (s.n_embd,)
    yield "attn_sinks.weight", (s.n_head,)
    yield "post_attention_norm.weight", (s.n_embd,)
    yield from _moe(s)
    yield "ffn_gate_inp.bias", (s.n_expert,)
    yield "ffn_gate_exps.bias", (s.n_ff_exp, s.n_expert)
    yield "ffn_up_exps.bias", (s.n_ff_exp, s.n_expert)
    yield "ffn_down_exps.bias", (s.n_embd, s.n_expert)


_Q_RANK, _KV_RANK, _ROPE, _NOPE = 32, 64, 32, 32


def _deepseek2(s: Sizes, il: int) -> Table:
    """MLA with the latent cache; the first block is dense."""
    value = s.n_embd_head
    yield "attn_norm.weight", (s.n_embd,)
    yield "attn_q_a.weight", (s.n_embd, _Q_RANK)
    yield "attn_q_a_norm.weight", (_Q_RANK,)
    yield "attn_q_b.weight", (_Q_RANK, s.n_head * (_NOPE + _ROPE))
    yield "attn_kv_a_mqa.weight", (s.n_embd, _KV_RANK + _ROPE)
    yield "attn_kv_a_norm.weight", (_KV_RANK,)
    yield "attn_k_b.weight", (_NOPE, _KV_RANK, s.n_head)
    yield "attn_v_b.weight", (_KV_RANK, value, s.n_head)
    yield "attn_output.weight", (s.n_head * value, s.n_embd)
    if il == 0:
        yield from _feed_forward(s)
        return
    yield "ffn_norm.weight", (s.n_embd,)
    yield from _moe(s)
    yield from _shared_expert(s)


def _deepseek2_metadata(s: Sizes) -> dict[str, Value]:
    own: dict[str, Value] = {
        "attention.head_count": s.n_head,
        "attention.head_count_kv": 1,
        "attention.key_length": _KV_RANK + _ROPE,
        "attention.value_length": _KV_RANK,
        "attention.key_length_mla": _NOPE + _ROPE,
        "attention.value_length_mla": s.n_embd_head,
        "attention.q_lora_rank": _Q_RANK,
        "attention.kv_lora_rank": _KV_RANK,
        "rope.dimension_count": _ROPE,
        "leading_dense_block_count": 1,
        "expert_shared_count": 1,
        "expert_weights_scale": 1.0,
    }
    return own | _experts(s)


_D_CONV, _D_STATE, _N_GROUP = 4, 16, 2


def _d_inner(s: Sizes) -> int:
    return 2 * s.n_embd


def _mamba_state(s: Sizes) -> Table:
    inner, rank = _d_inner(s), s.n_head
    yield "attn_norm.weight", (s.n_embd,)
    yield "ssm_in.weight", (s.n_embd, 2 * inner)
    yield "ssm_conv1d.weight", (_D_CONV, inner)
    yield "ssm_conv1d.bias", (inner,)
    yield "ssm_x.weight", (inner, rank + 2 * _D_STATE)
    yield "ssm_dt.weight", (rank, inner)
    yield "ssm_dt.bias", (inner,)
    yield "ssm_a", (_D_STATE, inner)
    yield "ssm_d", (inner,)
    yield "ssm_out.weight", (inner, s.n_embd)


def _mamba2_state(s: Sizes) -> Table:
    inner, heads = _d_inner(s), s.n_head
    conv = inner + 2 * _N_GROUP * _D_STATE
    yield "ssm_in.weight", (s.n_embd, inner + conv + heads)
    yield "ssm_conv1d.weight", (_D_CONV, conv)
    yield "ssm_conv1d.bias", (conv,)
    yield "ssm_dt.bias", (heads,)
    yield "ssm_a", (1, heads)
    yield "ssm_d", (1, heads)
    yield "ssm_norm.weight", (inner // _N_GROUP, _N_GROUP)
    yield "ssm_out.weight", (inner, s.n_embd)


def _state_metadata(s: Sizes, n_group: int) -> dict[str, Value]:
    values: dict[str, Value] = {
        "ssm.conv_kernel": _D_CONV,
        "ssm.inner_size": _d_inner(s),
        "ssm.state_size": _D_STATE,
        "ssm.time_step_rank": s.n_head,
    }
    return values | ({"ssm.group_count": n_group} if n_group else {})


def _mamba(s: Sizes, _il: int) -> Table:
    yield from _mamba_state(s)


def _mamba2(s: Sizes, _il: int) -> Table:
    yield "attn_norm.weight", (s.n_embd,)
    yield from _mamba2_state(s)


def _pure_metadata(n_group: int) -> Callable[[Sizes], dict[str, Value]]:
    return lambda s: {"attention.head_count": 0} | _state_metadata(s, n_group)


def _hybrid_heads(s: Sizes) -> dict[str, Value]:
    """Every second block, from the second on, has attention; the others have state."""
    return _heads(s) | {
        "attention.head_count_kv": [s.n_head_kv if il % 2 else 0 for il in range(s.n_layer)]
    }


def _jamba(s: Sizes, il: int) -> Table:
    if il % 2:
        yield from _attention(s)
    else:
        yield from _mamba_state(s)
        yield "ssm_dt_norm.weight", (s.n_head,)
        yield "ssm_b_norm.weight", (_D_STATE,)
        yield "ssm_c_norm.weight", (_D_STATE,)
    yield from _feed_forward(s)


def _granite_hybrid(s: Sizes, il: int) -> Table:
    yield from _attention(s) if il % 2 else _mamba2(s, il)
    yield from _feed_forward(s)


def _falcon_h1(s: Sizes, _il: int) -> Table:
    yield from _attention(s)
    yield from _mamba2_state(s)
    yield from _feed_forward(s, norm="ffn_norm")


def _lfm2(s: Sizes, il: int) -> Table:
    if il % 2:
        yield from _attention(s, norm=True)
    else:
        yield "attn_norm.weight", (s.n_embd,)
        yield "shortconv.conv.weight", (3, s.n_embd)
        yield "shortconv.in_proj.weight", (s.n_embd, 3 * s.n_embd)
        yield "shortconv.out_proj.weight", (s.n_embd, s.n_embd)
    yield from _feed_forward(s)


def _qwen3next(s: Sizes, il: int) -> Table:
    """Gated delta net in every block but each second one, which has gated attention."""
    q, kv = s.n_head * s.n_embd_head, s.n_head_kv * s.n_embd_head
    if il % 2:
        yield "attn_norm.weight", (s.n_embd,)
        yield "attn_q.weight", (s.n_embd, 2 * q)
        yield "attn_k.weight", (s.n_embd, kv)
        yield "attn_v.weight", (s.n_embd, kv)
        yield "attn_output.weight", (q, s.n_embd)
        yield "attn_q_norm.weight", (s.n_embd_head,)
        yield "attn_k_norm.weight", (s.n_embd_head,)
    else:
        inner = s.n_head * _D_STATE
        keys = 2 * _N_GROUP * _D_STATE
        yield "attn_norm.weight", (s.n_embd,)
        yield "attn_qkv.weight", (s.n_embd, keys + inner)
        yield "attn_gate.weight", (s.n_embd, inner)
        yield "ssm_conv1d.weight", (_D_CONV, keys + inner)
        yield "ssm_dt.bias", (s.n_head,)
        yield "ssm_a", (s.n_head,)
        yield "ssm_ba.weight", (s.n_embd, 2 * s.n_head)
        yield "ssm_norm.weight", (_D_STATE,)
        yield "ssm_out.weight", (inner, s.n_embd)
    yield "post_attention_norm.weight", (s.n_embd,)
    yield from _moe(s)
    yield from _shared_expert(s)
    yield "ffn_gate_inp_shexp.weight", (s.n_embd,)


def _qwen3next_metadata(s: Sizes) -> dict[str, Value]:
    own: dict[str, Value] = {
        "ssm.inner_size": s.n_head * _D_STATE,
        "full_attention_interval": 2,
        "expert_shared_feed_forward_length": s.n_ff_exp,
    }
    return _heads(s) | _experts(s) | _state_metadata(s, _N_GROUP) | own


def _window(s: Sizes) -> dict[str, Value]:
    return _heads(s) | {"attention.sliding_window": s.n_swa}


ARCHS: dict[str, Arch] = {
    "llama": Arch(_llama, _heads),
    "qwen2": Arch(_qwen2, _heads),
    "qwen3": Arch(_qwen3, _heads),
    "qwen3moe": Arch(_qwen3moe, lambda s: _heads(s) | _experts(s)),
    "gemma2": Arch(_gemma2, _window, tied=True),
    "gemma3": Arch(_gemma3, _window, tied=True),
    "gemma4": Arch(_gemma4, _gemma4_metadata, tied=True),
    "gpt-oss": Arch(_gpt_oss, lambda s: _window(s) | _experts(s)),
    "deepseek2": Arch(_deepseek2, _deepseek2_metadata),
    "mamba": Arch(_mamba, _pure_metadata(0)),
    "mamba2": Arch(_mamba2, _pure_metadata(_N_GROUP)),
    "jamba": Arch(_jamba, lambda s: _hybrid_heads(s) | _state_metadata(s, 0)),
    "granitehybrid": Arch(
        _granite_hybrid, lambda s: _hybrid_heads(s) | _state_metadata(s, _N_GROUP)
    ),
    "falcon-h1": Arch(_falcon_h1, lambda s: _heads(s) | _state_metadata(s, _N_GROUP)),
    "lfm2": Arch(
        _lfm2,
        lambda s: _hybrid_heads(s) | {"shortconv.l_cache": 3},
        tied=True,
        output_norm="token_embd_norm.weight",
    ),
    "qwen3next": Arch(_qwen3next, _qwen3next_metadata),
}
"""The architectures ``make_model`` can build, by llama.cpp's name."""
