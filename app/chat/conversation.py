"""One conversation with a model: keeps every turn, also when an answer is cut short."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import NamedTuple, Protocol

import msgspec

from app.chat.overflow import (
    TOO_LARGE,
    Overflow,
    is_beyond_protocol,
    is_too_long,
    summary_request,
    too_long,
    turns_to_drop,
    with_summary,
)
from app.chat.thread import Bookmark, Thread, Turn
from app.chat.writing import Writing
from app.domain.errors import EnvironmentProblem, ErrorInfo, UsageProblem
from app.domain.events import (
    ChatEvent,
    GenerationFinished,
    GenerationStarted,
    SaveFailed,
    TokenGenerated,
    TurnsDropped,
)
from app.worker.protocol import ChatMessage, Sampling


class Answering(Protocol):
    """What a conversation needs of an engine."""

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Stream an answer; closing the generator cancels it within one token."""
        ...


class Conversation:
    """Turns of user and assistant on one engine. Not thread-safe: one caller at a time.

    Every method that answers is a generator of events, the last of which is
    ``GenerationFinished``. Closing it early stops the engine; what had arrived is kept.

    Attributes:
        thread: The turns, with their branches.
        overflow: What happens when the context is full; may be changed at any time.
        sampling: Sampler chain used where a call names none.
        max_tokens: Longest answer where a call names none; ``None`` = to the context's end.
        refused: Message of the last call that did not fit and is no turn any more; empty = none.
    """

    def __init__(
        self,
        engine: Answering,
        system: str | None = None,
        history: tuple[ChatMessage, ...] = (),
        *,
        thread: Thread | None = None,
        overflow: Overflow = Overflow.STOP,
        sampling: Sampling | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start empty, or where another conversation left off.

        Args:
            engine: What answers.
            system: System prompt, if any; that of ``thread`` wins.
            history: Turns of user and assistant that were had before.
            thread: Turns kept elsewhere; ``None`` = in memory only.
            overflow: What happens when the context is full.
            sampling: Sampler chain.
            clock_s: Monotonic seconds.
        """
        self.thread = Thread(system=system or "") if thread is None else thread
        self.overflow = overflow
        self.sampling = sampling
        self.max_tokens: int | None = None
        self.refused = ""
        self._engine = engine
        self._clock_s = clock_s
        self._n_dropped = 0
        self._summary = ""
        self._n_ctx = 0
        self._last_problem: ErrorInfo | None = None
        for message in history:
            if message.role != "system":
                self.thread.add(message.role, message.content)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """Every turn of the branch in view, the system prompt first."""
        return (*_system(self.thread.system), *map(_message, self.thread.turns))

    @property
    def prompt(self) -> tuple[ChatMessage, ...]:
        """What the model would see now: without the turns left out, with their summary."""
        system = with_summary(self.thread.system, self._summary)
        return (*_system(system), *map(_message, self.thread.turns[self._n_dropped :]))

    def ask(
        self, text: str, sampling: Sampling | None = None, max_tokens: int | None = None
    ) -> Iterator[ChatEvent]:
        """Send ``text`` and stream the answer.

        A message that does not fit is taken out again: the conversation is as it was before,
        and ``refused`` has the text.

        Raises:
            UsageProblem: The message is empty.
        """
        _must_say_something(text)
        yield from self._ask(text, sampling, max_tokens, self._here())

    def retry(
        self, sampling: Sampling | None = None, max_tokens: int | None = None
    ) -> Iterator[ChatEvent]:
        """Answer the last message of the user anew; the old answer stays as another branch.

        It stays in view where no new one begins: stopped at once, say. After a failure the
        message waits for an answer, so that ``go_on`` gives one.
        """
        before, last = self.thread.bookmark(), self.thread.turns[-1:]
        if last and last[0].role == "assistant":
            self.thread.step_to(last[0].parent)
        has_failed = False
        try:
            with closing(self._answer(sampling, max_tokens)) as answer:
                for event in answer:
                    has_failed = _is_failure(event)
                    yield event
        finally:
            if not has_failed and self.thread.bookmark().next_id == before.next_id:
                self.thread.return_to(before)

    def edit(
        self,
        turn_id: int,
        text: str,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Replace a message of the user by ``text`` and answer that, as another branch.

        Raises:
            UsageProblem: There is no such message, or the new one is empty.
        """
        _must_say_something(text)
        before, parent = self._here(), self.thread.turn(turn_id).parent
        self.thread.step_to(parent)
        self._forget_dropped()
        yield from self._ask(text, sampling, max_tokens, before)

    def go_on(
        self, sampling: Sampling | None = None, max_tokens: int | None = None
    ) -> Iterator[ChatEvent]:
        """Go on with the last answer where it was cut short; without one, begin it."""
        last = self.thread.turns[-1:]
        begun = last[0] if last and last[0].role == "assistant" else None
        yield from self._answer(sampling, max_tokens, begun)

    def switch(self, turn_id: int) -> None:
        """Bring the newest branch through a turn into view."""
        self.thread.switch(turn_id)
        self._forget_dropped()

    def delete(self, turn_id: int) -> None:
        """Delete a turn and what follows it, from the disk, too."""
        self.thread.delete(turn_id)
        self._forget_dropped()

    def _ask(
        self, text: str, sampling: Sampling | None, max_tokens: int | None, before: "_Place"
    ) -> Iterator[ChatEvent]:
        """Add a message and answer it; where it does not fit, be as ``before``."""
        self.thread.add("user", text)
        with closing(self._answer(sampling, max_tokens)) as answer:
            for event in answer:
                if is_too_long(event):
                    self._take_out(text, before)
                yield event

    def _answer(
        self, sampling: Sampling | None, max_tokens: int | None, begun: Turn | None = None
    ) -> Generator[ChatEvent, None, None]:
        self.refused = ""
        if not self.thread.turns:
            raise UsageProblem("no_message", "There is no message to answer.", "Write one first.")
        writing = Writing(self.thread, begun, self._clock_s)
        yield from self._said(self.thread.save())
        end = None
        try:
            limit = self.max_tokens if max_tokens is None else max_tokens
            stream = self._within_context(writing, sampling or self.sampling, limit)
            with closing(stream):
                for event in stream:
                    if isinstance(event, TokenGenerated):
                        writing.take(event)
                    if isinstance(event, GenerationFinished):
                        end = event
                    else:
                        yield event
                    if writing.is_due():
                        yield from self._said(writing.save())
        finally:
            # also when the caller stops here, closing this generator
            problem = writing.finish(end)
        yield from self._said(problem)
        if end is not None:
            yield end

    def _within_context(
        self, writing: Writing, sampling: Sampling | None, max_tokens: int | None
    ) -> Generator[ChatEvent, None, None]:
        """Answer; where the context is full, make room as the user chose, and go on."""
        n_gen, first = 0, None
        while True:
            end = yield from self._stream(sampling, max_tokens)
            first = first or end
            n_gen += end.n_gen
            if end.reason == "context_full" or is_beyond_protocol(end):
                writing.rest()
                room = yield from self._make_room(end)
                if room:
                    max_tokens = None if max_tokens is None else max_tokens - end.n_gen
                    continue
            yield self._total(first, end, n_gen)
            return

    def _stream(
        self, sampling: Sampling | None, max_tokens: int | None
    ) -> Generator[ChatEvent, None, GenerationFinished]:
        stream = self._engine.generate(self.prompt, sampling, max_tokens)
        try:
            for event in stream:
                if isinstance(event, GenerationFinished):
                    return event
                if isinstance(event, GenerationStarted):
                    self._n_ctx = event.n_ctx
                yield event
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()
        error = ErrorInfo(code="no_end", message="The engine stopped without a word.")
        return GenerationFinished(reason="error", n_prompt=0, error=error)

    def _make_room(self, end: GenerationFinished) -> Generator[ChatEvent, None, bool]:
        """Leave out the oldest turns; return whether that made the prompt shorter."""
        if self.overflow is Overflow.STOP:
            return False
        turns = tuple(map(_message, self.thread.turns))
        n_tok, n_ctx = end.n_prompt + end.n_gen, self._n_ctx
        if is_beyond_protocol(end):
            # nobody has counted its tokens; half of it is a beginning
            n_tok = sum(len(m.content) for m in self.prompt)
            n_ctx = n_tok // 2
        n = turns_to_drop(self.thread.system, turns, self._n_dropped, n_tok, n_ctx)
        if n <= self._n_dropped:
            return False
        if self.overflow is Overflow.SUMMARISE and self._n_ctx:
            self._summary = yield from self._summarise(turns[self._n_dropped : n])
        self._n_dropped = n
        yield TurnsDropped(n_turns=n, summary=self._summary)
        return True

    def _summarise(self, turns: tuple[ChatMessage, ...]) -> Generator[ChatEvent, None, str]:
        question, max_tokens = summary_request(turns, self._summary, self._n_ctx)
        stream = self._engine.generate(question, Sampling(temperature=0), max_tokens)
        parts: list[str] = []
        for event in stream:
            if isinstance(event, TokenGenerated):
                if event.kind == "answer":
                    parts.append(event.text)
                yield TokenGenerated(text="", n_tok=0)  # a cancel point
        # where the model gives none, the turns are left out without
        return "".join(parts).strip()

    def _total(
        self, first: GenerationFinished, last: GenerationFinished, n_gen: int
    ) -> GenerationFinished:
        """Return the end of an answer that may have taken several attempts."""
        end = msgspec.structs.replace(last, n_gen=n_gen, ttft_ms=first.ttft_ms or last.ttft_ms)
        is_alone = sum(t.role == "user" for t in self.thread.turns[self._n_dropped :]) < 2
        if is_beyond_protocol(end) and is_alone:
            return msgspec.structs.replace(end, error=TOO_LARGE)
        if end.reason != "context_full" or n_gen:
            return end
        error = too_long(last.n_prompt, self._n_ctx, is_alone=is_alone)
        return msgspec.structs.replace(end, error=error)

    def _said(self, problem: ErrorInfo | None) -> Iterator[ChatEvent]:
        """Say once that saving fails, until it works again."""
        if problem is not None and problem != self._last_problem:
            yield SaveFailed(error=problem)
        self._last_problem = problem

    def _here(self) -> "_Place":
        return _Place(self.thread.bookmark(), self._n_dropped, self._summary)

    def _take_out(self, text: str, before: "_Place") -> None:
        """Be as before a message that does not fit; where the disk refuses, it stays a turn."""
        try:
            self.thread.return_to(before.bookmark)
        except EnvironmentProblem:
            return
        self._n_dropped, self._summary = before.n_dropped, before.summary
        self.refused = text

    def _forget_dropped(self) -> None:
        self._n_dropped, self._summary = 0, ""


class _Place(NamedTuple):
    """Where a conversation stands."""

    bookmark: Bookmark
    n_dropped: int
    summary: str


def _must_say_something(text: str) -> None:
    if not text.strip():
        raise UsageProblem("empty_message", "The message is empty.", "Write something first.")


def _is_failure(event: ChatEvent) -> bool:
    """Whether an answer ended with an error that another attempt may not meet."""
    is_error = isinstance(event, GenerationFinished) and event.error is not None
    return is_error and not is_too_long(event)


def _message(turn: Turn) -> ChatMessage:
    return ChatMessage(role=turn.role, content=turn.content, reasoning=turn.reasoning)


def _system(text: str) -> tuple[ChatMessage, ...]:
    return (ChatMessage(role="system", content=text),) if text else ()
