"""How wide the intermediate results of each block are, from the tensor table."""

from typing import NamedTuple

from app.domain.model import ModelSpec


class LayerDims(NamedTuple):
    """Widths of one block's intermediate results, elements per token.

    ``ff`` is the widest feed-forward of all used experts together, ``experts_out`` the summed
    results of the experts before they are added up, ``scan`` what a state-space layer holds.
    """

    q: int
    v: int
    n_head: int
    ff: int
    experts_out: int
    scan: int


def layer_dims(spec: ModelSpec) -> tuple[LayerDims, ...]:
    """Read the widths of every block from the tensor table."""
    widths: list[dict[str, tuple[int, ...]]] = [{} for _ in range(spec.n_layer)]
    for tensor in spec.tensors:
        prefix, _, name = tensor.name.partition(".")
        layer, _, name = name.partition(".")
        if prefix == "blk" and layer.isdigit() and int(layer) < spec.n_layer and tensor.shape:
            widths[int(layer)][name] = tensor.shape
    return tuple(_dims(spec, layer, w) for layer, w in enumerate(widths))


def _dims(spec: ModelSpec, layer: int, shapes: dict[str, tuple[int, ...]]) -> LayerDims:
    def width(name: str) -> int:
        return shapes.get(name, (0,))[0]

    n_head = spec.n_head[layer]
    experts = width("ffn_down_exps.weight") * spec.n_expert_used
    q = n_head * spec.n_embd_head_k[layer]
    # some models compute a gate beside Q, and latent attention has a Q of its own width
    rows = shapes.get("attn_q.weight") or shapes.get("attn_q_b.weight") or ()
    return LayerDims(
        q=max(q, rows[1]) if len(rows) > 1 and spec.mla_kv_lora_rank is None else q,
        v=spec.n_head_kv[layer] * spec.n_embd_head_v[layer],
        n_head=n_head,
        ff=max(experts, width("ffn_down_shexp.weight"), width("ffn_down.weight")),
        experts_out=spec.n_expert_used * spec.n_embd if experts else 0,
        scan=_scan(shapes),
    )


def _scan(shapes: dict[str, tuple[int, ...]]) -> int:
    """Return projection, convolution and result of a state-space layer, elements per token."""
    projected, conv, out = (
        shapes.get(f"ssm_{name}.weight", (0, 0)) for name in ("in", "conv1d", "out")
    )
    return projected[1] + 2 * conv[1] + 2 * out[0] if projected[1] else 0
