"""Compute buffers by a model of what is alive at once, checked against dry runs.

A compute buffer is as large as the fullest moment of one prefill batch, so with ``u`` =
``n_ubatch`` rows of 4-byte values it is::

    inputs + max(feed-forward, attention, recurrence), or the logits where they are larger
    inputs        one mask per kind of cache: u · cells · 2 (flash attention) or 4 bytes,
                  without it also the positions of V: u · n_embd_v_gqa · 8
    feed-forward  3 · max(n_ff, n_used · n_ff_exp) + the residual stream
    attention     without flash attention the scores: n_head · cells; on a device also the
                  cache of one block, where that is kept in RAM (``offload_kqv`` off)
    logits        n_outputs · n_vocab

The residual stream counts 2 to 4 rows of ``n_embd`` and one of Q, depending on where the first
and last blocks lie. ``benchmarks/memory.py`` prints the residuals; ``ERROR_FRAC`` bounds them.
"""

from typing import NamedTuple

from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings, Switch
from app.estimate.kv import LayerCache, is_swa
from app.estimate.profile import ContextShape, EngineProfile, context_shape, swa_cells
from app.estimate.weights import HOST, WeightTable

# Share of the compute part that the model may be too low. Over 3,000 dry runs it was exact to
# 0.04 % in the median and never too low by more (benchmarks/memory.py).
ERROR_FRAC = 0.25
_F32 = 4
_FLASH_MASK, _PLAIN_MASK, _INDEX = 2, 4, 8
# GGML_SCHED_MAX_COPIES; GGML_OP_OFFLOAD_MIN_BATCH
_PIPELINE = 4
_OFFLOAD_BATCH = 32
# their graphs choose the rows for the logits behind the last block instead of inside it
_EVERY_ROW = frozenset(
    {
        "deepseek2",
        "gemma3n",
        "gemma4",
        "glm4moe",
        "gpt-oss",
        "mamba",
        "mamba2",
        "mimo2",
        "nemotron_h",
        "nemotron_h_moe",
        "qwen35",
        "qwen35moe",
        "qwen3next",
    }
)


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


class _Plan(NamedTuple):
    """Everything the size of one configuration's buffers depends on."""

    spec: ModelSpec
    dims: tuple[LayerDims, ...]
    settings: Settings
    profile: EngineProfile
    shape: ContextShape
    places: tuple[int, ...]
    visiting: tuple[int, ...]

    @property
    def row(self) -> int:
        """Bytes of one 4-byte value per token of a physical batch."""
        return self.shape.n_ubatch * _F32

    def layers(self, place: int) -> list[int]:
        """Return the blocks on one device."""
        return [i for i, p in enumerate(self.places[:-1]) if p == place]


def compute_buffers(
    spec: ModelSpec,
    dims: tuple[LayerDims, ...],
    settings: Settings,
    *,
    profile: EngineProfile,
    places: tuple[int, ...],
    host: WeightTable,
    offloads: tuple[bool, ...],
    caches: tuple[LayerCache, ...],
) -> list[int]:
    """Return the compute buffer per device and, last, in RAM, bytes.

    Args:
        spec: The model.
        dims: Result of ``layer_dims``.
        settings: Requested settings.
        profile: Engine switches.
        places: Device of each block and of the output layer.
        host: Weights as RAM holds them, for copies made by devices that compute for it.
        offloads: Per device, whether it computes big batches for layers in RAM.
        caches: Cache of every block.
    """
    shape = context_shape(settings, profile)
    visiting = _visiting(settings, places, caches)
    plan = _Plan(spec, dims, settings, profile, shape, places, visiting)
    copies = _pipeline_copies(plan, len(offloads))
    sizes = [_device(plan, i, copies) for i in range(len(offloads))]
    if offloads and offloads[0]:
        sizes[0] = max(sizes[0], _offloaded(plan, host))
    return [*sizes, _host(plan, copies)]


def _pipeline_copies(plan: _Plan, n_devices: int) -> int:
    """Return how many batches are in flight: llama.cpp overlaps devices when all is on them."""
    all_on = (
        HOST not in plan.places
        and plan.settings.n_cpu_moe == 0
        and not plan.settings.override_tensor
        and plan.settings.offload_kqv is Switch.ON
    )
    return _PIPELINE if n_devices > 1 and all_on else 1


