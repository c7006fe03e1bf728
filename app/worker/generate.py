"""Answers a conversation, token by token, on a context that is kept between answers."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from app.domain.settings import Settings
from app.worker.batch import Tokens, check_decode
from app.worker.cancel import Cancelled, EngineFailure
from app.worker.detokenize import TextStream
from app.worker.engine import Context, Engine, Model
from app.worker.native import llama
from app.worker.prompt import build_prompt, token_bytes
from app.worker.protocol import (
    Generate,
    GenerateFinished,
    GenerateStarted,
    Message,
    Sampling,
    Token,
)

_PENALTY_LAST_N = 64
_MIN_KEEP = 1


class Generator:
    """Holds the context of the conversation and what its cache contains."""

    def __init__(self, engine: Engine, send: Callable[[Message], None]) -> None:
        """Start without a context."""
        self._engine = engine
        self._send = send
        self._context: Context | None = None
        self._requested: Settings | None = None
        self._cached: list[int] = []

    def release(self) -> None:
        """Free the context; needed before the model is released."""
        if self._context:
            self._context.free()
            self._context = None
        self._cached = []

    def run(self, request: Generate) -> GenerateFinished:
        """Stream the answer and return how it ended.

        Raises:
            EngineFailure: The engine failed. Cancelling is not a failure here.
        """
        start_ns = time.perf_counter_ns()
        model = self._engine.loaded()
        context = self._prepare(model, request.settings)
        prompt, template = build_prompt(model, request.messages)
        reused = self._reuse(context, prompt) if len(prompt) < context.n_ctx_seq else 0
        self._send(GenerateStarted(n_prompt=len(prompt), n_reused=reused, template=template))
        answer = _Answer(start_ns, len(prompt), reused)
        if len(prompt) >= context.n_ctx_seq:
            return answer.finish("context_full")
        try:
            self._prefill(context, prompt[reused:])
            answer.prefilled()
            return answer.finish(self._decode(context, prompt, request, answer))
        except Cancelled:
            return answer.finish("cancelled")
        except EngineFailure:
            self.release()
            raise

    def _prepare(self, model: Model, settings: Settings) -> Context:
        if self._context and self._requested == settings and self._context.model is model:
            return self._context
        self.release()
        self._context = self._engine.open_context(model, settings)
        self._requested = settings
        return self._context

    def _reuse(self, context: Context, prompt: Sequence[int]) -> int:
        """Return how many leading tokens of ``prompt`` are valid in the cache; drop the rest.

        At least one token must be decoded anew to have logits.
        """
        common = 0
        for old, new in zip(self._cached, prompt[:-1], strict=False):
            if old != new:
                break
            common += 1
        if common < len(self._cached) and not self._cut(context, common):
            common = 0
        if common == 0:
            llama.llama_memory_clear(context.memory, True)
        self._cached = list(prompt[:common])
        return common

    def _cut(self, context: Context, length: int) -> bool:
        """Drop everything after ``length`` tokens, where that gives the earlier state back.

        A recurrent state only advances. With a sliding window llama.cpp drops the tokens
        without complaint but has forgotten what the window before them needs; the rule is that
        of llama.cpp's server.
        """
        model = context.model
        if length == 0 or model.is_recurrent or model.is_hybrid:
            return False
        if model.n_swa:
            oldest = llama.llama_memory_seq_pos_min(context.memory, 0)
            if oldest != 0 and oldest >= length - model.n_swa:
                return False
        return bool(llama.llama_memory_seq_rm(context.memory, 0, length, -1))

    def _prefill(self, context: Context, tokens: Sequence[int]) -> None:
        size, start = context.settings.n_batch, len(self._cached)
        for offset in range(0, len(tokens), size):
            part = list(tokens[offset : offset + size])
            batch = Tokens([part], start + offset)
            self._engine.cancel.check()
            self._step(context, batch, part)
        llama.llama_synchronize(context.handle)

    def _step(self, context: Context, tokens: Tokens, ids: Sequence[int]) -> None:
        batch = tokens.batches(context.settings.n_batch)[0]
        try:
            check_decode(llama.llama_decode(context.handle, batch), self._engine)
        except EngineFailure:
            # a part of the batch may be in the cache already
            if not self._cut(context, len(self._cached)):
                self._cached = []
                llama.llama_memory_clear(context.memory, True)
            raise
        self._cached += ids

    def _decode(
        self, context: Context, prompt: Sequence[int], request: Generate, answer: "_Answer"
    ) -> str:
        stream = TextStream(request.stop)
        chain = sampler_chain(request.sampling)
        try:
            for token in prompt[-_PENALTY_LAST_N:]:
                llama.llama_sampler_accept(chain, token)
            return self._loop(context, request, answer, stream, chain)
        finally:
            llama.llama_sampler_free(chain)
            if rest := stream.finish():
                self._send(Token(text=rest, n_tok=answer.n_gen))

    def _loop(
        self, context: Context, request: Generate, answer: "_Answer", stream: TextStream, chain: Any
    ) -> str:
        model = context.model
        while True:
            self._engine.cancel.check()
            token = llama.llama_sampler_sample(chain, context.handle, -1)
            answer.generated()
            if llama.llama_vocab_is_eog(model.vocab, token):
                return "stop"
            text = stream.feed(token_bytes(model, token))
            self._send(Token(text=text, n_tok=answer.n_gen))
            if stream.stopped:
                return "stop"
            if request.max_tokens is not None and answer.n_gen >= request.max_tokens:
                return "length"
            if len(self._cached) >= context.n_ctx_seq:
                return "context_full"
            self._step(context, Tokens([[token]], len(self._cached)), [token])


class _Answer:
    """Counts and times of one answer."""

    def __init__(self, start_ns: int, n_prompt: int, n_reused: int) -> None:
        self._start_ns = start_ns
        self._n_prompt = n_prompt
        self._n_reused = n_reused
        self._prefill_start_ns = time.perf_counter_ns()
        self._prefill_ns = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self.n_gen = 0

    def prefilled(self) -> None:
        self._prefill_ns = time.perf_counter_ns() - self._prefill_start_ns

    def generated(self) -> None:
        self.n_gen += 1
        self._last_ns = time.perf_counter_ns()
        if self._first_ns is None:
            self._first_ns = self._last_ns

    def finish(self, reason: str) -> GenerateFinished:
        first_ns = self._first_ns
        return GenerateFinished(
            reason=reason,
            n_prompt=self._n_prompt,
            n_reused=self._n_reused,
            n_gen=self.n_gen,
            ttft_ns=None if first_ns is None else first_ns - self._start_ns,
            prefill_ns=self._prefill_ns,
            decode_ns=0 if first_ns is None else self._last_ns - first_ns,
        )


def sampler_chain(sampling: Sampling) -> Any:
    """Return llama.cpp's sampler chain in its usual order; the caller frees it."""
    chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
    if sampling.repeat_penalty != 1.0:
        penalty = sampling.repeat_penalty
        _add(chain, llama.llama_sampler_init_penalties(_PENALTY_LAST_N, penalty, 0.0, 0.0))
    if sampling.temperature <= 0:
        _add(chain, llama.llama_sampler_init_greedy())
        return chain
    seed = random.getrandbits(32) if sampling.seed is None else sampling.seed & 0xFFFFFFFF
    _add(chain, llama.llama_sampler_init_top_k(sampling.top_k))
    _add(chain, llama.llama_sampler_init_top_p(sampling.top_p, _MIN_KEEP))
    _add(chain, llama.llama_sampler_init_min_p(sampling.min_p, _MIN_KEEP))
    _add(chain, llama.llama_sampler_init_temp(sampling.temperature))
    _add(chain, llama.llama_sampler_init_dist(seed))
    return chain


def _add(chain: Any, sampler: Any) -> None:
    llama.llama_sampler_chain_add(chain, sampler)
