"""Child of a test: compares logits after prefix reuse with those of an empty cache.

Prints one JSON document: per case the tokens re-used and the largest difference.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.domain.settings import LoadMode, Settings
from app.worker.batch import Tokens
from app.worker.cache import Cache
from app.worker.cancel import CancelFlag
from app.worker.channel import Channel
from app.worker.devices import load_backends
from app.worker.engine import Engine
from app.worker.enginelog import EngineLog
from app.worker.native import llama

SETTINGS = Settings(
    n_gpu_layers=0, n_ctx=1536, n_batch=256, n_ubatch=64, n_threads=1, load_mode=LoadMode.NONE
)


def main(path: str) -> None:
    """Run every case."""
    cancel = CancelFlag()
    load_backends(None)
    engine = Engine(EngineLog(Channel(os.open(os.devnull, os.O_WRONLY), cancel)), cancel)
    engine.load(path, SETTINGS, lambda _: None)
    cache = Cache(engine, engine.open_context(engine.loaded(), SETTINGS))
    rng = np.random.default_rng(1)
    text = [2, *rng.integers(1000, 50_000, 1100).tolist()]
    other = rng.integers(1000, 50_000, 40).tolist()
    # what the cache has read before, the prompt that follows, and in which batches its re-used
    # part was read: another division into batches rounds differently
    cases: dict[str, tuple[list[list[int]], list[int], list[int]]] = {
        "extended": ([text[:200]], text[:230], [199, 1]),
        "short cut": ([text[:300]], text[:192] + other, [192]),
        "restored": ([text[:600], text[:900]], text[:600] + other, [256, 256, 87]),
        "beyond the window": ([text[:800]], text[:250] + other, []),
        # left for another branch, and come back to
        "branch": (
            [text[:700], text[:100] + other * 5],
            text[:700] + other,
            [256, 256, 187, 1],
        ),
    }
    found: dict[str, Any] = {}
    for name, (before, prompt, division) in cases.items():
        cache.forget()
        for earlier in before:
            read(cache, earlier)
        n_reused, logits = read(cache, prompt)
        cache.forget()
        for length in division:
            decode(cache, prompt[len(cache.tokens) :][:length])
        _, expected = read(cache, prompt)
        difference = float(np.abs(logits - expected).max())
        found[name] = {"n_reused": n_reused, "largest_difference": difference}
    print(json.dumps(found), flush=True)
    os._exit(0)


def read(cache: Cache, prompt: Sequence[int]) -> tuple[int, Any]:
    """Bring the cache to ``prompt``; return how much was re-used, and the logits of its end."""
    n_reused = cache.reuse(prompt)
    cache.prefill(prompt[len(cache.tokens) :], SETTINGS.n_batch, lambda *_: SETTINGS.n_batch)
    row = llama.llama_get_logits_ith(cache.context.handle, -1)
    return n_reused, np.ctypeslib.as_array(row, shape=(cache.context.model.n_vocab,)).copy()


def decode(cache: Cache, tokens: Sequence[int]) -> None:
    """Read ``tokens`` in one batch."""
    arrays = Tokens([tokens], len(cache.tokens))  # the batch points into them
    batch = arrays.batches(len(tokens))[0]
    assert llama.llama_decode(cache.context.handle, batch) == 0
    cache.tokens += tokens


if __name__ == "__main__":
    main(sys.argv[1])
