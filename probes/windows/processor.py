"""Cores, instruction sets and firmware tables from the Windows kernel."""

import ctypes
import struct
from ctypes import POINTER, byref, c_uint32, c_void_p

from probes.reading import Absence
from probes.windows.dll import function, library
from probes.windows.facts import CoreFacts

RELATION_CORE = 0
FEATURES = {39: "avx", 40: "avx2", 41: "avx512f"}
"""``PF_*_INSTRUCTIONS_AVAILABLE``."""
RSMB = 0x52534D42
SMBIOS_HEADER_BYTES = 8
MAX_BYTES = 1 << 20
HEADER_BYTES = 8
MASKS_AT = 32
"""Offset of the group masks in an entry: header, flags, class, 20 reserved bytes, count."""
MASK_BYTES = 16


def cores() -> tuple[CoreFacts, ...] | Absence:
    """Return the physical cores."""
    get = function(
        library("kernel32.dll"), "GetLogicalProcessorInformationEx",
        c_uint32, c_void_p, POINTER(c_uint32),
    )  # fmt: skip
    if isinstance(get, Absence):
        return get
    size = c_uint32(0)
    get(RELATION_CORE, None, byref(size))
    if not 0 < size.value <= MAX_BYTES:
        return Absence.NO_DATA
    buffer = ctypes.create_string_buffer(size.value)
    if not get(RELATION_CORE, buffer, byref(size)):
        return Absence.NO_DATA
    return parse_cores(buffer.raw[: size.value])


def parse_cores(data: bytes) -> tuple[CoreFacts, ...]:
    """Return the cores in ``SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX`` entries."""
    found = []
    at = 0
    while at + MASKS_AT + MASK_BYTES <= len(data):
        relation, size = struct.unpack_from("<II", data, at)
        if size < HEADER_BYTES:
            break
        if relation == RELATION_CORE:
            found.append(_core(data[at : at + size]))
        at += size
    return tuple(found)


def _core(entry: bytes) -> CoreFacts:
    (count,) = struct.unpack_from("<H", entry, MASKS_AT - 2)
    cpus = []
    for n in range(count):
        where = MASKS_AT + n * MASK_BYTES
        if where + MASK_BYTES > len(entry):
            break
        mask, group = struct.unpack_from("<QH", entry, where)
        cpus += [group * 64 + bit for bit in range(64) if mask >> bit & 1]
    return CoreFacts(efficiency=entry[HEADER_BYTES + 1], cpus=tuple(cpus))


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
