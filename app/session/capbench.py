"""The workload of a cap sweep: a model that answers without end, and the sensors beside it."""

import time
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from app.advice.text import render_power
from app.domain.errors import EnvironmentProblem
from app.domain.events import ChatEvent, GenerationFinished, TokenGenerated
from app.domain.machine import GpuSample
from app.domain.pacing import Pace
from app.domain.sweep import Reason
from app.domain.trial import Workload
from app.power.caphand import CapHand
from app.power.capsweep import CapSample
from app.power.devices import reading_of
from app.power.knobs import Knobs
from app.power.ownership import Watch, check
from app.worker.protocol import ChatMessage, Sampling

SAMPLE_S = 1.0
SENTENCE = "The quick brown fox looks at entry {n} of the list and jumps over the lazy dog. "
_TOKENS_PER_SENTENCE = 20
_DECODED_MIN_S = 0.1


class Answering(Protocol):
    """A loaded engine."""

    pace: Pace

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        stop: tuple[str, ...] = (),
        template: str = "",
    ) -> Generator[ChatEvent, None, None]:
        """Stream an answer; an event comes every 100 ms at least."""
        ...


class Stopped(Exception):
    """The user has seen enough."""


class EngineBench:
    """Answers of the goal's size, one after the other: prefill and decode as in use."""

    def __init__(
        self,
        engine: Answering,
        workload: Workload,
        readings: Callable[[], Sequence[GpuSample]],
        is_cancelled: Callable[[], bool],
        *,
        hand: CapHand | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Prepare; the engine is loaded.

        Args:
            engine: Answers.
            workload: How long prompts and answers are.
            readings: Reads the device now, best probe first.
            is_cancelled: Asked at every event.
            hand: Sets limits; ``None`` = what is set is the pace (its share in place of watts).
            clock: Seconds, steady.
        """
        self._engine, self._workload, self._hand = engine, workload, hand
        self._readings, self._is_cancelled, self._clock = readings, is_cancelled, clock
        self._answer: Generator[ChatEvent, None, None] | None = None
        self._n_answers = 0
        self._watch, self._knobs, self._set_s = Watch(), Knobs(), 0.0
        self._seen: tuple[float, int] | None = None

    def set_cap(self, watts: float) -> str | None:
        """Set a limit and read it back (or a pace); the code of why not."""
        if self._hand is not None:
            why_not = self._hand.set(watts)
            if why_not is None:
                self._knobs, self._set_s = Knobs(limit_w=watts), self._clock()
            return why_not
        self._engine.pace = Pace(duty=watts)
        return None

    def sample(self) -> CapSample:
        """Run the workload for about a second.

        Raises:
            Stopped: The user cancelled.
            EnvironmentProblem: The engine failed, the helper is gone, or somebody else turns the
                limit.
        """
        end_s = self._clock() + SAMPLE_S
        n_tok, decode_s, prefill = 0, 0.0, None
        while self._clock() < end_s:
            if self._is_cancelled():
                raise Stopped
            event = self._next()
            if isinstance(event, GenerationFinished):
                prefill = event.prefill_tok_s or prefill
            elif isinstance(event, TokenGenerated):
                more, seconds = self._progress(event.n_tok)
                n_tok, decode_s = n_tok + more, decode_s + seconds
        if self._hand is not None and not self._hand.keep():
            message = "The power helper has ended; it puts the limit back."
            raise EnvironmentProblem("helper_gone", message, "Start the measurement again.")
        samples = self._readings()
        now = reading_of(samples, None, active=True)
        self._watch, foreign = check(self._watch, self._knobs, now, self._clock(), self._set_s)
        if foreign is not None:
            why = Reason(code=self._watch.withheld[foreign])
            raise EnvironmentProblem(why.code, render_power(why), "Start the measurement again.")
        return CapSample(
            t_s=self._clock(),
            decode_tok_s=n_tok / decode_s if decode_s >= _DECODED_MIN_S and n_tok else None,
            prefill_tok_s=prefill,
            power_w=now.power_w,
            temp_c=now.temp_c,
            fan_pct=next((s.fan_pct for s in samples if s.fan_pct is not None), None),
            throttle=now.throttle or (),
        )

    def restore(self) -> None:
        """Put back what was set, and end the answer."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None
        if self._hand is not None:
            self._hand.restore()
        self._engine.pace = Pace()

    def _next(self) -> ChatEvent:
        if self._answer is None:
            self._answer = self._engine.generate(
                (self._prompt(),), Sampling(seed=self._n_answers), self._workload.n_gen, (), "text"
            )
            self._seen = None
        event = next(self._answer)
        if isinstance(event, GenerationFinished):
            self._answer.close()
            self._answer = None
            if event.error is not None:
                raise EnvironmentProblem(event.error.code, event.error.message, event.error.hint)
        return event

    def _prompt(self) -> ChatMessage:
        """Return a prompt that begins like no other, so that no cache answers for it."""
        self._n_answers += 1
        count = max(1, self._workload.n_prompt // _TOKENS_PER_SENTENCE)
        first = self._n_answers * count
        text = "".join(SENTENCE.format(n=n) for n in range(first, first + count))
        return ChatMessage(role="user", content=f"{self._n_answers}. {text}")

    def _progress(self, n_tok: int) -> tuple[int, float]:
        """Return tokens and seconds since the event before, once the first token is there."""
        now_s, before = self._clock(), self._seen
        if n_tok == 0:
            return 0, 0.0
        self._seen = (now_s, n_tok)
        return (0, 0.0) if before is None else (n_tok - before[1], now_s - before[0])
