"""An answer as it grows: in the conversation, and never far ahead of the disk."""

from collections.abc import Callable

from app.chat.thread import Thread, Turn
from app.domain.errors import ErrorInfo
from app.domain.events import GenerationFinished, TokenGenerated

SAVE_EVERY_S = 1.0


class Writing:
    """Makes one answer a turn; its caller saves when that ``is_due``."""

    def __init__(self, thread: Thread, begun: Turn | None, clock_s: Callable[[], float]) -> None:
        """Write the next turn of ``thread``, or more of the turn that was ``begun``."""
        self._thread = thread
        self._clock_s = clock_s
        self._turn = begun
        self._content = [begun.content] if begun else []
        self._reasoning = [begun.reasoning] if begun else []
        self._is_dirty = False
        self._saved_s = clock_s()

    def take(self, event: TokenGenerated) -> None:
        """Add what an event brings; the first text begins the turn."""
        if not event.text:
            return
        (self._reasoning if event.kind == "reasoning" else self._content).append(event.text)
        if self._turn is None:
            self._turn = self._thread.add("assistant", "")
        self._is_dirty = True

    def is_due(self) -> bool:
        """Whether the disk is ``SAVE_EVERY_S`` behind."""
        return self._is_dirty and self._clock_s() - self._saved_s >= SAVE_EVERY_S

    def save(self) -> ErrorInfo | None:
        """Write what came so far; return why that failed, or ``None``."""
        self._saved_s = self._clock_s()
        self._is_dirty = False
        self.rest()
        return self._thread.save()

    def rest(self) -> None:
        """Bring the thread up to date."""
        if self._turn is not None:
            content, reasoning = "".join(self._content), "".join(self._reasoning)
            self._thread.change(self._turn.id, content=content, reasoning=reasoning)

    def finish(self, end: GenerationFinished | None) -> ErrorInfo | None:
        """Write the whole turn with its timings; return why that failed, or ``None``."""
        if self._turn is not None:
            content, reasoning = "".join(self._content), "".join(self._reasoning)
            self._thread.change(
                self._turn.id, content=content, reasoning=reasoning.rstrip(), timing=end
            )
        return self._thread.save()
