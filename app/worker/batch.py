"""Token batches whose arrays are filled once, so that a timed loop only makes calls."""

import ctypes
from collections.abc import Sequence
from typing import Any

from app.domain.outcome import Outcome
from app.worker.cancel import Cancelled, EngineFailure
from app.worker.engine import Context, Engine
from app.worker.native import llama

_INT = ctypes.sizeof(ctypes.c_int32)
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_ABORTED, _NO_SLOT = 2, 1


class Tokens:
    """Tokens of one or more sequences, one sequence after the other, as llama.cpp reads them.

    Only the last token of each sequence asks for logits, unless all shall.
    """

    def __init__(
        self, sequences: Sequence[Sequence[int]], start: int, *, all_logits: bool = False
    ) -> None:
        """Lay out ``sequences``, each beginning at position ``start`` of its own sequence."""
        self.n_seq = len(sequences)
        total = sum(len(s) for s in sequences)
        self.tokens = (ctypes.c_int32 * total)(*(t for s in sequences for t in s))
        self.positions = (ctypes.c_int32 * total)(
            *(start + i for s in sequences for i in range(len(s)))
        )
        self._n_seq_id = (ctypes.c_int32 * total)(*([1] * total))
        self._ids = (ctypes.c_int32 * self.n_seq)(*range(self.n_seq))
        base = ctypes.addressof(self._ids)
        self._seq_id = (ctypes.c_void_p * total)(
            *(base + index * _INT for index, s in enumerate(sequences) for _ in s)
        )
        self._logits = (ctypes.c_int8 * total)(
            *(int(all_logits or i == len(s) - 1) for s in sequences for i in range(len(s)))
        )
        self._total = total

    def batches(self, size: int) -> list[Any]:
        """Return the tokens as batches of at most ``size``."""
        return [self._slice(i, min(size, self._total - i)) for i in range(0, self._total, size)]

    def _slice(self, start: int, length: int) -> Any:
        return llama.llama_batch(
            n_tokens=length,
            token=_at(self.tokens, start * _INT, ctypes.c_int32),
            embd=None,
            pos=_at(self.positions, start * _INT, ctypes.c_int32),
            n_seq_id=_at(self._n_seq_id, start * _INT, ctypes.c_int32),
            seq_id=_at(self._seq_id, start * _POINTER, ctypes.POINTER(ctypes.c_int32)),
            logits=_at(self._logits, start, ctypes.c_int8),
        )


def check_decode(code: int, engine: Engine) -> None:
    """Turn a return code of ``llama_decode`` into the failure it means.

    Raises:
        EngineFailure: It was not 0.
    """
    if code == 0:
        return
    if code == _ABORTED and engine.cancel.is_set():
        raise Cancelled
    if code == _NO_SLOT:
        message, hint = "The context is full.", "Use a longer context."
        raise EngineFailure(Outcome.UNSUPPORTED, "context_full", message, hint)
    raise engine.failure(Outcome.CRASHED, "decode_failed", f"decode (code {code})")


def decode_all(context: Context, batches: Sequence[Any], engine: Engine) -> None:
    """Decode ``batches`` and wait for the result.

    Raises:
        EngineFailure: The engine failed, or the parent cancelled.
    """
    for batch in batches:
        engine.cancel.check()
        check_decode(llama.llama_decode(context.handle, batch), engine)
    llama.llama_synchronize(context.handle)


def _at(array: Any, offset: int, kind: Any) -> Any:
    return ctypes.cast(ctypes.addressof(array) + offset, ctypes.POINTER(kind))
