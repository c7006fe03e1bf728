"""A thread-safe mailbox between a working thread and the window, without Qt."""

import threading
from collections.abc import Callable

from app.domain.events import TokenGenerated, TrialProgress


class Outbox:
    """Collects events for one reader and merges those the reader would overwrite anyway."""

    def __init__(self, wake: Callable[[], None], limit: int | None = None) -> None:
        """Start empty.

        Args:
            wake: Called from the writing thread when something lies here and nobody was told.
            limit: Most items kept, the oldest go first; ``None`` = all.
        """
        self._wake = wake
        self._limit = limit
        self._lock = threading.Lock()
        self._items: list[object] = []
        self._is_told = False

    def put(self, item: object) -> None:
        """Leave ``item`` for the reader; any thread."""
        with self._lock:
            merged = merge(self._items[-1], item) if self._items else None
            if merged is None:
                self._items.append(item)
            else:
                self._items[-1] = merged
            if self._limit is not None and len(self._items) > self._limit:
                del self._items[0]
            tell, self._is_told = not self._is_told, True
        if tell:
            self._wake()

    def take(self) -> list[object]:
        """Return everything that lies here, oldest first, and empty the box."""
        with self._lock:
            items, self._items = self._items, []
            self._is_told = False
        return items


def merge(old: object, new: object) -> object | None:
    """Return one event that says what both say, or ``None`` when both must be kept."""
    if isinstance(old, TokenGenerated) and isinstance(new, TokenGenerated):
        # a sign of life has no text and belongs to any part
        if old.text and new.text and old.kind != new.kind:
            return None
        kind = new.kind if new.text else old.kind
        return TokenGenerated(text=old.text + new.text, n_tok=new.n_tok, kind=kind)
    if isinstance(old, TrialProgress) and isinstance(new, TrialProgress):
        return new
    return None
