"""Formatting that every surface shares."""

import pytest

from app.domain.units import (
    GIB,
    MIB,
    counted,
    format_bytes,
    format_seconds,
    format_tok_s,
    significant,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.012345, "0.0123"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (123.4, "123"),
        (9.999, "10.00"),
        (1234.0, "1,234"),
    ],
)
def test_three_significant_digits_without_exponent(value: float, text: str) -> None:
    """A figure keeps three significant digits, and thousands are grouped."""
    assert significant(value) == text


def test_missing_is_a_dash_and_zero_is_zero() -> None:
    """What is not known never looks like a number."""
    assert format_bytes(None) == "—"
    assert format_tok_s(None) == "—"
    assert format_seconds(None) == "—"
    assert format_bytes(0) == "0\u00a0MiB"


def test_sizes_switch_to_gib_at_one_gib() -> None:
    """Memory is in powers of two and names its unit."""
    assert format_bytes(GIB - MIB) == "1023\u00a0MiB"
    assert format_bytes(GIB) == "1.00\u00a0GiB"
    assert format_bytes(24 * GIB) == "24.0\u00a0GiB"


def test_durations_choose_their_unit() -> None:
    """Milliseconds, seconds and minutes each where they read best."""
    assert format_seconds(0.25) == "250\u00a0ms"
    assert format_seconds(3.21) == "3.2\u00a0s"
    assert format_seconds(45.4) == "45\u00a0s"
    assert format_seconds(600) == "10\u00a0min"


def test_nouns_follow_their_number() -> None:
    """One is singular, none and several are plural, whatever the noun."""
    shown = [counted(n, "layer") for n in (0, 1, 2, 1500)]
    assert shown == ["0 layers", "1 layer", "2 layers", "1,500 layers"]
    assert counted(2, "profile was", "profiles were") == "2 profiles were"
