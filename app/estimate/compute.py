"""Compute buffers by a model of what is alive at once, checked against dry runs.

A compute buffer is as large as the fullest moment of one prefill batch, so with ``u`` =
``n_ubatch`` rows of 4-byte values it is::

    inputs + max(feed-forward, attention, recurrence), or the logits where they are larger
    inputs        one mask per kind of cache: u · cells · 2 (flash attention) or 4 bytes,
                  without it also the positions of V: u · n_embd_v_gqa · 8
    feed-forward  3 · max(n_ff, n_used · n_ff_exp) + the residual stream
    attention     without flash attention the scores: n_head · cells; on a device also the
                  cache of one block, where that is kept in RAM (``app.estimate.visiting``)
    logits        n_outputs · n_vocab

The residual stream counts 2 to 4 rows of ``n_embd`` and one of Q, depending on where the first
and last blocks lie. ``benchmarks/memory.py`` prints the residuals; ``ERROR_FRAC`` bounds them.
"""

from typing import NamedTuple

from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings, Switch
from app.estimate.crossing import in_flight
from app.estimate.graphs import EVERY_ROW, ROWS_LATE, STATES_LATE
from app.estimate.kv import LayerCache, is_swa
from app.estimate.overridden import InRam
from app.estimate.profile import ContextShape, EngineProfile, context_shape, swa_cells
from app.estimate.visiting import attends_in_ram, visiting_bytes
from app.estimate.weights import HOST, WeightTable
from app.estimate.widths import LayerDims

# Share of the compute part that the model may be too low. Over 21,000 dry runs it was exact to
# 0.03 % in the median, and lower by more in one hybrid only (docs/benchmarks.md, unseen shapes).
ERROR_FRAC = 0.25
_F32 = 4
# blocks from which on copies of a cache leave holes
_CROWDED = 3
_FLASH_MASK, _PLAIN_MASK, _INDEX = 2, 4, 8
# GGML_SCHED_MAX_COPIES; GGML_OP_OFFLOAD_MIN_BATCH
_PIPELINE = 4
_OFFLOAD_BATCH = 32


