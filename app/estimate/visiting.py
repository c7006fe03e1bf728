"""What devices copy of a KV cache that is kept in RAM (``offload_kqv`` off)."""

from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings, Switch
from app.estimate.kv import LayerCache, is_swa
from app.estimate.weights import HOST

# one cache, in 1/32
_WHOLE = 32
_MANY = 10


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
    is_flash, is_latent = (
        settings.flash_attn is not FlashAttn.OFF,
        spec.mla_kv_lora_rank is not None,
    )
    shares = {}
    for place in set(blocks) - {HOST}:
        here = [i for i, p in enumerate(blocks) if p == place]
        full = [i for i in here if not is_swa(spec, i)]
        is_crowded = is_flash and len(full) > 1
        has_gaps = spec.n_swa or not experts_in_ram.issuperset(full)
        share = _middle(spec, blocks, here) if is_crowded and has_gaps else _WHOLE
        shares[place] = 2 * _WHOLE if is_latent else share
    return tuple(
        0 if p == HOST else cache.kv_bytes * shares[p] // _WHOLE + cache.state_bytes
        for p, cache in zip(blocks, caches, strict=True)
    )


def _middle(spec: ModelSpec, blocks: tuple[int, ...], here: list[int]) -> int:
    """Return how much of a cache is counted on a device with the blocks ``here``, 1/32.

    Dense models with windows are small beside their cache: the fewer blocks, the more an excess
    weighs.
    """
    if spec.n_swa:
        return 40 if spec.n_expert else 38 + (len(here) >= _MANY)
    if here[0] == 0:
        return 40
    is_later = any(p not in (HOST, blocks[here[0]]) for p in blocks[: here[0]])
    return 48 if is_later else _WHOLE