def _visiting(
    settings: Settings, places: tuple[int, ...], caches: tuple[LayerCache, ...]
) -> tuple[int, ...]:
    """Return per block what its device copies of a cache that is kept in RAM, bytes.

    With flash attention the next block's keys arrive while those of the last are still there.
    """
    if settings.offload_kqv is Switch.ON:
        return (0,) * len(caches)
    halves = 2 if settings.flash_attn is FlashAttn.OFF else 3
    return tuple(
        0 if place == HOST else cache.kv_bytes * halves // 2 + cache.state_bytes
        for place, cache in zip(places, caches, strict=False)
    )


def _device(plan: _Plan, place: int, copies: int) -> int:
    layers = plan.layers(place)
    if not layers and plan.places[-1] != place:
        return 0
    if not layers and copies == 1 and _is_short(plan.spec, plan.spec.n_layer - 1):
        return _logits(plan)
    is_first = plan.places[0] == place
    streams = 2 if copies == 1 else 2 + copies * (1 if is_first else 2)
    work = _arriving(plan, min(layers, default=plan.spec.n_layer))
    for layer in layers:
        d = plan.dims[layer]
        if layer < plan.settings.n_cpu_moe and d.experts_out:
            d = _without_experts(d, is_first=is_first)
        n_rows = streams + (1 if d.experts_out and not is_first else 0)
        with_q = is_first or copies > 1 or d.experts_out
        work = max(work, _layer(plan, d, layer, n_rows, with_q=bool(with_q)))
    total = _inputs(plan, layers) * copies + work
    return max(total, _logits(plan)) if plan.places[-1] == place else total


def _arriving(plan: _Plan, first: int) -> int:
    """Return what comes from the block before ``first``, bytes: experts are added up here."""
    rows = 2 * plan.spec.n_embd
    in_ram = plan.places[first - 1] == HOST or first - 1 < plan.settings.n_cpu_moe
    if first > 0 and in_ram and not _is_short(plan.spec, first - 1):
        rows += plan.dims[first - 1].experts_out
    return rows * plan.row


def _host(plan: _Plan, copies: int) -> int:
    every = list(range(plan.spec.n_layer))
    n_rows = 2 if copies == 1 else 1 + copies
    total = _inputs(plan, every) * copies + n_rows * plan.spec.n_embd * plan.row
    layers = plan.layers(HOST)
    if layers:
        work = max(_layer(plan, plan.dims[i], i, 3, with_q=True) for i in layers)
        total = max(total, _inputs(plan, every) + work)
    if _attends_in_ram(plan):
        work = max(_attention(plan, plan.dims[i], i, 2 * plan.spec.n_embd) for i in every)
        total = max(total, _inputs(plan, every) + work * plan.row)
    for layer in range(min(plan.settings.n_cpu_moe, plan.spec.n_layer)):
        if plan.dims[layer].experts_out:
            work = _feed_forward(plan.dims[layer]) + 3 * plan.spec.n_embd
            total = max(total, _inputs(plan, every) + work * plan.row)
    if plan.places[-1] == HOST:
        total = max(total, _logits(plan) + plan.spec.n_embd * plan.row)
    return total


def _layer(plan: _Plan, d: LayerDims, layer: int, n_rows: int, *, with_q: bool) -> int:
    """Return what one block keeps alive at its fullest moment, bytes."""
    residual = n_rows * plan.spec.n_embd
    is_hybrid = plan.spec.recurrent is not None
    q = d.q if with_q and not is_hybrid else 0
    has_forward = (d.ff or d.experts_out) and not _is_short(plan.spec, layer)
    feed_forward = _feed_forward(d) + residual + q if has_forward else 0
    attention = _attention(plan, d, layer, residual) * plan.row + plan.visiting[layer]
    work = max(feed_forward * plan.row, attention)
    return max(work, _recurrence(plan, d, n_rows)) if d.scan else work


