"""Greedy decode with drafted tokens against the same without, in turns.

Drafts come from a smaller model with the same vocabulary, or are looked up: what followed the
last tokens where they occurred before. The model checks a whole draft in one batch and keeps what
it would have written itself, so the output is the same up to rounding.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import msgspec
import numpy as np

from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.trial import Sample
from app.domain.units import NS_PER_S
from app.worker.batch import Tokens, check_decode, decode_all
from app.worker.cancel import EngineFailure
from app.worker.engine import Context, Engine, Model
from app.worker.native import llama
from app.worker.protocol import Message, Speculate, Speculated, TrialProgress
from app.worker.selfcheck import text_tokens

N_PROMPT = 160
MIN_TURNS = 3
NGRAM = (4, 3, 2)  # longest first: a longer match is the better guess
Draft = Callable[[Sequence[int], int], list[int]]


class Pass:
    """What one pass wrote."""

    def __init__(self, history: Sequence[int]) -> None:
        """Begin after ``history``."""
        self.history = list(history)
        self.n_drafted = 0
        self.n_accepted = 0


def speculate(engine: Engine, request: Speculate, send: Callable[[Message], None]) -> Speculated:
    """Return passes without and with drafts.

    Raises:
        EngineFailure: The engine failed, or the models cannot work together.
    """
    model = engine.loaded()
    if model.is_recurrent or model.is_hybrid:
        message = "This model's state only advances: rejected drafts cannot be taken back."
        raise EngineFailure(Outcome.UNSUPPORTED, "cannot_rewind", message)
    prompt = text_tokens(model, N_PROMPT)
    settings = _sized(request.settings, request, len(prompt))
    with (
        engine.context(model, settings, request.n_draft + 1) as context,
        _drafter(engine, request, model, prompt) as draft,
    ):
        work = _Work(engine, context, request, prompt, send)
        kinds = {"plain": _nothing, "drafted": draft}
        for kind in kinds.values():
            work.run(kind, min(16, request.n_gen))  # first use of every shape
        return _in_turns(work, kinds, request)


def _in_turns(work: "_Work", kinds: dict[str, Draft], request: Speculate) -> Speculated:
    samples: dict[str, list[Sample]] = {name: [] for name in kinds}
    last: dict[str, Pass] = {}
    n_drafted = n_accepted = 0
    deadline_ns = time.perf_counter_ns() + int(request.max_s * NS_PER_S)
    for turn in range(max(request.n_turns, MIN_TURNS)):
        if turn >= MIN_TURNS and time.perf_counter_ns() > deadline_ns:
            break
        for name in kinds if turn % 2 == 0 else reversed(kinds):
            sample, last[name] = work.run(kinds[name], request.n_gen)
            samples[name].append(sample)
        n_drafted += last["drafted"].n_drafted
        n_accepted += last["drafted"].n_accepted
    end = len(work.prompt) + request.n_gen
    return Speculated(
        plain=tuple(samples["plain"]),
        drafted=tuple(samples["drafted"]),
        n_drafted=n_drafted,
        n_accepted=n_accepted,
        same_output=last["plain"].history[:end] == last["drafted"].history[:end],
    )


class _Work:
    """Writes after the fixed prompt on one context, again and again."""

    def __init__(
        self,
        engine: Engine,
        context: Context,
        request: Speculate,
        prompt: list[int],
        send: Callable[[Message], None],
    ) -> None:
        self._engine = engine
        self._context = context
        self._n_draft = request.n_draft
        self._send = send
        self.prompt = prompt

    def run(self, draft: Draft, n_gen: int) -> tuple[Sample, Pass]:
        """Read the prompt anew, then time ``n_gen`` tokens."""
        self._send(TrialProgress(phase="decode"))
        llama.llama_memory_clear(self._context.memory, False)
        before = Tokens([self.prompt[:-1]], 0)
        decode_all(self._context, before.batches(self._context.settings.n_batch), self._engine)
        written = Pass(self.prompt)
        end = len(self.prompt) + n_gen
        draft(self.prompt, 0)  # a draft model reads the prompt, too
        start = time.perf_counter_ns()
        while len(written.history) < end:
            self._engine.cancel.check()
            self._step(written, draft(written.history, self._n_draft))
        elapsed_ns = time.perf_counter_ns() - start
        return Sample(n_tok=len(written.history) - len(self.prompt), ns=elapsed_ns), written

    def _step(self, written: Pass, draft: list[int]) -> None:
        """Decode the last token and the draft behind it; keep what the model agrees with."""
        history = written.history
        start = len(history) - 1
        picks = greedy(self._engine, self._context, [history[-1], *draft], start)
        agreed = 0
        while agreed < len(draft) and draft[agreed] == picks[agreed]:
            agreed += 1
        if agreed < len(draft):
            llama.llama_memory_seq_rm(self._context.memory, 0, start + 1 + agreed, -1)
        history += [*draft[:agreed], picks[agreed]]
        written.n_drafted += len(draft)
        written.n_accepted += agreed


def greedy(engine: Engine, context: Context, tokens: list[int], start: int) -> list[int]:
    """Decode ``tokens`` at position ``start`` and return the likeliest token after each."""
    batch = Tokens([tokens], start, all_logits=True)
    check_decode(llama.llama_decode(context.handle, batch.batches(len(tokens))[0]), engine)
    llama.llama_synchronize(context.handle)
    n_vocab = context.model.n_vocab
    rows = (llama.llama_get_logits_ith(context.handle, i) for i in range(len(tokens)))
    return [int(np.ctypeslib.as_array(row, (n_vocab,)).argmax()) for row in rows]


def _nothing(_history: Sequence[int], _n: int) -> list[int]:
    return []


def look_up(history: Sequence[int], n: int) -> list[int]:
    """Return what followed the last tokens where they last occurred before, at most ``n``."""
    for length in NGRAM:
        tail = list(history[-length:])
        for start in range(len(history) - length - 1, -1, -1):
            if n and list(history[start : start + length]) == tail:
                return list(history[start + length : start + length + n])
    return []


@contextmanager
def _drafter(
    engine: Engine, request: Speculate, model: Model, prompt: list[int]
) -> Iterator[Draft]:
    if not request.draft_path:
        with nullcontext():
            yield look_up
        return
    with engine.beside(request.draft_path, request.draft_settings) as small:
        if small.n_vocab != model.n_vocab or text_tokens(small, N_PROMPT) != prompt:
            message = "The draft model splits text into other tokens than the model."
            hint = "Choose a smaller model of the same family."
            raise EngineFailure(Outcome.UNSUPPORTED, "other_vocabulary", message, hint)
        settings = _sized(request.draft_settings, request, len(prompt))
        with engine.context(small, settings) as context:
            yield _SmallModel(engine, context).draft


class _SmallModel:
    """A draft model whose cache follows what was really written."""

    def __init__(self, engine: Engine, context: Context) -> None:
        self._engine = engine
        self._context = context
        self._cached: list[int] = []

    def draft(self, history: Sequence[int], n: int) -> list[int]:
        """Return the ``n`` tokens it would write after ``history``."""
        common = 0
        for mine, theirs in zip(self._cached, history[:-1], strict=False):
            if mine != theirs:
                break
            common += 1
        llama.llama_memory_seq_rm(self._context.memory, 0, common, -1)
        missing = list(history[common:-1])
        if missing:
            tokens = Tokens([missing], common)  # the batches point into its arrays
            batches = tokens.batches(self._context.settings.n_batch)
            decode_all(self._context, batches, self._engine)
        self._cached = list(history[:-1])
        found: list[int] = []
        for _ in range(n):
            token = found[-1] if found else history[-1]
            (pick,) = greedy(self._engine, self._context, [token], len(self._cached))
            self._cached.append(token)
            found.append(pick)
        return found


def _sized(settings: Settings, request: Speculate, n_prompt: int) -> Settings:
    """Return ``settings`` with room for the pass alone."""
    need = n_prompt + request.n_gen + 2 * request.n_draft + 2
    return msgspec.structs.replace(settings, n_ctx=-(-need // 256) * 256, n_seq_max=1)
