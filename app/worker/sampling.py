"""llama.cpp's sampler chain, in its usual order, with an optional grammar."""

import ctypes
import json
import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_cpp.llama_grammar import json_schema_to_gbnf

from app.domain.outcome import Outcome
from app.worker.cancel import EngineFailure
from app.worker.engine import Model
from app.worker.native import llama
from app.worker.protocol import SAMPLING_RANGES, SEED_RANGE, Sampling

_MIN_KEEP = 1
_DRY_BREAKERS = (b"\n", b":", b'"', b"*")
_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class Sampler:
    """Chooses tokens; one per answer. ``free`` it afterwards."""

    def __init__(self, model: Model, sampling: Sampling, prompt: Sequence[int]) -> None:
        """Build the chain and let it look back on ``prompt``.

        Raises:
            EngineFailure: A value is out of range, or the grammar is not one.
        """
        _check(sampling)
        # before the chain: nothing is left to free when it is refused
        self._grammar = _grammar(model, sampling)
        self._chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        for sampler in _samplers(model, sampling):
            llama.llama_sampler_chain_add(self._chain, sampler)
        for token in prompt[-sampling.repeat_last_n :] if sampling.repeat_last_n else ():
            llama.llama_sampler_accept(self._chain, token)
        self._candidates = _Candidates(model.n_vocab) if self._grammar else None

    def sample(self, context: int) -> int:
        """Return the next token after the last decoded one."""
        if self._candidates is None:
            return int(llama.llama_sampler_sample(self._chain, context, -1))
        return self._sample_by_grammar(self._candidates, context)

    def free(self) -> None:
        """Release the chain."""
        llama.llama_sampler_free(self._chain)
        if self._grammar:
            llama.llama_sampler_free(self._grammar)

    def _sample_by_grammar(self, candidates: "_Candidates", context: int) -> int:
        """Try the chain's own choice first: a grammar looks at every token it is given."""
        candidates.fill(context)
        token = candidates.apply(self._chain)
        if not candidates.allows(self._grammar, token):
            candidates.fill(context)
            llama.llama_sampler_apply(self._grammar, candidates.pointer)
            token = candidates.apply(self._chain)
        llama.llama_sampler_accept(self._grammar, token)
        llama.llama_sampler_accept(self._chain, token)
        return token


class _Candidates:
    """All tokens with their logits, in memory that llama.cpp can sort."""

    def __init__(self, n_vocab: int) -> None:
        self._rows = np.zeros(n_vocab, _CANDIDATE)
        self._ids = np.arange(n_vocab, dtype=np.int32)
        self._array = llama.llama_token_data_array()
        self.pointer = ctypes.byref(self._array)

    def fill(self, context: int) -> None:
        logits = llama.llama_get_logits_ith(context, -1)
        self._rows["id"] = self._ids
        self._rows["logit"] = np.ctypeslib.as_array(logits, shape=(len(self._ids),))
        self._point(self._rows)

    def apply(self, chain: Any) -> int:
        llama.llama_sampler_apply(chain, self.pointer)
        return int(self._array.data[self._array.selected].id)

    def allows(self, grammar: Any, token: int) -> bool:
        one = np.zeros(1, _CANDIDATE)
        one["id"], one["logit"] = token, 1.0
        self._point(one)
        llama.llama_sampler_apply(grammar, self.pointer)
        return math.isfinite(one["logit"][0])

    def _point(self, rows: Any) -> None:
        data = rows.ctypes.data_as(ctypes.POINTER(llama.llama_token_data))
        self._array.data = data
        self._array.size = len(rows)
        self._array.selected = -1
        self._array.sorted = False


def _samplers(model: Model, sampling: Sampling) -> list[Any]:
    chosen = []
    last_n = sampling.repeat_last_n
    if sampling.repeat_penalty != 1.0 and last_n:
        penalty = sampling.repeat_penalty
        chosen.append(llama.llama_sampler_init_penalties(model.n_vocab, last_n, penalty, 0.0, 0.0))
    if sampling.dry_multiplier > 0 and last_n:
        breakers = (ctypes.c_char_p * len(_DRY_BREAKERS))(*_DRY_BREAKERS)
        chosen.append(
            llama.llama_sampler_init_dry(
                model.vocab,
                sampling.dry_multiplier,
                sampling.dry_base,
                sampling.dry_allowed_length,
                last_n,
                breakers,
                len(_DRY_BREAKERS),
            )
        )
    if sampling.temperature <= 0:
        return [*chosen, llama.llama_sampler_init_greedy()]
    drawn = min(random.getrandbits(32), SEED_RANGE[1])
    seed = drawn if sampling.seed is None else sampling.seed
    chosen.append(llama.llama_sampler_init_top_k(sampling.top_k))
    chosen.append(llama.llama_sampler_init_top_p(sampling.top_p, _MIN_KEEP))
    chosen.append(llama.llama_sampler_init_min_p(sampling.min_p, _MIN_KEEP))
    if sampling.xtc_probability > 0:
        probability, threshold = sampling.xtc_probability, sampling.xtc_threshold
        chosen.append(llama.llama_sampler_init_xtc(probability, threshold, _MIN_KEEP, seed))
    chosen.append(llama.llama_sampler_init_temp(sampling.temperature))
    chosen.append(llama.llama_sampler_init_dist(seed))
    return chosen


def _grammar(model: Model, sampling: Sampling) -> Any:
    text = sampling.grammar
    if sampling.json_schema:
        try:
            text = json_schema_to_gbnf(sampling.json_schema)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            message = f"The JSON schema cannot be followed: {reason[:200]}"
            hint = "Check that it is valid JSON and a schema without remote references."
            raise EngineFailure(Outcome.UNSUPPORTED, "bad_json_schema", message, hint) from error
    if not text:
        return None
    grammar = llama.llama_sampler_init_grammar(model.vocab, text.encode(), b"root")
    if not grammar:
        message = "The grammar is not valid GBNF."
        hint = "It needs a rule named root; llama.cpp's grammars folder has examples."
        raise EngineFailure(Outcome.UNSUPPORTED, "bad_grammar", message, hint)
    return grammar


def _check(sampling: Sampling) -> None:
    for name, (low, high) in {**SAMPLING_RANGES, "seed": SEED_RANGE}.items():
        value = getattr(sampling, name)
        if value is not None and not low <= value <= high:  # not a number is in no range
            message = f"{name} is {json.dumps(value)}; it must be from {low} to {high}."
            raise EngineFailure(Outcome.UNSUPPORTED, "bad_sampling", message)
