"""Reads the Windows registry. There is no way to write in here, and a test keeps it so."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from probes.reading import Absence
from probes.windows.facts import RegistryValue

NUMBERS = {4, 5, 11}
"""``REG_DWORD``, ``REG_DWORD_BIG_ENDIAN``, ``REG_QWORD``."""
MAX_VALUES = 4096


def value(key: str, name: str) -> RegistryValue | Absence:
    """Return a value, or why it cannot be had; ``key`` starts with ``HKLM`` or ``HKCU``."""
    opened = _open(key)
    if isinstance(opened, Absence):
        return opened
    with opened:
        try:
            data, kind = _winreg().QueryValueEx(opened, name)
        except PermissionError:
            return Absence.NO_PERMISSION
        except OSError:
            return Absence.NO_DATA
    number = isinstance(data, int) and kind in NUMBERS
    return RegistryValue(
        kind=kind, number=data if number else None, text=None if number else str(data)
    )


def value_names(key: str) -> tuple[str, ...]:
    """Return the names of a key's values; none when it cannot be read."""
    opened = _open(key)
    if isinstance(opened, Absence):
        return ()
    with opened:
        return tuple(_names(opened))


def _names(opened: Any) -> Iterator[str]:
    for index in range(MAX_VALUES):
        try:
            yield str(_winreg().EnumValue(opened, index)[0])
        except OSError:
            # "No more data", or the right was lost: what was read stands.
            return


def _winreg() -> Any:
    # Found by name, because the module exists on Windows only.
    return import_module("winreg")


def _open(key: str) -> Any:
    hive, _, path = key.partition("\\")
    try:
        winreg = _winreg()
        root = {"HKLM": winreg.HKEY_LOCAL_MACHINE, "HKCU": winreg.HKEY_CURRENT_USER}[hive]
        # A 32-bit program would otherwise be shown a copy.
        return winreg.OpenKey(root, path, 0, winreg.KEY_READ | winreg.KEY_WOW64_64KEY)
    except ImportError:
        return Absence.NOT_APPLICABLE
    except FileNotFoundError:
        return Absence.NO_DATA
    except PermissionError:
        return Absence.NO_PERMISSION
    except OSError:
        return Absence.ERROR
