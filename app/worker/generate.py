"""Answers a conversation, token by token, on a context that is kept between answers."""

import math
import time
from collections.abc import Iterable
from typing import Protocol

from app.domain.outcome import Outcome
from app.domain.pacing import Pace, Pacer, batch_tokens
from app.domain.settings import Settings
from app.worker.cache import Cache
from app.worker.cancel import CancelFlag, Cancelled, EngineFailure
from app.worker.engine import Engine, Model
from app.worker.native import llama
from app.worker.prompt import Prompt, build_prompt, tokenize
from app.worker.protocol import (
    Generate,
    GenerateFinished,
    GenerateProgress,
    GenerateStarted,
    Message,
)
from app.worker.sampling import Sampler
from app.worker.writer import Writer

_NAP_S = 0.05


class Link(Protocol):
    """The generator's way to the parent."""

    def send(self, message: Message) -> None:
        """Send one line."""
        ...

    def new_pace(self) -> Pace | None:
        """Return the pace asked for since the last call, if any."""
        ...


class Generator:
    """Holds the context of the conversation."""

    def __init__(self, engine: Engine, link: Link) -> None:
        """Start without a context."""
        self._engine = engine
        self._link = link
        self._cache: Cache | None = None
        self._requested: Settings | None = None

    def release(self) -> None:
        """Free the context; needed before the model is released."""
        if self._cache:
            self._cache.free()
            self._cache = None

    def run(self, request: Generate) -> GenerateFinished:
        """Stream the answer and return how it ended.

        Raises:
            EngineFailure: The engine failed. Cancelling is not a failure here.
        """
        start_ns = time.perf_counter_ns()
        model = self._engine.loaded()
        _check_model(model)
        self._link.send(GenerateProgress(phase="template"))
        prompt = build_prompt(model, request.messages, request.template)
        self._link.send(GenerateProgress(phase="context"))
        cache = self._prepare(model, request.settings)
        n_prompt, n_ctx = len(prompt.tokens), cache.context.n_ctx_seq
        reused = cache.reuse(prompt.tokens) if n_prompt < n_ctx else 0
        self._link.send(
            GenerateStarted(
                n_prompt=n_prompt, n_reused=reused, template=prompt.template, n_ctx=n_ctx
            )
        )
        answer = _Answer(start_ns, n_prompt, reused)
        if n_prompt >= n_ctx:
            return answer.finish("context_full")
        if n_prompt == 0:
            return answer.finish("stop")
        try:
            return answer.finish(self._answer(cache, prompt, request, answer))
        except Cancelled:
            return answer.finish("cancelled")
        except EngineFailure as failure:
            if failure.outcome is not Outcome.UNSUPPORTED:
                self.release()
            raise

    def _prepare(self, model: Model, settings: Settings) -> Cache:
        if self._cache and self._requested == settings and self._cache.context.model is model:
            return self._cache
        self.release()
        self._cache = Cache(self._engine, self._engine.open_context(model, settings))
        self._requested = settings
        return self._cache

    def _answer(self, cache: Cache, prompt: Prompt, request: Generate, answer: "_Answer") -> str:
        sampler = Sampler(cache.context.model, request.sampling, prompt.tokens)
        rhythm = _Rhythm(request.pace, self._link, self._engine.cancel)
        writer = Writer(cache.context.model, prompt, request.stop, self._link.send)
        try:
            self._prefill(cache, prompt, answer, rhythm)
            return self._decode(cache, request, answer, sampler, rhythm, writer)
        finally:
            sampler.free()
            writer.finish(answer.n_gen)

    def _prefill(self, cache: Cache, prompt: Prompt, answer: "_Answer", rhythm: "_Rhythm") -> None:
        n_batch = cache.context.settings.n_batch

        def on_batch(n_tok: int, seconds: float) -> int:
            self._link.send(GenerateProgress(phase="prefill", n_done=len(cache.tokens)))
            rhythm.worked(seconds)
            return batch_tokens(n_batch, rhythm.duty, n_tok / max(seconds, 1e-9))

        begin_ns = time.perf_counter_ns()
        cache.prefill(prompt.tokens[len(cache.tokens) :], n_batch, on_batch)
        answer.prefill_ns = time.perf_counter_ns() - begin_ns
        logits = llama.llama_get_logits_ith(cache.context.handle, -1)
        if not logits:
            message = "This model does not write text: it computes vectors (embeddings)."
            hint = "Choose a model for chat or text."
            raise EngineFailure(Outcome.UNSUPPORTED, "no_logits", message, hint)
        if not math.isfinite(logits[0]):
            message = "The model computes values that are not numbers."
            hint = "The file is probably damaged: download it again, or verify its checksum."
            raise EngineFailure(Outcome.UNSUPPORTED, "nan_logits", message, hint)

    def _decode(
        self,
        cache: Cache,
        request: Generate,
        answer: "_Answer",
        sampler: Sampler,
        rhythm: "_Rhythm",
        writer: Writer,
    ) -> str:
        """Sample and decode until something ends it; nothing here grows with the answer."""
        handle, n_ctx = cache.context.handle, cache.context.n_ctx_seq
        vocab, is_eog = cache.context.model.vocab, llama.llama_vocab_is_eog
        check = self._engine.cancel.check
        ends = _stop_tokens(cache.context.model, request.stop)
        limit = math.inf if request.max_tokens is None else request.max_tokens
        while answer.n_gen < limit:
            check()
            token = sampler.sample(handle)
            now_ns = answer.generated()
            if is_eog(vocab, token) or token in ends:
                return "stop"
            has_said = writer.write(token, answer.n_gen, now_ns)
            if writer.stopped:
                return "stop"
            if answer.n_gen >= limit:
                break
            if len(cache.tokens) >= n_ctx:
                return "context_full"
            cache.step(token)
            if has_said:
                rhythm.look()
            if rhythm.is_paced:
                writer.flush(answer.n_gen)
                rhythm.rest()
        return "length"


