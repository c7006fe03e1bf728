"""How wide the intermediate results of each block are, from the tensor table."""

from typing import NamedTuple

from app.domain.model import ModelSpec
from app.estimate.weights import draft_blocks

# a short convolution's three projections, its input and its result
_SHORT_CONV = 5


class LayerDims(NamedTuple):
    """Widths of one block's intermediate results, elements per token.

    ``ff`` is the widest feed-forward of all used experts together, ``experts_out`` the summed
    results of the experts before they are added up, ``scan`` what a state-space layer holds and
    ``conv`` the width of its convolution.
    Without a gate (``is_gated`` false) the activation takes the place of its input. A block that
    only drafts (``is_draft``) has a place among the layers but is not computed. ``is_normed``
    says whether a norm comes before its attention. ``latent_q`` is Q before latent attention
    widens it: it leaves a hole that nothing wider fits.
    """

    q: int
    v: int
    n_head: int
    ff: int
    experts_out: int
    scan: int
    conv: int = 0
    is_gated: bool = True
    is_draft: bool = False
    is_normed: bool = True
    latent_q: int = 0


def layer_dims(spec: ModelSpec) -> tuple[LayerDims, ...]:
    """Read the widths of every block from the tensor table."""
    widths: list[dict[str, tuple[int, ...]]] = [{} for _ in range(spec.n_layer)]
    for tensor in spec.tensors:
        prefix, _, name = tensor.name.partition(".")
        layer, _, name = name.partition(".")
        if prefix == "blk" and layer.isdigit() and int(layer) < spec.n_layer and tensor.shape:
            widths[int(layer)][name] = tensor.shape
    drafts = draft_blocks(spec)
    return tuple(
        _dims(spec, layer, w)._replace(is_draft=layer in drafts) for layer, w in enumerate(widths)
    )


def _dims(spec: ModelSpec, layer: int, shapes: dict[str, tuple[int, ...]]) -> LayerDims:
    def width(name: str) -> int:
        return shapes.get(name, (0,))[0]

    n_head = spec.n_head[layer]
    experts = width("ffn_down_exps.weight") * spec.n_expert_used
    q = n_head * spec.n_embd_head_k[layer]
    # some models compute a gate beside Q, and latent attention has a Q of its own width
    rows = shapes.get("attn_q.weight") or shapes.get("attn_q_b.weight") or ()
    wide, is_latent = rows[1] if len(rows) > 1 else 0, spec.mla_kv_lora_rank is not None
    ff = max(experts, width("ffn_down_shexp.weight"), width("ffn_down.weight"))
    up = shapes.get("ffn_up.weight", ())
    return LayerDims(
        q=q if is_latent else max(q, wide),
        latent_q=wide if is_latent else 0,
        v=spec.n_head_kv[layer] * spec.n_embd_head_v[layer],
        n_head=n_head,
        ff=ff,
        experts_out=spec.n_expert_used * spec.n_embd if experts else 0,
        scan=_scan(spec, shapes),
        conv=_conv(shapes),
        is_normed="attn_norm.weight" in shapes,
        # gate and up may be one matrix
        is_gated="ffn_gate.weight" in shapes or len(up) < 2 or up[1] != ff,
    )


def _conv(shapes: dict[str, tuple[int, ...]]) -> int:
    kernels = (shapes.get(f"{name}.weight", (0, 0)) for name in ("ssm_conv1d", "shortconv.conv"))
    return max(kernel[1] for kernel in kernels)


def _scan(spec: ModelSpec, shapes: dict[str, tuple[int, ...]]) -> int:
    """Return projection, convolution and result of a state-space layer, elements per token."""
    if "shortconv.conv.weight" in shapes:
        return _SHORT_CONV * spec.n_embd
    projected, conv, out = (
        shapes.get(f"ssm_{name}.weight", (0, 0)) for name in ("in", "conv1d", "out")
    )
    return projected[1] + 2 * conv[1] + 2 * out[0] if projected[1] else 0
