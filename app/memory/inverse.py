"""Search for the largest, smallest or first value that fits; need is monotone in each knob."""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

Room = Callable[[int], float]
"""How much a value leaves free: 0 or more where it fits, infinite where nobody knows how much."""

# questions that may leave more than half of the range before it is halved
_PATIENCE = 2


class _Asked(NamedTuple):
    value: int
    room: float


def largest(low: int, high: int, room: Room, guess: int | None = None) -> int | None:
    """Return the largest value in ``low``…``high`` that fits, where smaller ones fit too.

    Between one that fits and one that does not the next question is where the room would end if
    it shrank evenly. The answer and the value beyond it were both asked.

    Args:
        low: Smallest value.
        high: Largest value.
        room: The question; asked as rarely as possible.
        guess: A likely answer, to start near it.

    Returns:
        The value; ``None`` when not even ``low`` fits.
    """
    good, bad = _ends(low, high, room) if guess is None else _around(guess, low, high, room)
    n_slow, was_good = 0, None
    while bad.value - good.value > 1:
        width = bad.value - good.value
        asked = _ask(room, _between(good, bad, is_even=n_slow < _PATIENCE))
        is_good = asked.room >= 0
        # an end that stays once more counts half: where the room bends, it would stay on and on
        weight = 0.5 if is_good is was_good else 1.0
        if is_good:
            good, bad = asked, _Asked(bad.value, bad.room * weight)
        else:
            good, bad = _Asked(good.value, good.room * weight), asked
        n_slow = n_slow + 1 if 2 * (bad.value - good.value) > width else 0
        was_good = is_good
    return good.value if good.value >= low else None


def past_gaps(found: int, high: int, room: Room, gap: int, sinks: Callable[[int], bool]) -> int:
    """Return the largest value from ``found`` on that fits, past values that do not.

    For needs that sink again: one layer more moves the borders between devices, too.

    Args:
        found: Answer of ``largest``, or the value below the smallest: the next one does not fit.
        high: Largest value.
        room: The question.
        gap: How many values beyond one that fits are asked in any case.
        sinks: Whether a value may need less of something than the one before; asked, too.
    """
    last = found + gap + 1
    for value in range(found + 2, high + 1):
        if (value <= last or sinks(value)) and room(value) >= 0:
            found, last = value, value + gap + 1
    return found


def smallest(low: int, high: int, room: Room, guess: int | None = None) -> int | None:
    """Return the smallest value in ``low``…``high`` that fits, where larger ones fit too."""
    found = largest(-high, -low, lambda value: room(-value), None if guess is None else -guess)
    return None if found is None else -found


def cheapest(values: Iterable[str], fits: Callable[[str], bool]) -> str | None:
    """Return the first of ``values`` that fits."""
    return next((v for v in values if fits(v)), None)


def _ask(room: Room, value: int) -> _Asked:
    return _Asked(value, room(value))


def _between(good: _Asked, bad: _Asked, *, is_even: bool) -> int:
    """Return what to ask between the two, by their rooms or, if need be, in the middle."""
    width = bad.value - good.value
    share = 0.5
    if is_even and math.isfinite(good.room - bad.room):
        share = good.room / (good.room - bad.room)
    return good.value + min(max(1, int(share * width)), width - 1)


def _ends(low: int, high: int, room: Room) -> tuple[_Asked, _Asked]:
    """Return a value that fits and a larger one that does not: the ends, or just beyond them."""
    below, above = _Asked(low - 1, math.inf), _Asked(high + 1, -math.inf)
    last = _ask(room, high)
    if last.room >= 0:
        return last, above
    first = _ask(room, low) if low < high else last
    return (first, last) if first.room >= 0 else (below, first)


def _around(guess: int, low: int, high: int, room: Room) -> tuple[_Asked, _Asked]:
    """Return the same near ``guess``, stepping out from it."""
    below, above = _Asked(low - 1, math.inf), _Asked(high + 1, -math.inf)
    at, step = _ask(room, min(max(guess, low), high)), 1
    if at.room >= 0:
        while at.value < high:
            further = _ask(room, min(high, at.value + step))
            if further.room < 0:
                return at, further
            at, step = further, step * 2
        return at, above
    while at.value > low:
        further = _ask(room, max(low, at.value - step))
        if further.room >= 0:
            return further, at
        at, step = further, step * 2
    return below, at
