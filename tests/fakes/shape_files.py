"""Sparse model files from published shapes, with what the shapes of several models share.

Shapes are those of the models' own configurations, in ggml order; tensor names and metadata as
llama.cpp's converter writes them (src/models/*.cpp).
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.fakes.model_tables import Sizes, Value
from tests.fakes.models import bits_q4_k_m, write_sparse

Table = Iterator[tuple[str, tuple[int, ...]]]


class Shape(NamedTuple):
    """One model: its metadata without ``<arch>.``, and the tensors of a block."""

    arch: str
    n_layer: int
    n_embd: int
    n_vocab: int
    values: dict[str, Value]
    block: Callable[[int], Table]
    tied: bool = False
    output_norm: str = "output_norm"
    output_bias: bool = False


def write_shape(path: Path, name: str, shape: Shape) -> Path:
    """Write header and tensor table of ``shape``, a model called ``name``."""
    own: dict[str, Value] = {
        "block_count": shape.n_layer,
        "embedding_length": shape.n_embd,
        "vocab_size": shape.n_vocab,
        "context_length": 131072,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.layer_norm_epsilon": 1e-5,
    }
    values: dict[str, Value] = {
        f"{shape.arch}.{key}": value for key, value in (own | shape.values).items()
    }
    values |= {"general.name": name, "tokenizer.ggml.model": "none"}
    sizes = Sizes(n_layer=shape.n_layer, n_vocab=shape.n_vocab)
    entries = [(n, s, bits_q4_k_m(sizes, n, s)) for n, s in _tensors(shape)]
    return write_sparse(path, shape.arch, values, entries)


def _tensors(shape: Shape) -> Table:
    yield "token_embd.weight", (shape.n_embd, shape.n_vocab)
    yield f"{shape.output_norm}.weight", (shape.n_embd,)
    if shape.output_bias:
        yield f"{shape.output_norm}.bias", (shape.n_embd,)
    if not shape.tied:
        yield "output.weight", (shape.n_embd, shape.n_vocab)
    for il in range(shape.n_layer):
        for name, size in shape.block(il):
            yield f"blk.{il}.{name}", size


def heads(n_head: int, n_head_kv: int | list[int], head: int, **more: Value) -> dict[str, Value]:
    return {
        "attention.head_count": n_head,
        "attention.head_count_kv": n_head_kv,
        "attention.key_length": head,
        "attention.value_length": head,
        "rope.dimension_count": head,
        "rope.freq_base": 10000.0,
        **more,
    }


def attention(n_embd: int, q: int, kv: int, *, bias: bool = False, norm: int = 0) -> Table:
    yield "attn_norm.weight", (n_embd,)
    for part, rows in (("q", q), ("k", kv), ("v", kv)):
        yield f"attn_{part}.weight", (n_embd, rows)
        if bias:
            yield f"attn_{part}.bias", (rows,)
    yield "attn_output.weight", (q, n_embd)
    for part in ("q", "k") if norm else ():
        yield f"attn_{part}_norm.weight", (norm,)


def forward(n_embd: int, n_ff: int, norm: str | None = "ffn_norm.weight") -> Table:
    if norm:
        yield norm, (n_embd,)
    yield "ffn_gate.weight", (n_embd, n_ff)
    yield "ffn_up.weight", (n_embd, n_ff)
    yield "ffn_down.weight", (n_ff, n_embd)


def experts(n_embd: int, n_ff: int, n_expert: int, shared: int = 0) -> Table:
    yield "ffn_gate_inp.weight", (n_embd, n_expert)
    yield "ffn_gate_exps.weight", (n_embd, n_ff, n_expert)
    yield "ffn_up_exps.weight", (n_embd, n_ff, n_expert)
    yield "ffn_down_exps.weight", (n_ff, n_embd, n_expert)
    if shared:
        yield "ffn_gate_shexp.weight", (n_embd, shared)
        yield "ffn_up_shexp.weight", (n_embd, shared)
        yield "ffn_down_shexp.weight", (shared, n_embd)


def expert_keys(n_ff: int, n_expert: int, n_used: int, **more: Value) -> dict[str, Value]:
    return {
        "expert_feed_forward_length": n_ff,
        "expert_count": n_expert,
        "expert_used_count": n_used,
        **more,
    }


def mamba_keys(inner: int, state: int, rank: int, group: int = 0) -> dict[str, Value]:
    keys: dict[str, Value] = {
        "ssm.conv_kernel": 4,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": rank,
    }
    return keys | ({"ssm.group_count": group} if group else {})
