"""The engine's log: our own callback, because the binding's drops real errors.

(llama-cpp-python 0.3.36 takes ggml's level numbers for others, ``_logger.py``.)
"""

import ctypes
from collections import deque

from app.domain.causes import find_cause, shorten
from app.domain.errors import ErrorInfo
from app.domain.outcome import Outcome
from app.worker import native
from app.worker.channel import Channel
from app.worker.native import llama
from app.worker.protocol import Failed, Log

# enum ggml_log_level; 5 continues the line before
_LEVELS = {2: "info", 3: "warn", 4: "error"}
_DEBUG, _CONTINUES = 1, 5
_KEPT_LINES = 400
_FORWARDED_PER_REQUEST = 40


class EngineLog:
    """Keeps the lines of the running request and forwards warnings and errors."""

    def __init__(self, channel: Channel) -> None:
        """Install the callbacks; they stay as long as the process."""
        self._channel = channel
        self._lines: deque[tuple[str, str]] = deque(maxlen=_KEPT_LINES)
        self._forwarded = 0
        self._pending = ""
        self._level = "info"
        self._is_debug = False
        self._on_log = llama.llama_log_callback(self._receive)
        self._on_abort = native.AbortCallback(self._last_words)
        llama.llama_log_set(self._on_log, ctypes.c_void_p(0))
        native.set_abort_callback(self._on_abort)

    def begin(self, *, forward: bool = True) -> None:
        """Forget earlier lines: a new request starts.

        Args:
            forward: Whether its warnings are sent; those of a dry run say nothing about it.
        """
        self._lines.clear()
        self._forwarded = 0 if forward else _FORWARDED_PER_REQUEST

    def errors(self) -> list[str]:
        """Return the warnings and errors since ``begin``, oldest first."""
        return [text for level, text in self._lines if level in {"warn", "error"}]

    def texts(self) -> list[str]:
        """Return every line since ``begin``, oldest first."""
        return [text for _, text in self._lines]

    def has(self, fragment: str) -> bool:
        """Whether a line since ``begin`` contains ``fragment``."""
        return any(fragment in text for _, text in self._lines)

    def _receive(self, level: int, text: bytes | None, _: object) -> None:
        if level != _CONTINUES:
            self._flush()
            self._is_debug = level == _DEBUG
            self._level = _LEVELS.get(level, "info")
        # a context says which node uses which input in a thousand of them: they would push the
        # lines that are looked for out, and cost half of a dry run
        if self._is_debug:
            return
        self._pending += (text or b"").decode(errors="replace")
        if self._pending.endswith("\n"):
            self._flush()

    def _flush(self) -> None:
        if not self._pending:
            return
        text, self._pending = self._pending.strip(), ""
        if not text.strip("."):  # llama.cpp draws a progress bar of dots
            return
        self._lines.append((self._level, text))
        if self._level in {"warn", "error"} and self._forwarded < _FORWARDED_PER_REQUEST:
            self._forwarded += 1
            self._channel.send(Log(level=self._level, text=shorten(text, 2000)))

    def _last_words(self, message: bytes | None) -> None:
        """Tell the parent why: the process is dead when this returns."""
        text = shorten((message or b"").decode(errors="replace"))
        cause = find_cause([*self.errors(), text])
        if cause and cause.outcome is not Outcome.UNSUPPORTED:
            self._channel.send(Failed(outcome=cause.outcome, error=cause.error))
            return
        error = ErrorInfo(
            code="engine_abort",
            message=f"The engine gave up on an internal check: {text}",
            hint="Other settings may work; please report this line to llama.cpp.",
        )
        self._channel.send(Failed(outcome=Outcome.CRASHED, error=error))
