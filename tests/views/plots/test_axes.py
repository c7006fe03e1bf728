"""The axes: counts have whole ticks."""

import pytest

from views.plots.axes import WholeAxis


@pytest.mark.parametrize("high", [1.5, 2.5, 4.5, 60.0, 4000.0])
def test_ticks_of_counts_are_whole(qapp: object, high: float) -> None:
    """No tick may lie between two whole numbers, and there must be at least one."""
    axis = WholeAxis("bottom")
    ticks = [t for _, level in axis.tickValues(0.5, high, 700) for t in level]
    assert ticks
    assert all(float(t).is_integer() for t in ticks)
