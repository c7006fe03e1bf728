"""Cores, instruction sets and firmware tables from the Windows kernel."""

import ctypes
from ctypes import c_uint32, c_void_p

from probes.reading import Absence
from probes.windows import layout
from probes.windows.dll import function, library
from probes.windows.facts import CacheFacts, CoreFacts

FEATURES = {39: "avx", 40: "avx2", 41: "avx512f"}
"""``PF_*_INSTRUCTIONS_AVAILABLE``."""
RSMB = 0x52534D42
SMBIOS_HEADER_BYTES = 8
MAX_BYTES = 1 << 20


def cores() -> tuple[CoreFacts, ...] | Absence:
    """Return the physical cores."""
    data = layout.entries_of(layout.RELATION_CORE)
    return data if isinstance(data, Absence) else layout.parse_cores(data)


def caches() -> tuple[CacheFacts, ...] | Absence:
    """Return the caches that hold data."""
    data = layout.entries_of(layout.RELATION_CACHE)
    return data if isinstance(data, Absence) else layout.parse_caches(data)


def n_nodes() -> int | Absence:
    """Return the number of memory nodes."""
    data = layout.entries_of(layout.RELATION_NODE)
    return data if isinstance(data, Absence) else layout.parse_nodes(data)


def features() -> tuple[str, ...] | Absence:
    """Return the instruction sets that Windows names."""
    ask = function(library("kernel32.dll"), "IsProcessorFeaturePresent", c_uint32)
    if isinstance(ask, Absence):
        return ask
    return tuple(name for number, name in FEATURES.items() if ask(number))


def firmware() -> bytes | Absence:
    """Return the SMBIOS structures (no rights needed)."""
    get = function(
        library("kernel32.dll"), "GetSystemFirmwareTable",
        c_uint32, c_uint32, c_void_p, c_uint32, result=c_uint32,
    )  # fmt: skip
    if isinstance(get, Absence):
        return get
    size = get(RSMB, 0, None, 0)
    if not SMBIOS_HEADER_BYTES < size <= MAX_BYTES:
        return Absence.NO_DATA
    buffer = ctypes.create_string_buffer(size)
    written = get(RSMB, 0, buffer, size)
    return buffer.raw[SMBIOS_HEADER_BYTES:written] if written <= size else Absence.NO_DATA