class _Plan(NamedTuple):
    """Everything the size of one configuration's buffers depends on."""

    spec: ModelSpec
    dims: tuple[LayerDims, ...]
    settings: Settings
    profile: EngineProfile
    shape: ContextShape
    places: tuple[int, ...]
    visiting: tuple[int, ...]
    away: frozenset[int]
    in_ram: InRam
    kv: tuple[int, ...]
    blocks: dict[int, list[int]]

    @property
    def row(self) -> int:
        """Bytes of one 4-byte value per token of a physical batch."""
        return self.shape.n_ubatch * _F32

    def layers(self, place: int) -> list[int]:
        """Return the blocks that one device computes."""
        return self.blocks.get(place, [])

    @property
    def last(self) -> int:
        """The last block that is computed."""
        return max(blocks[-1] for blocks in self.blocks.values())


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
    in_ram: InRam,
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
        in_ram: Parts of blocks that the user's rules keep in RAM.
    """
    shape = context_shape(settings, profile)
    kept = frozenset(range(min(settings.n_cpu_moe, spec.n_layer))) - in_ram.experts_out
    far = in_ram.experts | kept
    normed = frozenset(i for i, d in enumerate(dims) if d.is_normed)
    away = attends_in_ram(spec, settings, frozenset(i for i, d in enumerate(dims) if d.experts_out))
    visiting = visiting_bytes(spec, settings, places, caches, far, normed, away)
    in_ram, kv = in_ram._replace(experts=far), tuple(c.kv_bytes for c in caches)
    blocks: dict[int, list[int]] = {}
    for layer, place in enumerate(places[:-1]):
        if not dims[layer].is_draft:
            blocks.setdefault(place, []).append(layer)
    plan = _Plan(spec, dims, settings, profile, shape, places, visiting, away, in_ram, kv, blocks)
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


def _device(plan: _Plan, place: int, copies: int) -> int:
    layers = plan.layers(place)
    guests = [i for p, i in plan.in_ram.guests if p == place]
    if not layers and plan.places[-1] != place and not guests:
        return 0
    has_all_rows = plan.spec.arch in ROWS_LATE and plan.last == plan.spec.n_layer - 1
    if not layers and not guests and copies == 1 and not has_all_rows:
        return _logits(plan)
    is_first, is_alone = plan.places[0] == place, len(layers) == 1 and copies == 1
    streams = 2 if copies == 1 else 2 + copies * (1 if is_first else 2)
    first, behind = min(layers, default=plan.spec.n_layer), 0
    # the last block that reads the masks; they are gone before its feed-forward
    reader = max((i for i in layers if _attends(plan.spec, i) and i not in plan.away), default=-1)
    work = max(_arriving(plan, first), _border(plan, first))
    for layer in guests:
        rows = _feed_forward(plan.dims[layer]) + 3 * plan.spec.n_embd + 2 * plan.dims[layer].q
        work = max(work, rows * plan.row)
    if is_alone and plan.visiting[first]:
        work = max(work, plan.visiting[first] + work - 2 * plan.spec.n_embd * plan.row)
    for layer in layers:
        d = plan.dims[layer]
        is_bare = is_first or (is_alone and layer in plan.in_ram.experts)
        if layer in plan.in_ram.experts and d.experts_out:
            d = _without_experts(d, has_hole=not is_bare)
        elif layer in plan.in_ram.feed_forward and not d.experts_out:
            d = d._replace(ff=0)
        if is_alone:
            # no other block's K and V beside its own, and less of Q beside a copied cache
            d = d._replace(v=0, q=d.q * 3 // 4 if plan.visiting[layer] else d.q)
        n_rows = streams + (1 if d.experts_out and not is_bare else 0)
        with_q = is_first or copies > 1 or (d.experts_out and not is_bare)
        forward, attention = _layer(plan, d, layer, n_rows, with_q=bool(with_q))
        if copies > 1 or layer < reader:
            work = max(work, forward, attention)
        else:
            behind = max(behind, forward)
            work = max(work, attention)
    work += in_flight(plan.spec, plan.dims, layers, copies) * plan.row
    masks = _inputs(plan, [i for i in layers if i not in plan.away])
    total = max(masks * copies + work, behind)
    return max(total, _logits(plan)) if plan.places[-1] == place else total


def _arriving(plan: _Plan, first: int) -> int:
    """Return what comes from the block before ``first``, bytes: experts are added up here."""
    rows = 2 * plan.spec.n_embd
    in_ram = plan.places[first - 1] == HOST or first - 1 in plan.in_ram.experts
    if first > 0 and in_ram and not _is_short(plan, first - 1):
        rows += plan.dims[first - 1].experts_out
    return rows * plan.row


def _border(plan: _Plan, first: int) -> int:
    """Return what a device computes for the block in RAM before ``first``, bytes.

    A recurrent block collects its states early; llama.cpp then runs the attention between them
    and it on the device, which copies that block's cache and mask.
    """
    recurrent = plan.spec.recurrent
    if recurrent is None or first not in recurrent.layers or plan.spec.arch in STATES_LATE:
        return 0
    border = first - 1
    if first == 0 or plan.places[border] != HOST:
        return 0
    if _attends(plan.spec, first) or not _attends(plan.spec, border) or border in plan.away:
        return 0
    # Q and the result; K and V of the batch stay in RAM
    rows = _attention(plan, plan.dims[border]._replace(v=0), border, 0)
    mask = 0 if any(_attends(plan.spec, i) for i in plan.layers(plan.places[first])) else border
    masks = _inputs(plan, [mask]) if mask else 0
    return plan.kv[border] + rows * plan.row + masks


def _host(plan: _Plan, copies: int) -> int:
    every = [i for i, d in enumerate(plan.dims) if not d.is_draft]
    inputs = _inputs(plan, every)
    n_rows = 2 if copies == 1 else 1 + copies
    total = inputs * copies + n_rows * plan.spec.n_embd * plan.row
    if plan.spec.recurrent is not None and plan.settings.offload_kqv is Switch.OFF:
        # with the states in RAM, the convolution's input comes here, too
        conv = max(d.conv for d in plan.dims)
        total = max(total, inputs * copies + (plan.spec.n_embd + conv) * plan.row)
    layers = plan.layers(HOST)
    if layers:
        work = max(max(_layer(plan, plan.dims[i], i, 3, with_q=True)) for i in layers)
        total = max(total, inputs + work)
    if plan.away:
        work = max(_attention(plan, plan.dims[i], i, 2 * plan.spec.n_embd) for i in plan.away)
        total = max(total, inputs + work * plan.row)
    for layer in plan.in_ram.experts | plan.in_ram.some:
        total = max(total, inputs + _beside_device(plan, layer) * plan.row)
    if plan.places[-1] == HOST:
        total = max(total, _logits(plan) + plan.spec.n_embd * plan.row)
    return total


def _beside_device(plan: _Plan, layer: int) -> int:
    """Return what RAM holds for a block of a device that has matrices here, elements per token.

    The scores of attention are where its cache is, on the device; those with sinks follow these.
    """
    d, in_ram, n_embd = plan.dims[layer], plan.in_ram, plan.spec.n_embd
    rows = 2 * n_embd + 2 * d.v
    if layer in in_ram.attention:
        rows = max(rows, 3 * n_embd + 2 * d.q)
    if layer in in_ram.feed_forward or layer in in_ram.experts:
        rows = max(rows, _feed_forward(d) + 3 * n_embd + (d.q if layer in in_ram.attention else 0))
    elif layer in in_ram.some_forward:
        rows = max(rows, 2 * d.ff + 2 * n_embd)
    if layer in in_ram.scores:
        rows = max(rows, _attention(plan, d, layer, 2 * n_embd))
    return rows


def _layer(plan: _Plan, d: LayerDims, layer: int, n_rows: int, *, with_q: bool) -> tuple[int, int]:
    """Return what one block keeps alive behind its attention, and in it, bytes."""
    residual = n_rows * plan.spec.n_embd
    is_hybrid = plan.spec.recurrent is not None
    q = d.q if with_q and not is_hybrid else 0
    has_forward = (d.ff or d.experts_out) and not _is_short(plan, layer)
    feed_forward = _feed_forward(d) + residual + q if has_forward else 0
    is_crowded = plan.visiting[layer] and len(plan.layers(plan.places[layer])) >= _CROWDED
    if feed_forward and is_crowded and not is_hybrid:
        feed_forward += _beside_visitors(plan, d, layer, n_rows)
    is_away = layer in plan.away and plan.places[layer] != HOST
    attention = 0 if is_away else _attention(plan, d, layer, residual) * plan.row
    attention += plan.visiting[layer]
    recurrence = _recurrence(plan, d, n_rows) if d.scan else 0
    return max(feed_forward * plan.row, recurrence), attention


def _beside_visitors(plan: _Plan, d: LayerDims, layer: int, n_rows: int) -> int:
    """Return what holes a cache that was copied leaves in a feed-forward, elements per token."""
    n_embd = plan.spec.n_embd
    wide = max(d.q, n_embd)
    if d.experts_out:
        return wide if d.ff else 0
    hole = min(plan.visiting[layer] // plan.row, n_embd * 3 // 2)
    return hole + wide + d.v - (n_rows - 2) * n_embd


def _recurrence(plan: _Plan, d: LayerDims, n_rows: int) -> int:
    spec = plan.spec
    # with batches in flight (more rows than 3) the parts of several overlap, but for a hybrid's:
    # its masks lie between them
    overlap = 1 if any(spec.n_head) else 1 + (n_rows - 2) // _PIPELINE
    residual = n_rows - 1 if any(spec.n_head) else min(n_rows - 2, 1)
    rows = d.scan * overlap + residual * spec.n_embd
    states = spec.recurrent.n_embd_s + 3 * spec.recurrent.n_embd_r if spec.recurrent else 0
    return rows * plan.row + states * plan.shape.n_seq * _F32


def _feed_forward(d: LayerDims) -> int:
    # a result wider than the two freed halves cannot take their place
    extra = d.experts_out if d.experts_out > 2 * d.ff else 0
    return (3 if d.is_gated else 1) * d.ff + extra


def _without_experts(d: LayerDims, *, has_hole: bool) -> LayerDims:
    """Return the widths left on a device when the experts' results come from RAM.

    Beside copies from another device a wide result leaves a hole of half its size.
    """
    is_wide = has_hole and d.experts_out > 2 * d.ff
    return d._replace(ff=0, experts_out=d.experts_out * 3 // 2 if is_wide else d.experts_out)


def _attention(plan: _Plan, d: LayerDims, layer: int, residual: int) -> int:
    if not _attends(plan.spec, layer):
        return 0
    residual += d.latent_q
    if plan.settings.flash_attn is not FlashAttn.OFF:
        # K and V of the batch have left for a cache that is kept in RAM
        return residual + 2 * d.q + (0 if plan.visiting[layer] else 2 * d.v)
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


def _is_short(plan: _Plan, layer: int) -> bool:
    """Return whether behind its attention ``layer`` goes on with the rows of wanted logits."""
    return layer == plan.last and plan.spec.arch not in EVERY_ROW


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
    far = [*plan.layers(HOST), *plan.in_ram.experts, *plan.in_ram.some]
    if not far:
        return 0
    work = max(_feed_forward(plan.dims[i]) for i in far) + 3 * plan.spec.n_embd
    copied: int = max(host.blocks[i].largest_bytes for i in far)
    if plan.places[-1] == HOST and plan.shape.n_outputs >= _OFFLOAD_BATCH:
        copied = max(copied, host.largest_output + _logits(plan) - work * plan.row)
    return _inputs(plan, plan.layers(0)) + work * plan.row + copied
