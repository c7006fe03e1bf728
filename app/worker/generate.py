"""Answers a conversation, token by token, on a context that is kept between answers."""

import math
import re
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from app.domain.outcome import Outcome
from app.domain.pacing import Pace, Pacer, batch_tokens
from app.domain.settings import Settings
from app.worker.cache import Cache
from app.worker.cancel import CancelFlag, Cancelled, EngineFailure
from app.worker.detokenize import TextStream
from app.worker.engine import Engine, Model
from app.worker.native import llama
from app.worker.pieces import Marker, Pieces
from app.worker.prompt import Prompt, build_prompt, token_bytes, tokenize
from app.worker.protocol import (
    Generate,
    GenerateFinished,
    GenerateProgress,
    GenerateStarted,
    Message,
    Token,
)
from app.worker.sampling import Sampler

_NAP_S = 0.05
_SPECIAL_WORD = re.compile(r"<[^<>]+>|\[[A-Z_/]+\]")


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
        writer = _Writer(cache.context.model, prompt, request.stop, self._link.send)
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
        writer: "_Writer",
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
            answer.generated()
            if is_eog(vocab, token) or token in ends:
                return "stop"
            writer.write(token, answer.n_gen)
            if writer.stopped:
                return "stop"
            if answer.n_gen >= limit:
                break
            if len(cache.tokens) >= n_ctx:
                return "context_full"
            cache.step(token)
            rhythm.after_token()
        return "length"


class _Writer:
    """Turns tokens into messages."""

    def __init__(
        self, model: Model, prompt: Prompt, stop: Iterable[str], send: Callable[[Message], None]
    ) -> None:
        self._model = model
        self._send = send
        self._stream = TextStream(tuple(stop))
        self._pieces = Pieces(prompt.markers, prompt.inside)
        self._borders = _border_texts(prompt.markers)

    @property
    def stopped(self) -> bool:
        return self._stream.stopped

    def write(self, token: int, n_tok: int) -> None:
        data = token_bytes(self._model, token)
        if not data and self._borders:
            # control tokens have no text of their own; those that border a part are needed
            shown = token_bytes(self._model, token, special=True)
            data = shown if shown in self._borders else b""
        self._say(self._pieces.feed(self._stream.feed(data)), n_tok)

    def finish(self, n_tok: int) -> None:
        rest = self._stream.finish()
        for pieces in (self._pieces.feed(rest) if rest else (), self._pieces.finish()):
            for kind, text in pieces:
                self._send(Token(text=text, n_tok=n_tok, kind=kind))

    def _say(self, pieces: Iterable[tuple[str, str]], n_tok: int) -> None:
        is_silent = True
        for kind, text in pieces:
            is_silent = False
            self._send(Token(text=text, n_tok=n_tok, kind=kind))
        if is_silent:
            self._send(Token(text="", n_tok=n_tok))


class _Rhythm:
    """Pauses between pieces of work, as the pace asked for says."""

    def __init__(self, pace: Pace, link: Link, cancel: CancelFlag) -> None:
        self._pacer = Pacer(pace)
        self._link = link
        self._cancel = cancel
        self._since_s = time.perf_counter()

    @property
    def duty(self) -> float:
        return self._pacer.duty

    def after_token(self) -> None:
        pace = self._link.new_pace()
        if pace is not None:
            self._pacer.set(pace)
        if self._pacer.duty < 1.0:
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
            prefill_ns=self.prefill_ns,
            decode_ns=0 if first_ns is None else self._last_ns - first_ns,
        )


def _border_texts(markers: Iterable[Marker]) -> frozenset[bytes]:
    """Return the words that markers are made of, as single tokens spell them."""
    texts = "".join(m.open + m.close for m in markers)
    words = _SPECIAL_WORD.findall(texts) + [t for m in markers for t in (m.open, m.close) if t]
    return frozenset(w.encode() for w in [*words, "<|constrain|>"]) if words else frozenset()


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
