"""Caches and memory nodes in the Windows kernel's description of the processor."""

import ctypes
import struct
from collections.abc import Iterator
from ctypes import POINTER, byref, c_uint32, c_void_p

from probes.reading import Absence
from probes.windows.dll import function, library
from probes.windows.facts import CacheFacts, CoreFacts

RELATION_CORE, RELATION_NODE, RELATION_CACHE = 0, 1, 2
MAX_BYTES = 1 << 20
HEADER_BYTES = 8
MASK_BYTES = 16
CORE_MASKS_AT = 32
"""Offset of the group masks of a core: header, flags, class, 20 reserved bytes, count."""
NODE_BYTES = 12
CACHE_MASKS_AT = 40
"""The same of a cache: header, level, ways, line, size, kind, 18 reserved bytes, count."""
INSTRUCTIONS = 1
"""``CacheInstruction``."""


def entries_of(relation: int) -> bytes | Absence:
    """Return ``SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX`` entries of one kind."""
    get = function(
        library("kernel32.dll"), "GetLogicalProcessorInformationEx",
        c_uint32, c_void_p, POINTER(c_uint32),
    )  # fmt: skip
    if isinstance(get, Absence):
        return get
    size = c_uint32(0)
    get(relation, None, byref(size))
    if not 0 < size.value <= MAX_BYTES:
        return Absence.NO_DATA
    buffer = ctypes.create_string_buffer(size.value)
    if not get(relation, buffer, byref(size)):
        return Absence.NO_DATA
    return buffer.raw[: size.value]


def parse_cores(data: bytes) -> tuple[CoreFacts, ...]:
    """Return the physical cores."""
    return tuple(
        CoreFacts(efficiency=entry[HEADER_BYTES + 1], cpus=_cpus(entry, CORE_MASKS_AT))
        for entry in _entries(data, RELATION_CORE, CORE_MASKS_AT + MASK_BYTES)
    )


def parse_nodes(data: bytes) -> int:
    """Return the number of memory nodes."""
    found = _entries(data, RELATION_NODE, NODE_BYTES)
    return len({struct.unpack_from("<I", entry, HEADER_BYTES)[0] for entry in found})


def parse_caches(data: bytes) -> tuple[CacheFacts, ...]:
    """Return the caches that hold data."""
    found = []
    for entry in _entries(data, RELATION_CACHE, CACHE_MASKS_AT + MASK_BYTES):
        level, size, kind = struct.unpack_from("<B3xII", entry, HEADER_BYTES)
        if kind != INSTRUCTIONS:
            cpus = _cpus(entry, CACHE_MASKS_AT)
            found.append(CacheFacts(level=level, n_bytes=size, cpus=cpus))
    return tuple(found)


def _entries(data: bytes, relation: int, least: int) -> Iterator[bytes]:
    """Yield the whole entries of a kind, up to the end or the first damage."""
    at = 0
    while at + HEADER_BYTES <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if size < HEADER_BYTES:
            return
        entry = data[at : at + size]
        if kind == relation and len(entry) == size >= least:
            yield entry
        at += size


def _cpus(entry: bytes, masks_at: int) -> tuple[int, ...]:
    # Systems before Windows 11 leave a cache's count at 0 and fill one mask.
    (count,) = struct.unpack_from("<H", entry, masks_at - 2)
    cpus: list[int] = []
    for n in range(max(1, count)):
        where = masks_at + n * MASK_BYTES
        if where + MASK_BYTES > len(entry):
            break
        mask, group = struct.unpack_from("<QH", entry, where)
        cpus += [group * 64 + bit for bit in range(64) if mask >> bit & 1]
    return tuple(cpus)
