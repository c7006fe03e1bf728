"""Sizes and temperatures in the units the user prefers."""

import re
from dataclasses import dataclass

from app.domain.units import GIB, MIB, MISSING, NBSP, significant
from app.domain.units import format_bytes as binary_bytes

GB = 10**9
MB = 10**6
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|°|[kKMG]i?B|m?s\b|tok/s|m?W\b)")


@dataclass
class _Choice:
    """The one state of this module: both come from the preferences and change rarely."""

    is_binary: bool = True
    is_celsius: bool = True


_choice = _Choice()


def use_units(*, binary: bool, celsius: bool) -> None:
    """Write sizes and temperatures this way from now on; what is on screen is built anew."""
    _choice.is_binary = binary
    _choice.is_celsius = celsius


def format_bytes(n_bytes: int | None) -> str:
    """Return a size in GiB or MiB (GB or MB where preferred); "—" when it is not known."""
    if n_bytes is None:
        return MISSING
    if _choice.is_binary:
        return binary_bytes(n_bytes)
    if abs(n_bytes) >= GB:
        return f"{significant(n_bytes / GB)}{NBSP}GB"
    return f"{n_bytes / MB:.0f}{NBSP}MB"


def large_unit() -> tuple[str, float]:
    """Return the unit of large sizes and the factor from bytes."""
    return ("GiB", 1 / GIB) if _choice.is_binary else ("GB", 1 / GB)


def small_unit() -> tuple[str, float]:
    """Return the unit of small sizes and the factor from bytes."""
    return ("MiB", 1 / MIB) if _choice.is_binary else ("MB", 1 / MB)


def temperature_unit() -> tuple[str, float, float]:
    """Return the unit of temperatures, factor and offset from degrees Celsius."""
    return ("°C", 1.0, 0.0) if _choice.is_celsius else ("°F", 1.8, 32.0)


def keep_units(text: str) -> str:
    """Return ``text`` with each number and its unit on one line, wherever it wraps."""
    return _BEFORE_UNIT.sub(NBSP, text)
