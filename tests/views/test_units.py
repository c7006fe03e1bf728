"""Units the user prefers."""

from collections.abc import Iterator

import pytest

from views.units import format_bytes, keep_units, temperature_unit, use_units


@pytest.fixture(autouse=True)
def default_units() -> Iterator[None]:
    """Leave the units as they were."""
    yield
    use_units(binary=True, celsius=True)


def test_sizes_in_both_bases() -> None:
    """The same size must be larger in powers of ten; a missing one stays missing."""
    assert format_bytes(8 << 30) == "8.00\u00a0GiB"
    use_units(binary=False, celsius=True)
    assert format_bytes(8 << 30) == "8.59\u00a0GB"
    assert format_bytes(500_000_000) == "500\u00a0MB"
    assert format_bytes(None) == "—"


def test_fahrenheit() -> None:
    """Boiling water must be at 212 °F."""
    use_units(binary=True, celsius=False)
    unit, factor, zero = temperature_unit()
    assert (unit, 100 * factor + zero) == ("°F", 212.0)


def test_a_number_keeps_its_unit_where_a_text_wraps() -> None:
    """Before %, ms and the like a line must not end; other words wrap as they did."""
    assert keep_units("takes 36 % longer, 63.7 ms") == "takes 36\u00a0% longer, 63.7\u00a0ms"
    assert keep_units("25 GPU layers, 2 searches") == "25 GPU layers, 2 searches"
