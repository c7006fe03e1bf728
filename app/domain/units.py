"""Byte and time constants, and the formatting that every surface shares.

Memory is in GiB and MiB (powers of two); bandwidth in GB/s (decimal), as vendors print it.
"""

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
NS_PER_S = 1_000_000_000

MISSING = "—"
NBSP = "\u00a0"


def significant(value: float, digits: int = 3) -> str:
    """Return ``value`` with ``digits`` significant digits and no exponent."""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - _exponent(value))
    return f"{value:,.{decimals}f}"


def format_bytes(n_bytes: int | None) -> str:
    """Return a memory size in GiB or MiB; "—" when it is not known."""
    if n_bytes is None:
        return MISSING
    if abs(n_bytes) >= GIB:
        return f"{significant(n_bytes / GIB)}{NBSP}GiB"
    return f"{n_bytes / MIB:.0f}{NBSP}MiB"


def format_tok_s(tok_s: float | None) -> str:
    """Return a speed in tokens per second; "—" when it is not known."""
    return MISSING if tok_s is None else f"{significant(tok_s)}{NBSP}tok/s"


def format_seconds(seconds: float | None) -> str:
    """Return a duration as ms, s or min; "—" when it is not known."""
    if seconds is None:
        return MISSING
    if seconds < 1:
        return f"{seconds * 1000:.0f}{NBSP}ms"
    if seconds < 120:
        return f"{significant(seconds, 2) if seconds < 10 else f'{seconds:.0f}'}{NBSP}s"
    return f"{seconds / 60:.0f}{NBSP}min"


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun: ``1 layer``, ``2 layers``.

    Args:
        n: How many.
        one: Noun for one.
        many: Noun for several, where it is not ``one`` with an s.
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _exponent(value: float) -> int:
    return int(f"{abs(value):e}".partition("e")[2])
