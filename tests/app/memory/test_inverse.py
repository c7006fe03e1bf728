"""Searches for the edge of what fits."""

import math
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from app.memory.inverse import cheapest, largest, past_gaps, smallest

small = st.integers(-50, 50)
# how the room shrinks: evenly, ever faster, in a jump; and where only yes or no is known
curves = st.sampled_from(
    [
        lambda left: left,
        lambda left: left * 7e9 + 3,
        lambda left: left * abs(left),
        lambda left: math.copysign(2.0 ** abs(left), left),
        lambda left: 1e9 if left >= 0 else -1,
        lambda left: 0 if left >= 0 else -1e12,
        lambda left: math.inf if left >= 0 else -math.inf,
        lambda left: left if left >= 0 else -math.inf,
    ]
)


@given(low=small, width=st.integers(0, 60), edge=small, guess=st.none() | small, curve=curves)
def test_largest_finds_the_edge(
    low: int, width: int, edge: int, guess: int | None, curve: Callable[[int], float]
) -> None:
    """The answer is the edge, cut to the range, wherever the search begins."""
    found = largest(low, low + width, lambda v: curve(edge - v), guess)
    assert found == (min(edge, low + width) if edge >= low else None)


@given(low=small, width=st.integers(0, 60), edge=small, guess=st.none() | small, curve=curves)
def test_smallest_finds_the_edge(
    low: int, width: int, edge: int, guess: int | None, curve: Callable[[int], float]
) -> None:
    """The same from the other side."""
    found = smallest(low, low + width, lambda v: curve(v - edge), guess)
    assert found == (max(edge, low) if edge <= low + width else None)


def counted(room: Callable[[int], float], high: int) -> tuple[int | None, int]:
    """Return the edge in 1…``high`` and how many questions found it."""
    asked: list[int] = []

    def ask(value: int) -> float:
        asked.append(value)
        return room(value)

    return largest(1, high, ask), len(asked)


@given(edge=st.integers(1, 4095), curve=curves)
def test_a_search_is_never_much_longer_than_halving(
    edge: int, curve: Callable[[int], float]
) -> None:
    """Whatever the rooms say: the range is halved at least with every third question."""
    found, n_asked = counted(lambda v: curve(max(-900, min(900, edge - v))), 4096)
    assert found == edge
    assert n_asked <= 2 + 3 * 12


@given(free=st.integers(0, 1 << 34), per_step=st.integers(1 << 20, 1 << 25))
def test_what_shrinks_evenly_is_found_at_once(free: int, per_step: int) -> None:
    """Both ends, the edge, and the values beside it: a cache grows evenly with the context."""
    found, n_asked = counted(lambda v: free - v * per_step, 4096)
    assert found == (min(4096, free // per_step) or None)
    assert n_asked <= 5


def test_a_bend_costs_few_more_questions() -> None:
    """From where scores or masks are the fullest moment the need grows faster."""
    found, n_asked = counted(lambda v: 3e9 - 2e6 * v - max(0, 4e6 * (v - 300)), 4096)
    assert found == 700
    assert n_asked <= 8


def test_a_good_guess_asks_twice() -> None:
    """From the right guess one question confirms it and one the value beyond."""
    asked: list[int] = []

    def room(value: int) -> int:
        asked.append(value)
        return 40 - value

    assert largest(0, 65, room, guess=40) == 40
    assert asked == [40, 41]


def test_cheapest_is_the_first_that_fits() -> None:
    """Order is preference."""
    assert cheapest(("f16", "q8_0", "q4_0"), lambda v: v != "f16") == "q8_0"
    assert cheapest(("f16",), lambda _: False) is None


@given(high=st.integers(2, 30), beyond=st.sets(st.integers(2, 30)), gap=st.integers(0, 3))
def test_gaps_up_to_a_width_are_passed(high: int, beyond: set[int], gap: int) -> None:
    """From 0, which fits, and 1, which does not, over ``gap`` values, or to where it may fit."""
    good = {0, *(v for v in beyond if v <= high)}
    expected = 0
    while True:
        further = [v for v in good if expected < v <= expected + gap + 1]
        if not further:
            break
        expected = max(further)

    def room(value: int) -> float:
        return 0 if value in good else -1

    assert past_gaps(0, high, room, gap, lambda _: False) == expected
    most = max((v for v in good if 0 < v <= high and v != 1), default=0)
    assert past_gaps(0, high, room, gap, good.__contains__) == most
