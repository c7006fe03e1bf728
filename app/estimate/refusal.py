"""What the engine refuses before it looks at memory (``llama_init_from_model``).

A formula that gives bytes for a context the engine does not create would be worse than none.
"""

from app.domain.model import ModelSpec
from app.domain.settings import KV_TYPES, FlashAttn, Settings, SplitMode

MAX_SEQUENCES = 256
"""``LLAMA_MAX_SEQ``."""
_NO_FLASH_ATTENTION = "grok"
"""llama.cpp switches flash attention off for it whatever is asked."""
_ONE_CACHE_TYPE = "deepseek4"


def refusal(spec: ModelSpec, settings: Settings) -> str | None:
    """Return why llama.cpp creates no context of ``settings``; ``None`` where it would."""
    flash = settings.flash_attn is not FlashAttn.OFF and spec.arch != _NO_FLASH_ATTENTION
    if settings.n_seq_max > MAX_SEQUENCES:
        return f"The engine takes at most {MAX_SEQUENCES} parallel sequences."
    is_latent = spec.mla_kv_lora_rank is not None or spec.arch == _ONE_CACHE_TYPE
    if is_latent and settings.type_k != settings.type_v:
        return (
            f"{spec.arch} keeps K and V in one cache, so both must have the same type: not "
            f"{settings.type_k} and {settings.type_v}."
        )
    if settings.split_mode is SplitMode.TENSOR and not flash:
        return "Split mode tensor needs flash attention, which is off."
    if _block(settings.type_v) > 1 and not flash:
        return f"A {settings.type_v} V cache needs flash attention, which is off."
    if not flash:
        return None
    return _uneven("K", settings.type_k, spec.n_embd_head_k) or _uneven(
        "V", settings.type_v, spec.n_embd_head_v
    )


def _uneven(which: str, kv_type: str, head_sizes: tuple[int, ...]) -> str | None:
    block = _block(kv_type)
    for size in head_sizes:
        if size % block:
            return (
                f"A {kv_type} {which} cache is made of blocks of {block} values, which do not "
                f"divide this model's heads of {size}."
            )
    return None


def _block(kv_type: str) -> int:
    return KV_TYPES[kv_type][1]
