"""How many bytes a configuration leaves free: what the searches for an edge go by."""

import math
from collections.abc import Callable

from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.memory.ram import HOST


def room_left(
    estimate: MemoryEstimate, error_bytes: Callable[[DeviceMemory], int], *, with_ram: bool
) -> float:
    """Return the least that a device has left, bytes; negative where it does not fit.

    Whether it fits is for the verdicts to say. Where they go by something else than these bytes
    the amount is infinite.

    Args:
        estimate: The need, judged.
        error_bytes: By how much a formula's total may be off.
        with_ram: Whether RAM must fit, too.
    """
    asked = [d for d in estimate.devices if with_ram or d.device != HOST]
    if with_ram or not estimate.devices:
        fits = estimate.verdict is Verdict.FITS
    else:
        fits = all(d.verdict is Verdict.FITS for d in asked)
    is_formula = estimate.source is MemorySource.FORMULA
    room = math.inf
    for device in asked:
        if device.free_bytes is not None:
            kept = device.headroom_bytes + device.reserve_bytes
            error = error_bytes(device) if is_formula and device.device != HOST else 0
            room = min(room, device.free_bytes - device.total_bytes - kept - error)
    if fits:
        return room if room >= 0 else math.inf
    return room if room < 0 else -math.inf