class _Rhythm:
    """Pauses between pieces of work, as the pace asked for says."""

    def __init__(self, pace: Pace, link: Link, cancel: CancelFlag) -> None:
        self._pacer = Pacer(pace)
        self._link = link
        self._cancel = cancel
        self._since_s = time.perf_counter()
        self.is_paced = self._pacer.duty < 1.0

    @property
    def duty(self) -> float:
        return self._pacer.duty

    def look(self) -> None:
        """Take the pace that was asked for meanwhile."""
        pace = self._link.new_pace()
        if pace is not None:
            self._pacer.set(pace)
            self.is_paced = self._pacer.duty < 1.0

    def rest(self) -> None:
        self.worked(time.perf_counter() - self._since_s)

    def worked(self, seconds: float) -> None:
        pause_s = self._pacer.after(seconds)
        begin_s = time.perf_counter()
        while (left_s := begin_s + pause_s - time.perf_counter()) > 0:
            self._cancel.check()
            time.sleep(min(_NAP_S, left_s))
        self._since_s = time.perf_counter()
        if pause_s:
            self._pacer.paused(self._since_s - begin_s)


class _Answer:
    """Counts and times of one answer."""

    def __init__(self, start_ns: int, n_prompt: int, n_reused: int) -> None:
        self._start_ns = start_ns
        self._n_prompt = n_prompt
        self._n_reused = n_reused
        self._first_ns: int | None = None
        self._last_ns = 0
        self.prefill_ns = 0
        self.n_gen = 0

    def generated(self) -> int:
        """Count a token; return the time it came at."""
        self.n_gen += 1
        self._last_ns = time.perf_counter_ns()
        if self._first_ns is None:
            self._first_ns = self._last_ns
        return self._last_ns

    def finish(self, reason: str) -> GenerateFinished:
        first_ns = self._first_ns
        return GenerateFinished(
            reason=reason,
            n_prompt=self._n_prompt,
            n_reused=self._n_reused,
            n_gen=self.n_gen,
            ttft_ns=None if first_ns is None else first_ns - self._start_ns,
            prefill_ns=self.prefill_ns,
            decode_ns=0 if first_ns is None else self._last_ns - first_ns,
        )


def _stop_tokens(model: Model, stop: Iterable[str]) -> frozenset[int]:
    """Return the stop strings that are one control token: those have no text to look for."""
    tokens = (tokenize(model, s, add_special=False, parse_special=True) for s in stop if s)
    single = (t[0] for t in tokens if len(t) == 1)
    return frozenset(t for t in single if llama.llama_vocab_is_control(model.vocab, t))


def _check_model(model: Model) -> None:
    if llama.llama_model_has_encoder(model.handle) or not llama.llama_model_has_decoder(
        model.handle
    ):
        message = "This model reads a text before it writes one (encoder); chat is not possible."
        hint = "Choose a model for chat or text, not one for translation or embeddings."
        raise EngineFailure(Outcome.UNSUPPORTED, "no_decoder", message, hint)
