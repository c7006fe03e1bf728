"""GPU performance counters, by their English names on every language of Windows."""

import ctypes
from ctypes import POINTER, byref, c_double, c_uint32, c_void_p, c_wchar_p
from typing import Any

from probes.reading import Absence
from probes.windows.dll import function, library
from probes.windows.facts import Counters

COUNTERS = (
    r"\GPU Engine(*)\Utilization Percentage",
    r"\GPU Adapter Memory(*)\Dedicated Usage",
    r"\GPU Adapter Memory(*)\Shared Usage",
    r"\GPU Process Memory(*)\Dedicated Usage",
    r"\GPU Process Memory(*)\Shared Usage",
)
FORMAT_DOUBLE = 0x00000200
MORE_DATA = 0x800007D2
VALID = {0, 1}
"""``PDH_CSTATUS_VALID_DATA`` and ``…_NEW_DATA``."""
MAX_BYTES = 16 << 20


class Item(ctypes.Structure):
    """``PDH_FMT_COUNTERVALUE_ITEM_W`` with a double."""

    _fields_ = (("name", c_wchar_p), ("status", c_uint32), ("value", c_double))


class Query:
    """One query, kept open: the first collection is slow, and rates need two."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._pdh: Any = None
        self._handle = c_void_p()
        self._counters: dict[str, c_void_p] = {}
        self._problem: Absence | None = None

    def read(self) -> Counters | Absence:
        """Return the counters of now; a counter that Windows lacks is left out."""
        if self._pdh is None and self._problem is None:
            self._problem = self._open()
        if self._problem is not None:
            return self._problem
        if _code(self._function("PdhCollectQueryData", c_void_p)(self._handle)) != 0:
            # Nothing has ever run on a GPU: no instances.
            return {}
        return {path: self._values(counter) for path, counter in self._counters.items()}

    def close(self) -> None:
        """Close the query."""
        if self._handle.value:
            self._function("PdhCloseQuery", c_void_p)(self._handle)
        self._handle, self._counters, self._pdh = c_void_p(), {}, None

    def _open(self) -> Absence | None:
        pdh = library("pdh.dll")
        open_ = function(pdh, "PdhOpenQueryW", c_wchar_p, c_void_p, POINTER(c_void_p))
        add = function(
            pdh, "PdhAddEnglishCounterW", c_void_p, c_wchar_p, c_void_p, POINTER(c_void_p)
        )
        for found in (open_, add):
            if isinstance(found, Absence):
                return found
        if _code(open_(None, None, byref(self._handle))) != 0:
            return Absence.ERROR
        self._pdh = pdh
        for path in COUNTERS:
            counter = c_void_p()
            if _code(add(self._handle, path, None, byref(counter))) == 0:
                self._counters[path] = counter
        if self._counters:
            return None
        self.close()
        return Absence.NOT_SUPPORTED

    def _function(self, name: str, *types: Any) -> Any:
        return function(self._pdh, name, *types)

    def _values(self, counter: c_void_p) -> dict[str, float]:
        read = self._function(
            "PdhGetFormattedCounterArrayW",
            c_void_p, c_uint32, POINTER(c_uint32), POINTER(c_uint32), c_void_p,
        )  # fmt: skip
        size, count = c_uint32(0), c_uint32(0)
        code = _code(read(counter, FORMAT_DOUBLE, byref(size), byref(count), None))
        # A program may start between the two calls: then the next reading has it.
        if code != MORE_DATA or not 0 < size.value <= MAX_BYTES:
            return {}
        buffer = ctypes.create_string_buffer(size.value)
        if _code(read(counter, FORMAT_DOUBLE, byref(size), byref(count), buffer)) != 0:
            return {}
        return sums((Item * count.value).from_buffer(buffer))


def sums(items: "ctypes.Array[Item]") -> dict[str, float]:
    """Return the valid values by instance; equal names are added up."""
    found: dict[str, float] = {}
    for item in items:
        if item.status in VALID and item.name:
            found[item.name] = found.get(item.name, 0.0) + item.value
    return found


def _code(result: int) -> int:
    return result & 0xFFFFFFFF
