"""What devices copy of a KV cache that is kept in RAM (``offload_kqv`` off)."""

from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings, Switch
from app.estimate.kv import LayerCache, is_swa
from app.estimate.weights import HOST


def visiting_bytes(
    spec: ModelSpec,
    settings: Settings,
    places: tuple[int, ...],
    caches: tuple[LayerCache, ...],
    experts_in_ram: frozenset[int],
) -> tuple[int, ...]:
    """Return per block what its device copies of a cache that is kept in RAM, bytes.

    With flash attention the next block's keys or values may find no hole that is large enough:
    half of a cache more. That depends on what lies between. Where windows alternate, a device that
    begins with a full block needs it and one that begins with a window does not; the estimate must
    not sink with more layers, so the middle is counted. Latent attention copies its one cache
    twice.
    """
    if settings.offload_kqv is Switch.ON:
        return (0,) * len(caches)
    blocks = places[:-1]
    sixteenths = {}
    for place in set(blocks) - {HOST}:
        full = [i for i, p in enumerate(blocks) if p == place and not is_swa(spec, i)]
        is_later = any(p not in (HOST, place) for p in blocks[: blocks.index(place)])
        n = 16
        if settings.flash_attn is not FlashAttn.OFF and len(full) > 1:
            middle = 20 if spec.n_expert else 19
            n = middle if spec.n_swa else 20 if blocks[0] == place else 24 if is_later else 16
        has_gaps = spec.n_swa or not experts_in_ram.issuperset(full)
        sixteenths[place] = 32 if spec.mla_kv_lora_rank is not None else n if has_gaps else 16
    return tuple(
        0 if p == HOST else cache.kv_bytes * sixteenths[p] // 16 + cache.state_bytes
        for p, cache in zip(blocks, caches, strict=True)
    )
