"""Functions of Windows libraries, found without failing on other systems."""

import ctypes
from typing import Any

from probes.reading import Absence


def library(name: str) -> Any:
    """Return a system library, or the ``Absence`` that says it is not there."""
    try:
        # On 64-bit Windows there is one calling convention, so CDLL serves.
        return ctypes.CDLL(name)
    except OSError:
        return Absence.LIB_MISSING


def function(library_: Any, name: str, *argument_types: Any, result: Any = ctypes.c_int32) -> Any:
    """Return a function with its types set, or an ``Absence``."""
    if isinstance(library_, Absence):
        return library_
    try:
        found = getattr(library_, name)
    except AttributeError:
        return Absence.SYMBOL_MISSING
    found.argtypes, found.restype = list(argument_types), result
    return found


class Luid(ctypes.Structure):
    """``LUID``."""

    _fields_ = (("low", ctypes.c_uint32), ("high", ctypes.c_int32))

    def text(self) -> str:
        """Return ``high:low`` in hex."""
        return f"{self.high & 0xFFFFFFFF:08x}:{self.low:08x}"


class Guid(ctypes.Structure):
    """``GUID``."""

    _fields_ = (
        ("a", ctypes.c_uint32),
        ("b", ctypes.c_uint16),
        ("c", ctypes.c_uint16),
        ("d", ctypes.c_uint8 * 8),
    )


def guid(text: str) -> Guid:
    """Return ``xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`` as a structure."""
    a, b, c, d, e = text.split("-")
    return Guid(int(a, 16), int(b, 16), int(c, 16), (ctypes.c_uint8 * 8)(*bytes.fromhex(d + e)))
