"""KV cache and recurrent state, exact per layer (``llama_kv_cache``, ``llama_memory_*``)."""

from typing import NamedTuple

from app.domain.model import ModelSpec
from app.domain.settings import KV_TYPES, FlashAttn, Settings
from app.estimate.profile import (
    DEFAULT_PROFILE,
    ContextShape,
    EngineProfile,
    context_shape,
    swa_cells,
)

_STATE_BYTES = 4  # recurrent states are always f32


class LayerCache(NamedTuple):
    """Bytes one layer keeps between tokens."""

    kv_bytes: int
    state_bytes: int


def layer_caches(
    spec: ModelSpec, settings: Settings, profile: EngineProfile
) -> tuple[LayerCache, ...]:
    """Return the cache and the state of every layer, all slots together."""
    shape = context_shape(settings, profile)
    window = swa_cells(shape, spec.n_swa, profile) if spec.n_swa else shape.n_cells
    v_width = _padded_v_width(spec, settings)
    states = _state_bytes(spec, shape, profile)
    result = []
    for layer in range(spec.n_layer):
        cells = window if is_swa(spec, layer) else shape.n_cells
        kv = _cell_bytes(spec, settings, layer, v_width) * cells * shape.n_streams
        result.append(LayerCache(kv, states.get(layer, 0)))
    return tuple(result)


def kv_bytes_per_token(
    spec: ModelSpec, settings: Settings, profile: EngineProfile = DEFAULT_PROFILE
) -> int | None:
    """Return what one more token of context costs over all layers, bytes; ``None`` = unknown.

    Sliding-window layers do not grow with the context and count only with ``swa_full``.
    """
    if not spec.formula_known:
        return None
    v_width = _padded_v_width(spec, settings)
    layers = range(spec.n_layer)
    growing = [i for i in layers if profile.swa_full or not is_swa(spec, i)]
    return sum(_cell_bytes(spec, settings, i, v_width) for i in growing)


def is_swa(spec: ModelSpec, layer: int) -> bool:
    """Return whether ``layer`` sees only the sliding window."""
    return bool(spec.n_swa and spec.swa_layers and spec.swa_layers[layer])


def has_kv(spec: ModelSpec, layer: int) -> bool:
    """Return whether ``layer`` has a KV cache of its own."""
    shared = spec.kv_shared_from is not None and layer >= spec.kv_shared_from
    return spec.n_head_kv[layer] > 0 and not shared


def row_bytes(type_name: str, n_elements: int) -> int:
    """Return the bytes of ``n_elements`` in a row of KV type ``type_name``."""
    block_bytes, block = KV_TYPES[type_name]
    return n_elements * block_bytes // block


def _cell_bytes(spec: ModelSpec, settings: Settings, layer: int, v_width: int | None) -> int:
    if not has_kv(spec, layer):
        # deci's layers without attention still get a V tensor where widths are padded
        padded = v_width if v_width and spec.arch == "deci" else 0
        return row_bytes(settings.type_v, padded)
    if spec.mla_kv_lora_rank is not None:
        width = spec.mla_kv_lora_rank + (spec.mla_rope_dim or 0)
        return row_bytes(settings.type_k, width)
    n_kv = spec.n_head_kv[layer]
    v = n_kv * spec.n_embd_head_v[layer] if v_width is None else v_width
    return row_bytes(settings.type_k, n_kv * spec.n_embd_head_k[layer]) + row_bytes(
        settings.type_v, v
    )


def _padded_v_width(spec: ModelSpec, settings: Settings) -> int | None:
    """Return the common width of V without flash attention, where layers differ."""
    if settings.flash_attn is not FlashAttn.OFF:
        return None
    widths = {n * d for n, d in zip(spec.n_head_kv, spec.n_embd_head_v, strict=True)}
    if spec.arch != "deci":
        widths.discard(0)
    return max(widths) if len(widths) > 1 else None


def _state_bytes(spec: ModelSpec, shape: ContextShape, profile: EngineProfile) -> dict[int, int]:
    if spec.recurrent is None:
        return {}
    row = spec.recurrent.n_embd_r + spec.recurrent.n_embd_s
    n_bytes = row * _STATE_BYTES * shape.n_seq * (1 + profile.n_rs_seq)
    return dict.fromkeys(spec.recurrent.layers, n_bytes)
