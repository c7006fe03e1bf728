"""States of conversation branches that were left, kept in RAM to come back to."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from app.worker.native import llama

_PARTIAL_ONLY = 1  # LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY: window and recurrent state, no more
MIN_TOK = 128
"""Fewer tokens are read again about as quickly as a state is copied."""
MAX_BYTES = 256 << 20
"""All kept branches together; a larger state is not kept, its tokens are read again."""


class Checkpoint(NamedTuple):
    """What cannot be rewound (window, recurrent state), as it was after ``length`` tokens."""

    length: int
    state: ctypes.Array[ctypes.c_uint8]


class Branch(NamedTuple):
    """A whole sequence: its tokens, its state, and points it can be rewound to."""

    tokens: tuple[int, ...]
    state: ctypes.Array[ctypes.c_uint8]
    checkpoints: tuple[Checkpoint, ...]


class Branches:
    """The branches left last, of one context."""

    def __init__(self) -> None:
        """Start empty."""
        self._kept: list[Branch] = []

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()

    def keep(self, handle: int, tokens: Sequence[int], checkpoints: Sequence[Checkpoint]) -> None:
        """Keep sequence 0 as it is now; the oldest branches make room for it."""
        known = tuple(tokens)
        # a branch that has grown replaces its own earlier state
        self._kept = [b for b in self._kept if b.tokens != known[: len(b.tokens)]]
        size = int(llama.llama_state_seq_get_size(handle, 0))
        if not 0 < size <= MAX_BYTES:
            return
        state = copy_state(handle, size)
        if state is None:
            return
        self._kept.append(Branch(known, state, tuple(checkpoints)))
        while sum(len(b.state) for b in self._kept) > MAX_BYTES:
            del self._kept[0]

    def best(self, prompt: Sequence[int], n_common: int) -> Branch | None:
        """Return the branch that shares clearly more with ``prompt`` than ``n_common`` tokens."""
        shared = [(common(b.tokens, prompt), b) for b in self._kept]
        length, branch = max(shared, key=lambda pair: pair[0], default=(0, None))
        return branch if length >= n_common + MIN_TOK else None


def restore_branch(handle: int, branch: Branch) -> bool:
    """Put a branch's state into sequence 0, in place of what is there."""
    return bool(llama.llama_state_seq_set_data(handle, branch.state, len(branch.state), 0))


def copy_state(
    handle: int, size: int, *, partial: bool = False
) -> ctypes.Array[ctypes.c_uint8] | None:
    """Return ``size`` bytes of state of sequence 0; ``None`` = the engine gives none."""
    state = (ctypes.c_uint8 * size)()
    if partial:
        n = llama.llama_state_seq_get_data_ext(handle, state, size, 0, _PARTIAL_ONLY)
    else:
        n = llama.llama_state_seq_get_data(handle, state, size, 0)
    return state if n == size else None


def partial_size(handle: int) -> int:
    """Return the bytes of what cannot be rewound."""
    return int(llama.llama_state_seq_get_size_ext(handle, 0, _PARTIAL_ONLY))


def restore_partial(handle: int, checkpoint: Checkpoint) -> bool:
    """Put back what cannot be rewound."""
    state = checkpoint.state
    n = llama.llama_state_seq_set_data_ext(handle, state, len(state), 0, _PARTIAL_ONLY)
    return bool(n)


def common(old: Sequence[int], new: Sequence[int]) -> int:
    """Return how many leading tokens are the same."""
    for index, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return index
    return min(len(old), len(new))
