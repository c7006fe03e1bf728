"""Times prefill and decode of one context, as design and llama-bench do it.

Fixed token ids, end-of-generation ignored, two prefill warm-ups and one decode warm-up, and
the clock only around ``llama_decode`` and ``llama_synchronize``.
"""

import ctypes
import math
import random
import time
from collections.abc import Callable

from app.domain.outcome import Outcome
from app.domain.trial import Sample, Workload
from app.domain.units import NS_PER_S
from app.worker.batch import Tokens, check_decode, decode_all
from app.worker.cancel import EngineFailure
from app.worker.engine import Context, Engine
from app.worker.native import llama
from app.worker.protocol import Message, RunTrial, TrialProgress, TrialSample
from app.worker.repeat import settled

MAX_DECODE_TOK = 64
MIN_DECODE_TOK = 8
MAX_DECODE_NS = 2 * NS_PER_S
PREFILL_WARM_UPS = 2
_ALIVE_NS = NS_PER_S


class Trial:
    """One workload on one context."""

    def __init__(
        self, engine: Engine, context: Context, workload: Workload, send: Callable[[Message], None]
    ) -> None:
        """Prepare the tokens.

        Raises:
            EngineFailure: The context cannot hold the workload.
        """
        self._engine = engine
        self._context = context
        self._workload = workload
        self._send = send
        self._n_decode = min(MAX_DECODE_TOK, workload.n_gen)
        self._check_room()
        rng = random.Random(20_480)  # noqa: S311 - a fixed sequence, not a secret
        n_vocab = context.model.n_vocab
        length = max(workload.depth, workload.n_prompt, self._n_decode)
        self._tokens = [
            [rng.randrange(n_vocab) for _ in range(length)] for _ in range(workload.n_seq)
        ]
        if llama.llama_vocab_get_add_bos(context.model.vocab):
            for sequence in self._tokens:
                sequence[0] = int(llama.llama_vocab_bos(context.model.vocab))
        self._states: list[ctypes.Array[ctypes.c_uint8]] = []
        self._alive_ns = 0

    def run(self, request: RunTrial) -> tuple[tuple[Sample, ...], tuple[Sample, ...]]:
        """Warm up, repeat, and return the prefill and the decode samples.

        Raises:
            EngineFailure: The engine failed, or the parent cancelled.
        """
        self._reach_depth()
        self._warm_up()
        half_ns = int(request.max_s * NS_PER_S) // 2
        prefill = self._repeat(request, "prefill", self._prefill, half_ns)
        decode = self._repeat(request, "decode", lambda: self._decode(self._n_decode), half_ns)
        return prefill, decode

    def _repeat(
        self, request: RunTrial, phase: str, sample: Callable[[], Sample], max_ns: int
    ) -> tuple[Sample, ...]:
        """Sample one phase until it is settled.

        Never in turns with the other one: each change of shape makes llama.cpp build its graph
        anew, which cost 2.5 % of a 50 ms prefill on a fast card beside llama-bench.
        """
        samples: list[Sample] = []
        deadline_ns = time.perf_counter_ns() + max_ns
        for repetition in range(max(request.max_reps, request.min_reps)):
            late = time.perf_counter_ns() > deadline_ns
            if repetition >= request.min_reps and (late or settled(samples)):
                break
            samples.append(sample())
            self._send(TrialSample(phase=phase, sample=samples[-1]))
        return tuple(samples)

    def _check_room(self) -> None:
        workload, context = self._workload, self._context
        if workload.n_seq > context.settings.n_seq_max:
            message = f"{workload.n_seq} sequences need n_seq_max of at least as many."
            raise EngineFailure(Outcome.UNSUPPORTED, "too_few_sequences", message)
        need = workload.depth + max(workload.n_prompt, self._n_decode)
        if need > context.n_ctx_seq:
            message = f"The workload needs {need} tokens, the context holds {context.n_ctx_seq}."
            hint = "Use a longer context or a smaller depth."
            raise EngineFailure(Outcome.UNSUPPORTED, "context_too_small", message, hint)

    def _warm_up(self) -> None:
        """Run every shape that will be timed; the first use of one may compile for minutes."""
        length = min(self._workload.n_prompt, self._context.settings.n_batch)
        for index in range(PREFILL_WARM_UPS):
            self._alive("warm_up", index / 3, force=True)
            self._restore()
            decode_all(self._context, self._prompt(length), self._engine)
        self._alive("warm_up", 2 / 3, force=True)
        self._decode(min(MIN_DECODE_TOK, self._n_decode), phase="warm_up")
        logits = llama.llama_get_logits_ith(self._context.handle, -1)
        if logits and not math.isfinite(logits[0]):
            message = "The model computes values that are not numbers."
            hint = "The file is probably damaged: download it again, or verify its checksum."
            raise EngineFailure(Outcome.UNSUPPORTED, "nan_logits", message, hint)

    def _prompt(self, length: int) -> list[object]:
        tokens = Tokens([s[:length] for s in self._tokens], self._workload.depth)
        self._kept = tokens  # the batches point into its arrays
        return tokens.batches(self._context.settings.n_batch)

    def _prefill(self) -> Sample:
        batches = self._prompt(self._workload.n_prompt)
        context, engine = self._context, self._engine
        self._restore()
        self._alive("prefill", force=True)
        start = time.perf_counter_ns()
        for batch in batches:
            engine.cancel.check()
            check_decode(llama.llama_decode(context.handle, batch), engine)
            self._alive("prefill")
        llama.llama_synchronize(context.handle)
        return Sample(n_tok=self._workload.n_prompt, ns=time.perf_counter_ns() - start)

    def _decode(self, n_tok: int, phase: str = "decode") -> Sample:
        """Time up to ``n_tok`` single-token steps of all sequences together."""
        depth, context, engine = self._workload.depth, self._context, self._engine
        steps = Tokens([s[:1] for s in self._tokens], depth)
        batch = steps.batches(steps.n_seq)[0]
        decode, synchronize, now = llama.llama_decode, llama.llama_synchronize, time.perf_counter_ns
        self._restore()
        self._alive(phase, force=True)
        done, start = 0, now()
        while done < n_tok:
            for index in range(steps.n_seq):
                steps.positions[index] = depth + done
            check_decode(decode(context.handle, batch), engine)
            synchronize(context.handle)
            done += 1
            engine.cancel.check()
            self._alive(phase)
            if done >= MIN_DECODE_TOK and now() - start > MAX_DECODE_NS:
                break
        return Sample(n_tok=done, ns=now() - start)

    def _reach_depth(self) -> None:
        """Fill the cache up to the depth once, and keep a copy where it cannot be rewound."""
        llama.llama_memory_clear(self._context.memory, False)
        depth, size = self._workload.depth, self._context.settings.n_batch
        if depth == 0:
            return
        tokens = Tokens([s[:depth] for s in self._tokens], 0)
        batches = tokens.batches(size)
        for index, batch in enumerate(batches):
            self._alive("warm_up", index / len(batches), force=True)
            decode_all(self._context, [batch], self._engine)
        if not self._can_rewind():
            self._states = [self._save(i) for i in range(self._workload.n_seq)]

    def _can_rewind(self) -> bool:
        """Whether dropping the newest tokens gives the earlier state back.

        A sliding window has forgotten what it needs by then; a recurrent state only advances.
        """
        model = self._context.model
        return model.n_swa == 0 and not model.is_recurrent and not model.is_hybrid

    def _save(self, seq: int) -> ctypes.Array[ctypes.c_uint8]:
        size = int(llama.llama_state_seq_get_size(self._context.handle, seq))
        state = (ctypes.c_uint8 * size)()
        if llama.llama_state_seq_get_data(self._context.handle, state, size, seq) != size:
            raise EngineFailure(
                Outcome.CRASHED, "state_failed", "The engine did not save its state."
            )
        return state

    def _restore(self) -> None:
        """Put every sequence back to the depth."""
        memory, depth = self._context.memory, self._workload.depth
        if depth and not self._states:
            for seq in range(self._workload.n_seq):
                llama.llama_memory_seq_rm(memory, seq, depth, -1)
            return
        llama.llama_memory_clear(memory, False)
        for seq, state in enumerate(self._states):
            if not llama.llama_state_seq_set_data(self._context.handle, state, len(state), seq):
                message = "The engine did not restore its state."
                raise EngineFailure(Outcome.CRASHED, "state_failed", message)
        llama.llama_synchronize(self._context.handle)

    def _alive(self, phase: str, frac: float | None = None, *, force: bool = False) -> None:
        """Say that work goes on, at most once a second inside a timed pass."""
        now_ns = time.perf_counter_ns()
        if force or now_ns - self._alive_ns >= _ALIVE_NS:
            self._alive_ns = now_ns
            self._send(TrialProgress(phase=phase, frac=frac))
