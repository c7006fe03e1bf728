"""A worker without an engine that streams tokens at a fixed pace: ``paced_worker.py TOK_S``.

What reads it pays what it pays for a real one: pipe, protocol, threads. Four characters a token.
"""

import sys
import threading
import time
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from typing_extensions import override

from app.worker import protocol
from tests.fakes.faulty_worker import FaultyWorker

CHARS_PER_TOKEN = 4
PROSE = "Every token that is read adds to the **cache**, and the cache is read for every token. "
ANSWER = (
    (PROSE * 5 + "\n\n") * 3
    + "```python\n" + "".join(f"value_{n} = go({n})  # line {n}\n" for n in range(25)) + "```\n\n"
    + "- one\n- two\n- three\n\n" + "With $x_1$ and \\(y_2\\).\n\n"
)  # fmt: skip


class PacedWorker(FaultyWorker):
    """Answers without end, until it is told to stop."""

    def __init__(self, tok_s: float) -> None:
        """Stream ``tok_s`` tokens a second."""
        super().__init__({})
        self._tok_s = tok_s
        self._stopping = threading.Event()

    @override
    def answer(self, request: protocol.Request) -> None:
        """Answer one request; a stream goes on beside the next ones."""
        match request:
            case protocol.Generate():
                self._stopping.clear()
                threading.Thread(target=self._stream, daemon=True).start()
            case protocol.Cancel():
                self._stopping.set()
            case _:
                super().answer(request)

    def _stream(self) -> None:
        self.send(protocol.GenerateStarted(n_prompt=20, n_reused=0, n_ctx=131072, template="model"))
        begin_s = time.perf_counter()
        for n_tok in count(1):
            left_s = begin_s + n_tok / self._tok_s - time.perf_counter()
            if self._stopping.wait(max(0.0, left_s)):
                break
            at = n_tok * CHARS_PER_TOKEN % len(ANSWER)
            text = (ANSWER + ANSWER)[at : at + CHARS_PER_TOKEN]
            self.send(protocol.Token(text=text, n_tok=n_tok))
        self.send(protocol.GenerateFinished(
            reason="cancelled", n_prompt=20, n_reused=0, n_gen=n_tok, ttft_ns=1, prefill_ns=1,
            decode_ns=1,
        ))  # fmt: skip


if __name__ == "__main__":
    PacedWorker(float(sys.argv[1])).serve()
