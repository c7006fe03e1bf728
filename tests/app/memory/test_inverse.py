"""Searches for the edge of what fits."""

from hypothesis import given
from hypothesis import strategies as st

from app.memory.inverse import cheapest, largest, smallest

small = st.integers(-50, 50)


@given(low=small, width=st.integers(0, 60), edge=small, guess=st.none() | small)
def test_largest_finds_the_edge(low: int, width: int, edge: int, guess: int | None) -> None:
    """The answer is the edge, cut to the range, wherever the search begins."""
    found = largest(low, low + width, lambda v: v <= edge, guess)
    assert found == (min(edge, low + width) if edge >= low else None)


@given(low=small, width=st.integers(0, 60), edge=small, guess=st.none() | small)
def test_smallest_finds_the_edge(low: int, width: int, edge: int, guess: int | None) -> None:
    """The same from the other side."""
    found = smallest(low, low + width, lambda v: v >= edge, guess)
    assert found == (max(edge, low) if edge <= low + width else None)


def test_a_good_guess_asks_twice() -> None:
    """From the right guess one question confirms it and one the value beyond."""
    asked: list[int] = []

    def fits(value: int) -> bool:
        asked.append(value)
        return value <= 40

    assert largest(0, 65, fits, guess=40) == 40
    assert asked == [40, 41]


def test_cheapest_is_the_first_that_fits() -> None:
    """Order is preference."""
    assert cheapest(("f16", "q8_0", "q4_0"), lambda v: v != "f16") == "q8_0"
    assert cheapest(("f16",), lambda _: False) is None
