"""Turns generated tokens into text as they come, each byte read once."""

import codecs
from collections.abc import Sequence


class TextStream:
    """Completes multi-byte characters across tokens and holds back what may be a stop string."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        """Watch for the strings in ``stop``."""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop = tuple(s for s in stop if s)
        self._held = ""
        self.stopped = False

    @property
    def has_stop(self) -> bool:
        """Whether there is a string to watch for."""
        return bool(self._stop)

    def feed(self, piece: bytes) -> str:
        """Return the text that is certain now; sets ``stopped`` at a stop string."""
        return self._release(self._decoder.decode(piece))

    def finish(self) -> str:
        """Return what was held back, at the end of the answer."""
        rest = self._release(self._decoder.decode(b"", final=True))
        if self.stopped:
            return rest
        rest, self._held = rest + self._held, ""
        return rest

    def _release(self, text: str) -> str:
        if self.stopped:
            return ""
        if not self._stop:
            return text
        text = self._held + text
        found = [i for i in (text.find(s) for s in self._stop) if i >= 0]
        if found:
            self.stopped = True
            self._held = ""
            return text[: min(found)]
        keep = max((overlap(text, s) for s in self._stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def overlap(text: str, sought: str) -> int:
    """Return how many characters at the end of ``text`` could begin ``sought``."""
    longest = min(len(text), len(sought) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(sought[:n])), 0)
