"""What llama.cpp forgets when it only plans.

With all layers on devices it pins a block's norms to the block's device, even where the block's
weights are in RAM by name. When it only plans, it resets the scheduler after building the graph
(``ggml_backend_sched_reserve_size``) and so forgets that: a row of activations is missing.
"""

from collections.abc import Iterable

import msgspec

from app.domain.memory import DeviceMemory
from app.domain.overrides import OverrideRule, override_for, read_overrides
from app.domain.settings import Settings
from app.worker.memory_breakdown import HOST

_F32_BYTES = 4


def forgotten_bytes(settings: Settings, n_layer: int, n_embd: int) -> int:
    """Return what a plan may lack on each device, bytes; 0 unless a whole block is in RAM by name.

    Args:
        settings: Effective settings.
        n_layer: Blocks of the model.
        n_embd: Width of its activations.
    """
    if settings.n_gpu_layers <= n_layer or not settings.override_tensor:
        return 0
    rules = read_overrides(settings.override_tensor)
    if not any(_is_in_ram(rules, layer) for layer in range(n_layer)):
        return 0
    return settings.n_ubatch * n_embd * _F32_BYTES


def with_forgotten(devices: Iterable[DeviceMemory], n_bytes: int) -> tuple[DeviceMemory, ...]:
    """Return ``devices`` with ``n_bytes`` more of compute on each that computes."""
    return tuple(
        msgspec.structs.replace(
            device,
            compute_bytes=device.compute_bytes + n_bytes,
            total_bytes=device.total_bytes + n_bytes,
        )
        if device.compute_bytes and device.device != HOST
        else device
        for device in devices
    )


def _is_in_ram(rules: tuple[OverrideRule, ...], layer: int) -> bool:
    """Return whether both halves of a block are, judged by their norms."""
    found = (override_for(rules, f"blk.{layer}.{half}_norm.weight") for half in ("attn", "ffn"))
    return all(rule is not None and rule.device is None for rule in found)
