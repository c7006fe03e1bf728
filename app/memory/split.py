"""Puts formula and dry run together, where the engine counts less than we show.

Recurrent state and KV cache are one figure to the engine. The state's size is exact by formula,
so the cache is the rest; that must then be what the cache formula says, or they stay together.
"""

import msgspec

from app.domain.memory import DeviceMemory


def split_state(
    planned: tuple[DeviceMemory, ...], formula: tuple[DeviceMemory, ...]
) -> tuple[DeviceMemory, ...]:
    """Return ``planned`` with the state as a part of its own on every device.

    Unchanged (the sum under ``kv_cache_bytes``, the state ``None``) unless both formulas add up
    to the engine's figure on every device.

    Args:
        planned: The dry run's parts.
        formula: The formula's parts of the same configuration.
    """
    by_name = {part.device: part for part in formula}
    result = []
    for part in planned:
        ours = by_name.get(part.device)
        if part.recurrent_state_bytes is not None or ours is None:
            return planned
        state, kv = ours.recurrent_state_bytes or 0, ours.kv_cache_bytes or 0
        if state + kv != part.kv_cache_bytes:
            return planned
        result.append(msgspec.structs.replace(part, kv_cache_bytes=kv, recurrent_state_bytes=state))
    return tuple(result)


def with_compute(
    formula: tuple[DeviceMemory, ...], engine: tuple[DeviceMemory, ...]
) -> tuple[DeviceMemory, ...]:
    """Return the formula's parts with the engine's compute buffers in place of the modelled ones.

    For engines that tell only those (``worker.memory_log``); all other parts are exact by formula.
    """
    computed = {part.device: part.compute_bytes for part in engine}
    result = []
    for part in formula:
        compute = computed.get(part.device)
        if compute is None:
            result.append(part)
            continue
        total = part.total_bytes - (part.compute_bytes or 0) + compute
        result.append(msgspec.structs.replace(part, compute_bytes=compute, total_bytes=total))
    return tuple(result)
