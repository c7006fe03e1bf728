"""Bytes per device and part, as llama.cpp itself counts them.

``llama_get_memory_breakdown`` returns ``std::map<buffer type, {model, context, compute}>`` by
value (llama-ext.h). The hidden first argument points to the map; its layout is the C++ library's
(``native.MapLayout``). Both libraries known here keep a node's key and value at byte 32.
"""

import ctypes
from typing import NamedTuple

from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.worker import devices, native
from app.worker.cancel import EngineFailure
from app.worker.protocol import NO_BREAKDOWN

_MAP_BYTES = 48  # the larger of the two
_PAIR = 32
_WORD = ctypes.sizeof(ctypes.c_void_p)
HOST = "host"


class Parts(NamedTuple):
    """Bytes of one buffer type or device."""

    model: int = 0
    context: int = 0
    compute: int = 0


def device_memory(
    ctx: int, device_names: list[str], *, is_recurrent: bool, output_bytes: int
) -> tuple[DeviceMemory, ...]:
    """Return what ``ctx`` and its model hold (or would hold), GPUs first, then ``host``.

    Args:
        ctx: A context, real or of a model loaded without allocation.
        device_names: Devices of the model, in order.
        is_recurrent: Whether the context's state is all recurrent. A hybrid's two kinds cannot
            be told apart here: both count as ``kv_cache_bytes``.
        output_bytes: Buffer of the logits, which lies in RAM and is not in the breakdown.

    Raises:
        EngineFailure: This build does not offer the numbers.
    """
    totals = {name: Parts() for name in [*device_names, HOST]}
    for buffer_type, parts in read_breakdown(ctx):
        device = _device_of(buffer_type)
        old = totals.get(device, Parts())
        totals[device] = Parts(*(a + b for a, b in zip(old, parts, strict=True)))
    host = totals.pop(HOST)
    found = [_record(name, parts, is_recurrent=is_recurrent) for name, parts in totals.items()]
    found.append(_record(HOST, host, is_recurrent=is_recurrent, output_bytes=output_bytes))
    return tuple(found)


def read_breakdown(ctx: int) -> list[tuple[int, Parts]]:
    """Return (buffer type, bytes) of every buffer type that ``ctx`` uses.

    Raises:
        EngineFailure: The function is missing or its result has an unknown layout.
    """
    found = native.breakdown_function()
    if found is None:
        raise unavailable("it does not export llama_get_memory_breakdown")
    function, layout = found
    header = ctypes.create_string_buffer(_MAP_BYTES)
    base = ctypes.addressof(header)
    function(base, ctx)
    count, root = _word(base + layout.entries), base
    for offset in layout.root:
        root = _word(root + offset)
    stack = [root]
    entries: list[tuple[int, Parts]] = []
    while stack and len(entries) <= count:
        node = stack.pop()
        if not _is_end(node, layout):
            pair = node + _PAIR
            parts = Parts(*(_word(pair + i * _WORD) for i in (1, 2, 3)))
            entries.append((_word(pair), parts))
            stack += [_word(node + layout.left), _word(node + layout.right)]
    if len(entries) != count:
        raise unavailable("the result of llama_get_memory_breakdown has an unknown layout")
    return entries


def _record(
    device: str, parts: Parts, *, is_recurrent: bool, output_bytes: int | None = None
) -> DeviceMemory:
    return DeviceMemory(
        device=device,
        weights_bytes=parts.model,
        kv_cache_bytes=0 if is_recurrent else parts.context,
        recurrent_state_bytes=parts.context if is_recurrent else None,
        compute_bytes=parts.compute,
        output_bytes=output_bytes,
        total_bytes=sum(parts) + (output_bytes or 0),
    )


def _device_of(buffer_type: int) -> str:
    """Return the device a buffer type lies on; repacked CPU weights are RAM like the rest."""
    if native.buft_is_host(buffer_type):
        return HOST
    device = native.buft_device(buffer_type)
    if not device or native.dev_type(device) == 0:
        return HOST
    return devices.name_of(device)


def _is_end(node: int, layout: native.MapLayout) -> bool:
    if layout.is_end is None:
        return node == 0
    return ctypes.c_uint8.from_address(node + layout.is_end).value != 0


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def unavailable(reason: str) -> EngineFailure:
    """Return the failure that sends the parent to its own formula."""
    message = f"This engine build cannot say what it would allocate: {reason}."
    hint = "RigTune falls back to its own formula."
    return EngineFailure(Outcome.UNSUPPORTED, NO_BREAKDOWN, message, hint)
