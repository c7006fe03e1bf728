"""Whether this Windows is Wine: some tests change what no test may change on a real one."""

import ctypes
import sys


def is_wine() -> bool:
    """Tell whether this Python runs under Wine."""
    if sys.platform != "win32":
        return False
    return hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")
