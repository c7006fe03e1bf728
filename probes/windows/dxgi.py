"""Graphics adapters through DXGI (COM without a library: calls by position in the vtable)."""

import ctypes
from collections.abc import Iterator
from ctypes import POINTER, byref, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

import msgspec

from probes.reading import Absence
from probes.windows.dll import Guid, Luid, function, guid, library
from probes.windows.facts import AdapterFacts

FACTORY1 = "770aae78-f26f-4dba-a829-253c83d1b387"
ADAPTER3 = "645967a4-1392-4310-a798-8053ce3e93fd"
MAX_ADAPTERS = 32
MAX_OUTPUTS = 16

# Positions in the vtables (dxgi.h, dxgi1_4.h).
QUERY_INTERFACE, RELEASE = 0, 2
ENUM_OUTPUTS, GET_DESC1, ENUM_ADAPTERS1, QUERY_VIDEO_MEMORY = 7, 10, 12, 14


class AdapterDesc1(ctypes.Structure):
    """``DXGI_ADAPTER_DESC1``."""

    _fields_ = (
        # Not c_wchar, which has four bytes elsewhere.
        ("description", ctypes.c_uint16 * 128),
        ("vendor_id", c_uint32),
        ("device_id", c_uint32),
        ("subsystem_id", c_uint32),
        ("revision", c_uint32),
        ("dedicated_video", c_size_t),
        ("dedicated_system", c_size_t),
        ("shared_system", c_size_t),
        ("luid", Luid),
        ("flags", c_uint32),
    )


class VideoMemoryInfo(ctypes.Structure):
    """``DXGI_QUERY_VIDEO_MEMORY_INFO``."""

    _fields_ = (
        ("budget", c_uint64),
        ("usage", c_uint64),
        ("available", c_uint64),
        ("reservation", c_uint64),
    )


def adapters() -> tuple[AdapterFacts, ...] | Absence:
    """Return the adapters in DXGI order, or why there are none to be had."""
    create = function(library("dxgi.dll"), "CreateDXGIFactory1", POINTER(Guid), POINTER(c_void_p))
    if isinstance(create, Absence):
        return create
    factory = c_void_p()
    if create(byref(guid(FACTORY1)), byref(factory)) != 0 or not factory.value:
        return Absence.NOT_SUPPORTED
    try:
        return tuple(_describe(adapter) for adapter in _adapters(factory))
    finally:
        _call(factory, RELEASE)


def _adapters(factory: c_void_p) -> Iterator[c_void_p]:
    for index in range(MAX_ADAPTERS):
        adapter = c_void_p()
        if (
            _call(factory, ENUM_ADAPTERS1, c_uint32(index), byref(adapter)) != 0
            or not adapter.value
        ):
            return
        try:
            yield adapter
        finally:
            _call(adapter, RELEASE)


def _describe(adapter: c_void_p) -> AdapterFacts:
    desc = AdapterDesc1()
    if _call(adapter, GET_DESC1, byref(desc)) != 0:
        return AdapterFacts(description="", vendor_id=0, device_id=0, luid="")
    facts = facts_of(desc)
    return msgspec.structs.replace(
        facts, n_outputs=_n_outputs(adapter), budget_bytes=_budget(adapter)
    )


def facts_of(desc: AdapterDesc1) -> AdapterFacts:
    """Return a description as a record."""
    units = bytes(desc.description).decode("utf-16-le", "replace")
    return AdapterFacts(
        description=units.partition("\0")[0].strip(),
        vendor_id=desc.vendor_id,
        device_id=desc.device_id,
        luid=desc.luid.text(),
        dedicated_bytes=desc.dedicated_video,
        shared_bytes=desc.shared_system,
        flags=desc.flags,
    )


def _n_outputs(adapter: c_void_p) -> int:
    for index in range(MAX_OUTPUTS):
        output = c_void_p()
        if _call(adapter, ENUM_OUTPUTS, c_uint32(index), byref(output)) != 0 or not output.value:
            return index
        _call(output, RELEASE)
    return MAX_OUTPUTS


def _budget(adapter: c_void_p) -> int | None:
    newer = c_void_p()
    asked = _call(adapter, QUERY_INTERFACE, byref(guid(ADAPTER3)), byref(newer))
    if asked != 0 or not newer.value:
        return None
    info = VideoMemoryInfo()
    # Node 0, segment group 0 (local).
    code = _call(newer, QUERY_VIDEO_MEMORY, c_uint32(0), c_int32(0), byref(info))
    _call(newer, RELEASE)
    return int(info.budget) if code == 0 else None


def _call(this: c_void_p, position: int, *arguments: Any) -> int:
    table = ctypes.cast(this, POINTER(POINTER(c_void_p))).contents
    prototype = ctypes.CFUNCTYPE(c_int32, c_void_p, *[_type(a) for a in arguments])
    return int(prototype(table[position] or 0)(this, *arguments))


def _type(argument: Any) -> Any:
    return type(argument) if isinstance(argument, c_uint32 | c_int32) else c_void_p