def _recurrence(plan: _Plan, d: LayerDims, n_rows: int) -> int:
    spec = plan.spec
    # with batches in flight (more rows than 3) the parts of several overlap, but for a hybrid's:
    # its masks lie between them
    overlap = 1 if any(spec.n_head) else 1 + (n_rows - 2) // _PIPELINE
    rows = d.scan * overlap + (n_rows - 2 + any(spec.n_head)) * spec.n_embd
    states = spec.recurrent.n_embd_s + 3 * spec.recurrent.n_embd_r if spec.recurrent else 0
    return rows * plan.row + states * plan.shape.n_seq * _F32


def _feed_forward(d: LayerDims) -> int:
    # a result wider than the two freed halves cannot take their place
    extra = d.experts_out if d.experts_out > 2 * d.ff else 0
    return 3 * d.ff + extra


def _without_experts(d: LayerDims, *, is_first: bool) -> LayerDims:
    """Return the widths left on a device when the experts' results come from RAM."""
    # beside copies from another device a wide result leaves a hole of half its size
    has_hole = not is_first and d.experts_out > 2 * d.ff
    return d._replace(ff=0, experts_out=d.experts_out * 3 // 2 if has_hole else d.experts_out)


def _attention(plan: _Plan, d: LayerDims, layer: int, residual: int) -> int:
    if not _attends(plan.spec, layer):
        return 0
    if plan.settings.flash_attn is not FlashAttn.OFF:
        return residual + 2 * d.q + 2 * d.v
    return residual + 2 * d.q + d.n_head * _cells(plan, window=is_swa(plan.spec, layer))


def _inputs(plan: _Plan, layers: list[int]) -> int:
    """Return masks and cache positions of the kinds of cache that ``layers`` use, bytes."""
    spec, flash = plan.spec, plan.settings.flash_attn is not FlashAttn.OFF
    widths: dict[bool, int] = {}
    for i in layers:
        if _attends(spec, i):
            window = is_swa(spec, i)
            widths[window] = max(widths.get(window, 0), plan.dims[i].v)
    total = 0
    for window, width in widths.items():
        mask = _FLASH_MASK if flash else _PLAIN_MASK
        total += _cells(plan, window=window) * mask + (0 if flash else width * _INDEX)
    return total * plan.shape.n_ubatch


def _attends_in_ram(plan: _Plan) -> bool:
    """Return whether attention may follow a cache kept in RAM, as it does in hybrids.

    Where devices hold other blocks it does not, so both places are counted.
    """
    return plan.spec.recurrent is not None and plan.settings.offload_kqv is Switch.OFF


def _is_short(spec: ModelSpec, layer: int) -> bool:
    """Return whether behind its attention ``layer`` goes on with the rows of wanted logits."""
    return layer == spec.n_layer - 1 and spec.arch not in _EVERY_ROW


def _attends(spec: ModelSpec, layer: int) -> bool:
    """Return whether ``layer`` reads a cache, its own or an earlier layer's."""
    shares = spec.kv_shared_from is not None and layer >= spec.kv_shared_from
    return spec.n_head_kv[layer] > 0 or (shares and spec.n_head[layer] > 0)


def _cells(plan: _Plan, *, window: bool) -> int:
    n_cells = plan.shape.n_cells
    return swa_cells(plan.shape, plan.spec.n_swa, plan.profile) if window else n_cells


def _logits(plan: _Plan) -> int:
    return plan.shape.n_outputs * (plan.spec.n_vocab + plan.spec.n_embd) * _F32


def _offloaded(plan: _Plan, host: WeightTable) -> int:
    """Return what the first device needs to compute prefill for blocks that lie in RAM."""
    experts = range(min(plan.settings.n_cpu_moe, plan.spec.n_layer))
    far = [*plan.layers(HOST), *experts]
    if not far:
        return 0
    work = max(_feed_forward(plan.dims[i]) for i in far) + 3 * plan.spec.n_embd
    copied: int = max(host.blocks[i].largest_bytes for i in far)
    if plan.places[-1] == HOST and plan.shape.n_outputs >= _OFFLOAD_BATCH:
        copied = max(copied, host.largest_output + _logits(plan) - work * plan.row)
    return _inputs(plan, plan.layers(0)) + work * plan.row + copied


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
