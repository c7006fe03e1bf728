"""The context of a conversation and what its cache holds: only what differs is read again."""

import time
from collections.abc import Callable, Sequence

from app.worker.batch import Tokens, check_decode
from app.worker.branches import (
    MIN_TOK,
    Branch,
    Branches,
    Checkpoint,
    common,
    copy_state,
    partial_size,
    restore_branch,
    restore_partial,
)
from app.worker.engine import Context, Engine
from app.worker.native import llama

_MAX_CHECKPOINTS = 16
_MAX_CHECKPOINT_BYTES = 512 << 20


class Cache:
    """Tokens in the cache of one context, sequence 0.

    Attributes:
        context: The context.
        tokens: What it has decoded.
    """

    def __init__(self, engine: Engine, context: Context) -> None:
        """Start empty."""
        self.context = context
        self.tokens: list[int] = []
        self._engine = engine
        self._checkpoints: list[Checkpoint] = []
        self._branches = Branches()
        model = context.model
        self._only_advances = model.is_recurrent or model.is_hybrid
        # arrays that every step of one token uses again
        self._one = Tokens([[0]], 0)
        self._one_batch = self._one.batches(1)[0]

    def free(self) -> None:
        """Release the context."""
        self._checkpoints.clear()
        self._branches.clear()
        self.context.free()

    def reuse(self, prompt: Sequence[int]) -> int:
        """Return how many leading tokens of ``prompt`` are valid in the cache; drop the rest.

        At least one token must be decoded anew to have logits.
        """
        wanted = prompt[:-1]
        length = common(self.tokens, wanted)
        branch = self._branches.best(wanted, length)
        if branch is not None or len(self.tokens) - length >= MIN_TOK:
            self._branches.keep(self.context.handle, self.tokens, self._checkpoints)
        if branch is not None:
            self._return_to(branch)
            length = common(self.tokens, wanted)
        if length < len(self.tokens):
            length = self._rewind(length)
        if length == 0:
            self.clear()
        self.tokens = list(prompt[:length])
        self._checkpoints = [c for c in self._checkpoints if c.length <= length]
        return length

    def clear(self) -> None:
        """Forget everything."""
        llama.llama_memory_clear(self.context.memory, True)
        self.tokens = []
        self._checkpoints = []

    def forget(self) -> None:
        """Forget the branches that were left, too."""
        self.clear()
        self._branches.clear()

    def prefill(
        self, tokens: Sequence[int], size: int, on_batch: Callable[[int, float], int]
    ) -> None:
        """Decode ``tokens`` after those already there.

        Where the model cannot be rewound, the state before the last token is kept: the same
        question can then be answered again, or followed by another turn, without reading it all.

        Args:
            tokens: The rest of the prompt.
            size: Tokens of the first batch.
            on_batch: Told tokens and seconds of each batch; returns the size of the next.

        Raises:
            EngineFailure: The engine failed, or the parent cancelled.
        """
        start, end = 0, len(tokens)
        border = end - 1 if self._needs_checkpoints() else end
        while start < end:
            if start == border:
                self._save()
            stop = min(start + size, border if start < border else end)
            self._engine.cancel.check()
            part = list(tokens[start:stop])
            begin_s = time.perf_counter()
            batch = Tokens([part], len(self.tokens))
            code = llama.llama_decode(self.context.handle, batch.batches(len(part))[0])
            if code:
                self._refuse(code)
            self.tokens += part
            llama.llama_synchronize(self.context.handle)
            size = on_batch(len(part), time.perf_counter() - begin_s)
            start = stop

    def step(self, token: int) -> None:
        """Decode one token.

        Raises:
            EngineFailure: The engine failed, or the parent cancelled.
        """
        self._one.tokens[0] = token
        self._one.positions[0] = len(self.tokens)
        code = llama.llama_decode(self.context.handle, self._one_batch)
        if code:
            self._refuse(code)
        self.tokens.append(token)

    def _refuse(self, code: int) -> None:
        """Raise what the return code of a decode means; the cache is as before it, or empty."""
        try:
            check_decode(code, self._engine)
        finally:
            # a part of the batch may be in the cache already
            if not self._cut(len(self.tokens)):
                self.clear()

    def _rewind(self, length: int) -> int:
        """Go back to ``length`` tokens or to a checkpoint before; return where that is."""
        if self._cut(length):
            return length
        for checkpoint in reversed(self._checkpoints):
            if checkpoint.length <= length and self._restore(checkpoint):
                return checkpoint.length
        return 0

    def _return_to(self, branch: Branch) -> None:
        """Bring a branch that was left back; where the engine refuses, nothing is there."""
        if restore_branch(self.context.handle, branch):
            self.tokens, self._checkpoints = list(branch.tokens), list(branch.checkpoints)
        else:
            self.clear()

    def _cut(self, length: int) -> bool:
        """Drop everything after ``length`` tokens, where that gives the earlier state back.

        A recurrent state only advances. With a sliding window llama.cpp drops the tokens
        without complaint but has forgotten what the window before them needs; the rule is that
        of llama.cpp's server.
        """
        n_swa = self.context.model.n_swa
        if length == 0 or self._only_advances:
            return False
        if n_swa:
            oldest = llama.llama_memory_seq_pos_min(self.context.memory, 0)
            if oldest != 0 and oldest >= length - n_swa:
                return False
        return bool(llama.llama_memory_seq_rm(self.context.memory, 0, length, -1))

    def _needs_checkpoints(self) -> bool:
        return self._only_advances or self.context.model.n_swa > 0

    def _save(self) -> None:
        handle = self.context.handle
        if not self.tokens or any(c.length == len(self.tokens) for c in self._checkpoints):
            return
        size = partial_size(handle)
        if not 0 < size <= _MAX_CHECKPOINT_BYTES:
            return
        state = copy_state(handle, size, partial=True)
        if state is None:
            return
        self._checkpoints.append(Checkpoint(len(self.tokens), state))
        while (
            len(self._checkpoints) > _MAX_CHECKPOINTS
            or sum(len(c.state) for c in self._checkpoints) > _MAX_CHECKPOINT_BYTES
        ):
            del self._checkpoints[0]

    def _restore(self, checkpoint: Checkpoint) -> bool:
        """Bring the kept state back, and drop what came later from the rest of the cache."""
        if not restore_partial(self.context.handle, checkpoint):
            return False
        return bool(llama.llama_memory_seq_rm(self.context.memory, 0, checkpoint.length, -1))
