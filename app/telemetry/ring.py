"""The recent past of one device: fixed memory, numbers only, gaps kept as gaps."""

import math
from array import array
from collections.abc import Iterable
from typing import NamedTuple

CAPACITY = 2400
"""Rows: 40 min at 1 Hz, 8 min at 5 Hz."""
GAP_INTERVALS = 3.0
"""A pause longer than this many intervals is a gap in the line, not a slope."""


class Series(NamedTuple):
    """One quantity over time, oldest first; NaN where it was not known.

    ``t_s`` is ``time.perf_counter()`` time. Both are copies: use them on any thread.
    """

    t_s: "array[float]"
    values: "array[float]"


class Ring:
    """A table of fixed size whose oldest row is overwritten."""

    def __init__(self, columns: Iterable[str], capacity: int = CAPACITY) -> None:
        """Allocate all memory at once: 8 bytes per column and row."""
        self.columns = tuple(columns)
        self._capacity = capacity
        self._t = array("d", [math.nan]) * capacity
        self._data = {name: array("d", [math.nan]) * capacity for name in self.columns}
        self._count = 0
        self._last_known = dict.fromkeys(self.columns, -capacity - 1)

    def append(self, t_s: float, row: Iterable[float | None], interval_s: float) -> None:
        """Add a row of one value per column; a late one is preceded by an empty row."""
        last = self._t[(self._count - 1) % self._capacity] if self._count else t_s
        if t_s - last > GAP_INTERVALS * interval_s:
            self._put(last + interval_s, [None] * len(self.columns))
        self._put(t_s, row)

    def series(self, column: str) -> Series:
        """Return a copy of one column."""
        return Series(self._ordered(self._t), self._ordered(self._data[column]))

    def has(self, column: str) -> bool:
        """Whether a column holds any value."""
        return self._last_known[column] >= self._count - self._capacity

    def _put(self, t_s: float, row: Iterable[float | None]) -> None:
        at = self._count % self._capacity
        self._t[at] = t_s
        for (name, column), value in zip(self._data.items(), row, strict=True):
            column[at] = math.nan if value is None else value
            if not math.isnan(column[at]):
                self._last_known[name] = self._count
        self._count += 1

    def _ordered(self, column: "array[float]") -> "array[float]":
        if self._count <= self._capacity:
            return column[: self._count]
        start = self._count % self._capacity
        return column[start:] + column[:start]
