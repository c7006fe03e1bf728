"""Bytes per device from the engine's log, where its memory breakdown cannot be called.

llama.cpp prints a line per buffer, rounded to 0.01 MiB. Of a model that is only planned the lines
of weights and cache say 0: then only the compute buffers count, and the parent's formula has the
rest, which is exact.
"""

import re
from collections.abc import Iterable

from app.domain.memory import DeviceMemory
from app.domain.units import MIB

HOST = "host"
_LINE = re.compile(
    r"\s(?P<buffer>\S+)\s+(?P<part>model|KV|RS|compute) buffer size\s+=\s+(?P<mib>[\d.]+) MiB"
)

Sizes = dict[tuple[str, str], int]


def buffer_sizes(lines: Iterable[str], device_names: Iterable[str]) -> Sizes:
    """Return bytes by (device or ``host``, ``model`` | ``KV`` | ``RS`` | ``compute``).

    A buffer type is called like its device, with an RPC server's address in brackets; all others
    (``CPU``, ``CUDA_Host``, ``CPU_REPACK``…) are RAM.
    """
    names = set(device_names)
    sizes: Sizes = {}
    compute: dict[str, int] = {}
    for match in filter(None, map(_LINE.search, lines)):
        n_bytes = round(float(match["mib"]) * MIB)
        if match["part"] == "compute":
            compute[match["buffer"]] = n_bytes  # reserved again: the last size counts
        else:
            _add(sizes, _device(match["buffer"], names), match["part"], n_bytes)
    for buffer, n_bytes in compute.items():
        _add(sizes, _device(buffer, names), "compute", n_bytes)
    return sizes


def device_memory(
    sizes: Sizes, device_names: list[str], *, output_bytes: int, is_planned: bool
) -> tuple[DeviceMemory, ...]:
    """Return what ``sizes`` say of each device, GPUs first, then ``host``.

    Args:
        sizes: Result of ``buffer_sizes`` over the lines of load and context.
        device_names: Devices of the model, in order.
        output_bytes: Buffer of the logits, in RAM.
        is_planned: Whether nothing was allocated: weights and caches are then ``None``.
    """
    found = []
    for name in [*device_names, HOST]:
        weights, kv, state, compute = (
            sizes.get((name, part), 0) for part in ("model", "KV", "RS", "compute")
        )
        output = output_bytes if name == HOST else 0
        known = compute + output + (0 if is_planned else weights + kv + state)
        found.append(
            DeviceMemory(
                device=name,
                weights_bytes=None if is_planned else weights,
                kv_cache_bytes=None if is_planned else kv,
                recurrent_state_bytes=None if is_planned else state,
                compute_bytes=compute,
                output_bytes=output or None,
                total_bytes=known,
            )
        )
    return tuple(found)


def _device(buffer: str, names: set[str]) -> str:
    name = buffer.partition("[")[0]
    return name if name in names else HOST


def _add(sizes: Sizes, device: str, part: str, n_bytes: int) -> None:
    sizes[device, part] = sizes.get((device, part), 0) + n_bytes
