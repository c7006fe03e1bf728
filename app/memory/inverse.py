"""Search for the largest, smallest or first value that fits; need is monotone in each knob."""

from collections.abc import Callable, Iterable

Fits = Callable[[int], bool]


def largest(low: int, high: int, fits: Fits, guess: int | None = None) -> int | None:
    """Return the largest value in ``low``…``high`` that fits, where smaller ones fit too.

    Args:
        low: Smallest value.
        high: Largest value.
        fits: The question; asked as rarely as possible.
        guess: A likely answer, to start near it.

    Returns:
        The value; ``None`` when not even ``low`` fits.
    """
    good, bad = _bracket(low, high, fits, high if guess is None else guess)
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good if good >= low else None


def smallest(low: int, high: int, fits: Fits, guess: int | None = None) -> int | None:
    """Return the smallest value in ``low``…``high`` that fits, where larger ones fit too."""
    found = largest(-high, -low, lambda value: fits(-value), -low if guess is None else -guess)
    return None if found is None else -found


def cheapest(values: Iterable[str], fits: Callable[[str], bool]) -> str | None:
    """Return the first of ``values`` that fits."""
    return next((v for v in values if fits(v)), None)


def _bracket(low: int, high: int, fits: Fits, guess: int) -> tuple[int, int]:
    """Return a value that fits and a larger one that does not, stepping out from ``guess``."""
    start = min(max(guess, low), high)
    step = 1
    if fits(start):
        good = start
        while good < high:
            probe = min(high, good + step)
            if not fits(probe):
                return good, probe
            good, step = probe, step * 2
        return good, high + 1
    bad = start
    while bad > low:
        probe = max(low, bad - step)
        if fits(probe):
            return probe, bad
        bad, step = probe, step * 2
    return low - 1, low
