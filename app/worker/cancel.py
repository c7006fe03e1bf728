"""A flag that both Python threads and the engine's own code can read."""

import ctypes
import sys

from app.domain.errors import ErrorInfo
from app.domain.outcome import Outcome


class EngineFailure(Exception):
    """The engine refused or failed; ``outcome`` and ``error`` go to the parent as they are."""

    def __init__(self, outcome: Outcome, code: str, message: str, hint: str = "") -> None:
        """Keep what the parent is told."""
        super().__init__(message)
        self.outcome = outcome
        self.error = ErrorInfo(code=code, message=message, hint=hint)


class Cancelled(EngineFailure):
    """The parent asked to stop."""

    def __init__(self) -> None:
        """Carry the one thing there is to say."""
        super().__init__(Outcome.CANCELLED, "cancelled", "The request was cancelled.")


class CancelFlag:
    """Set by the reading thread, polled by Python between calls and by llama.cpp inside one.

    llama.cpp polls its abort callback at every graph node. A Python callback there would take
    the interpreter lock hundreds of times per token, so the callback is the C library's
    ``strlen`` over a two-byte text: 0 (false) while it is empty, 1 (true) once it is not.
    """

    def __init__(self) -> None:
        """Start unset."""
        self._text = ctypes.create_string_buffer(2)
        c_library = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
        self.function = ctypes.cast(c_library.strlen, ctypes.c_void_p).value or 0
        self.data = ctypes.addressof(self._text)

    def set(self) -> None:
        """Ask whatever runs to stop."""
        self._text[0] = b"\x01"

    def clear(self) -> None:
        """Forget an earlier request."""
        self._text[0] = b"\x00"

    def is_set(self) -> bool:
        """Whether to stop."""
        return self._text.raw[0] != 0

    def check(self) -> None:
        """Raise when the flag is set.

        Raises:
            Cancelled: It is.
        """
        if self.is_set():
            raise Cancelled
