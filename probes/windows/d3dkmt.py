"""The kernel's graphics interface (``D3DKMT*``): addresses, hybrid roles, temperatures.

Undocumented parts are not used; the structures are those of Microsoft's ``d3dkmthk.h``.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_uint8, c_uint32, c_uint64, c_void_p

import msgspec

from probes.reading import Absence
from probes.windows.dll import Luid, function, library
from probes.windows.facts import AdapterFacts, PerformanceFacts

ADAPTER_ADDRESS, ADAPTER_TYPE, ADAPTER_PERFDATA, WDDM_2_7_CAPS = 6, 15, 62, 70
HYBRID_DISCRETE, HYBRID_INTEGRATED = 1 << 4, 1 << 5
HAGS_ENABLED = 1 << 1


class OpenAdapter(ctypes.Structure):
    """``D3DKMT_OPENADAPTERFROMLUID``."""

    _fields_ = (("luid", Luid), ("handle", c_uint32))


class QueryInfo(ctypes.Structure):
    """``D3DKMT_QUERYADAPTERINFO``."""

    _fields_ = (
        ("handle", c_uint32),
        ("kind", c_uint32),
        ("data", c_void_p),
        ("size", c_uint32),
    )


class CloseAdapter(ctypes.Structure):
    """``D3DKMT_CLOSEADAPTER``."""

    _fields_ = (("handle", c_uint32),)


class Address(ctypes.Structure):
    """``D3DKMT_ADAPTERADDRESS``."""

    _fields_ = (("bus", c_uint32), ("device", c_uint32), ("function", c_uint32))


class PerfData(ctypes.Structure):
    """``D3DKMT_ADAPTER_PERFDATA``."""

    _fields_ = (
        ("physical_index", c_uint32),
        ("memory_hz", c_uint64),
        ("memory_max_hz", c_uint64),
        ("memory_max_oc_hz", c_uint64),
        ("memory_bandwidth", c_uint64),
        ("pcie_bandwidth", c_uint64),
        ("fan_rpm", c_uint32),
        ("power", c_uint32),
        ("temperature_dc", c_uint32),
        ("power_override", c_uint8),
    )


Ask = Callable[[int, ctypes.Structure | c_uint32], bool]
"""Fills a structure with the answer to a query type; ``False`` when there is none."""


def completed(facts: AdapterFacts) -> AdapterFacts:
    """Return ``facts`` with address, role and scheduling of the same adapter."""
    with _adapter(facts.luid) as ask:
        changes: dict[str, object] = {}
        address, type_bits, caps = Address(), c_uint32(), c_uint32()
        if ask(ADAPTER_ADDRESS, address):
            changes["address"] = (address.bus, address.device, address.function)
        if ask(ADAPTER_TYPE, type_bits):
            changes["hybrid"] = hybrid_role(type_bits.value)
        if ask(WDDM_2_7_CAPS, caps):
            changes["hags_enabled"] = bool(caps.value & HAGS_ENABLED)
        return msgspec.structs.replace(facts, **changes)


def performance(luid: str) -> PerformanceFacts | Absence:
    """Return the sensors of an adapter."""
    with _adapter(luid) as ask:
        found = PerfData()
        if not ask(ADAPTER_PERFDATA, found):
            return Absence.NOT_SUPPORTED
        return PerformanceFacts(temperature_dc=found.temperature_dc, memory_hz=found.memory_hz)


@contextmanager
def _adapter(luid: str) -> Iterator[Ask]:
    """Open an adapter for questions; every one is unanswered where that is impossible."""
    gdi = library("gdi32.dll")
    open_ = function(gdi, "D3DKMTOpenAdapterFromLuid", POINTER(OpenAdapter))
    query = function(gdi, "D3DKMTQueryAdapterInfo", POINTER(QueryInfo))
    close = function(gdi, "D3DKMTCloseAdapter", POINTER(CloseAdapter))
    high, _, low = luid.partition(":")
    opened = OpenAdapter(Luid(int(low, 16), ctypes.c_int32(int(high, 16)).value), 0)
    missing = any(isinstance(found, Absence) for found in (open_, query, close))
    if missing or open_(byref(opened)) != 0:
        yield lambda _kind, _into: False
        return

    def ask(kind: int, into: ctypes.Structure | c_uint32) -> bool:
        data = ctypes.cast(ctypes.pointer(into), c_void_p)
        request = QueryInfo(opened.handle, kind, data, ctypes.sizeof(into))
        return bool(query(byref(request)) == 0)

    try:
        yield ask
    finally:
        close(byref(CloseAdapter(opened.handle)))


def hybrid_role(bits: int) -> str | None:
    """Return which of the two an adapter of a hybrid machine is (``D3DKMT_ADAPTERTYPE``)."""
    if bits & HYBRID_DISCRETE:
        return "discrete"
    return "integrated" if bits & HYBRID_INTEGRATED else None
