"""What devices copy of a KV cache that is kept in RAM (``offload_kqv`` off)."""

from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings, Switch
from app.estimate.graphs import STATES_LATE
from app.estimate.kv import LayerCache, is_swa
from app.estimate.weights import HOST

# one cache, in 1/32
_WHOLE = 32
_MANY = 10


def attends_in_ram(spec: ModelSpec, settings: Settings, routed: frozenset[int]) -> frozenset[int]:
    """Return the blocks whose attention follows a cache that is kept in RAM.

    llama.cpp runs it where the matrix behind it is. The states of a recurrent block, which are
    in RAM then, too, are collected in between: where they come early, the scheduler does not
    look past them and leaves the attention with its cache. A choice of experts (``routed``) comes
    even earlier, and the matrix with it.
    """
    recurrent = spec.recurrent
    if settings.offload_kqv is Switch.ON or recurrent is None or spec.arch in STATES_LATE:
        return frozenset()
    states = set(recurrent.layers)
    alone = {i - 1 for i in states if i > 0} - routed
    return frozenset(states | alone)


def visiting_bytes(
    spec: ModelSpec,
    settings: Settings,
    places: tuple[int, ...],
    caches: tuple[LayerCache, ...],
    experts_in_ram: frozenset[int],
    normed: frozenset[int],
    away: frozenset[int],
) -> tuple[int, ...]:
    """Return per block what its device copies of a cache that is kept in RAM, bytes.

    With flash attention the next block's keys or values may find no hole that is large enough:
    half of a cache more. That is so on a device that follows another one. Behind RAM, also on the
    device of the first block (the embedding is looked up in RAM), input and Q lie below the copy,
    a block's small results find room there, and the hole stays whole for the next copy.

    Where windows alternate, a device that begins with a full block needs more and one that begins
    with a window does not; the estimate must not sink with more layers, so the middle is counted.
    Latent attention copies its one cache twice, and on a device that begins with the first block
    or follows another one a third time where the holes are small: the middle again.
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
        # without a norm before it nothing lies between the input of a block and its Q, K and V
        has_gaps = has_gaps and here[0] in normed
        share = _middle(spec, blocks, here) if is_crowded and has_gaps else _WHOLE
        is_third = here[0] == 0 or _follows(blocks, here)
        shares[place] = (2 * _WHOLE + is_third * _WHOLE // 2) if is_latent else share
    return tuple(
        0
        if p == HOST
        else (0 if i in away else cache.kv_bytes) * shares[p] // _WHOLE + cache.state_bytes
        for i, (p, cache) in enumerate(zip(blocks, caches, strict=True))
    )


def _middle(spec: ModelSpec, blocks: tuple[int, ...], here: list[int]) -> int:
    """Return how much of a cache is counted on a device with the blocks ``here``, 1/32.

    Dense models with windows are small beside their cache: the fewer blocks, the more an excess
    weighs.
    """
    if spec.n_swa:
        return 40 if spec.n_expert else 38 + (len(here) >= _MANY)
    return 48 if _follows(blocks, here) else _WHOLE


def _follows(blocks: tuple[int, ...], here: list[int]) -> bool:
    """Return whether another device has blocks before these."""
    return any(p not in (HOST, blocks[here[0]]) for p in blocks[: here[0]])
