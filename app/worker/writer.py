"""Turns generated tokens into messages: at most 30 a second, however fast the tokens come."""

import re
from collections.abc import Callable, Iterable

from app.worker.detokenize import TextStream
from app.worker.engine import Model
from app.worker.pieces import ANSWER, Marker, Pieces
from app.worker.prompt import Prompt, token_bytes
from app.worker.protocol import Message, Token

MIN_GAP_NS = 33_000_000
"""A message costs more than all else around a token: nobody sees more of them than these."""

_SPECIAL_WORD = re.compile(r"<[^<>]+>|\[[A-Z_/]+\]")


class Writer:
    """Says the text of one answer.

    Tokens wait until the next message is due and are turned into text together. Only a stop
    string has every token read at once, because it ends the answer.
    """

    def __init__(
        self, model: Model, prompt: Prompt, stop: Iterable[str], send: Callable[[Message], None]
    ) -> None:
        """Write the answer to ``prompt``; it ends before any string in ``stop``."""
        self._model = model
        self._send = send
        self._stream = TextStream(tuple(stop))
        self._pieces = Pieces(prompt.markers, prompt.inside)
        self._borders = _border_texts(prompt.markers)
        self._tokens: list[int] = []
        self._known: dict[int, bytes] = {}
        self._said: list[tuple[str, str]] = []
        self._due_ns = 0

    @property
    def stopped(self) -> bool:
        """Whether a stop string came."""
        return self._stream.stopped

    def write(self, token: int, n_tok: int, now_ns: int) -> bool:
        """Take the ``n_tok``-th token, of ``now_ns``; return whether it was time to say it."""
        self._tokens.append(token)
        if self._stream.has_stop:
            self._read()
        if now_ns < self._due_ns:
            return False
        self._due_ns = now_ns + MIN_GAP_NS
        self._say(n_tok)
        return True

    def flush(self, n_tok: int) -> None:
        """Say what waits, before a pause."""
        if self._tokens or self._said:
            self._say(n_tok)

    def finish(self, n_tok: int) -> None:
        """Say all that is left, at the end of the answer."""
        self._read()
        rest = self._stream.finish()
        if rest:
            self._keep(self._pieces.feed(rest))
        self._keep(self._pieces.finish())
        self.flush(n_tok)

    def _say(self, n_tok: int) -> None:
        """Say what has come since the last time; that it was no text is said, too."""
        self._read()
        for kind, text in self._said or ((ANSWER, ""),):
            self._send(Token(text=text, n_tok=n_tok, kind=kind))
        self._said = []

    def _read(self) -> None:
        if self._tokens:
            known = self._known
            data = b"".join([known[t] if t in known else self._spell(t) for t in self._tokens])
            self._tokens = []
            self._keep(self._pieces.feed(self._stream.feed(data)))

    def _spell(self, token: int) -> bytes:
        data = token_bytes(self._model, token)
        if not data and self._borders:
            # control tokens have no text of their own; those that border a part are needed
            shown = token_bytes(self._model, token, special=True)
            data = shown if shown in self._borders else b""
        self._known[token] = data
        return data

    def _keep(self, pieces: Iterable[tuple[str, str]]) -> None:
        for kind, text in pieces:
            if self._said and self._said[-1][0] == kind:
                text = self._said.pop()[1] + text  # noqa: PLW2901 - one piece of both
            if text:
                self._said.append((kind, text))


def _border_texts(markers: Iterable[Marker]) -> frozenset[bytes]:
    """Return the words that markers are made of, as single tokens spell them."""
    texts = "".join(m.open + m.close for m in markers)
    words = _SPECIAL_WORD.findall(texts) + [t for m in markers for t in (m.open, m.close) if t]
    return frozenset(w.encode() for w in [*words, "<|constrain|>"]) if words else frozenset()
