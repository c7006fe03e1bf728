"""A model loaded for chat on chosen settings."""

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from types import TracebackType
from typing import Self

import msgspec

from app.domain.errors import EnvironmentProblem, ErrorInfo, UsageProblem
from app.domain.events import (
    ChatEvent,
    GenerationFinished,
    GenerationStarted,
    TokenGenerated,
    TrialProgress,
)
from app.domain.model import ModelSpec
from app.domain.pacing import Pace
from app.domain.settings import Settings
from app.power.keeper import Keeper
from app.rig.chat_engine import ChatEngine
from app.rig.lease import Lease
from app.rig.process import Launch
from app.session.aftermath import (
    LookAfterDeath,
    explained,
    explained_problem,
    nothing_seen,
)
from app.session.beside import shared_note
from app.session.landing import Landing
from app.session.power import Power
from app.worker.protocol import ChatMessage, Sampling, TemplateChecked, TokenizeFinished

IDLE_S = 15 * 60.0


class Chat:
    """A loaded model. A context manager: leaving it unloads the model.

    It holds the devices while the model is loaded, so that a search that is started meanwhile
    says what they are busy with; another model may share them where both fit. One thread at a
    time answers; ``unload_if_idle`` may be called by any.

    Attributes:
        spec: The model.
        settings: Settings it runs on (effective once loaded).
        profile_id: Stored profile they come from, if any.
        notes: Sentences the user should know; a load adds where it went wrong.
        template: Who writes the prompts: empty = the model's own template, ``text`` = nobody, or
            the name of a built-in one (the user's choice after ``check_template``).
        stop: Strings that end answers (also a choice after ``check_template``).
        idle_s: Seconds without a question after which ``unload_if_idle`` unloads the model.
        power: Heat and power of the devices it runs on; ``None`` = not governed.
    """

    def __init__(
        self,
        spec: ModelSpec,
        settings: Settings,
        launch: Launch,
        profile_id: str | None,
        notes: tuple[str, ...],
        *,
        clock_s: Callable[[], float] = time.monotonic,
        lease: Lease | None = None,
        power: Power | None = None,
        landing: Landing | None = None,
        after_death: LookAfterDeath = nothing_seen,
    ) -> None:
        """Prepare; nothing is loaded yet."""
        self._after_death = after_death
        self.spec = spec
        self.settings = settings
        self.profile_id = profile_id
        self.notes = notes
        self._first_notes = notes
        self._landing = landing
        self.template = ""
        self.stop: tuple[str, ...] = ()
        self.idle_s = IDLE_S
        self._asked = settings
        self._engine = ChatEngine(launch)
        self._lease = lease or Lease("chat")
        self._is_holding = False
        self._is_idle = False
        self.power = power
        self._keeper: Keeper | None = None
        self._clock_s = clock_s
        self._used_s = clock_s()
        self._lock = threading.Lock()

    @property
    def has_template(self) -> bool:
        """Whether the model brings a chat template; without one it completes plain text."""
        return self.spec.chat_template is not None

    @property
    def is_running(self) -> bool:
        """Whether it can answer: loaded and alive, or unloaded for idleness only."""
        return self._is_idle or self._engine.is_running

    @property
    def is_idle(self) -> bool:
        """Whether the model was unloaded because nobody asked anything; a question loads it."""
        return self._is_idle

    @property
    def pid(self) -> int | None:
        """Process id of the engine, while there is one."""
        return self._engine.pid

    def load(self) -> Iterator[TrialProgress]:
        """Load the model (again, after a crash); every event is a cancel point.

        Raises:
            EnvironmentProblem: The engine cannot be had or does not load it, or another RigTune
                holds the devices (``busy``).
        """
        with self._lock:
            yield from self._load()

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Stream an answer; closing the generator cancels within one token.

        A model that was unloaded for idleness is loaded first (``TrialProgress`` events).
        """
        with self._lock:
            self._used_s = self._clock_s()
            try:
                problem = yield from self._wake()
                if problem is not None:
                    yield GenerationFinished(reason="error", n_prompt=0, error=problem)
                    return
                answer = self._engine.generate(
                    messages, sampling, max_tokens, self.stop, self.template
                )
                told = answer if self._keeper is None else _governed(answer, self._keeper)
                for event in told:
                    yield self._explained(event)
            finally:
                self._used_s = self._clock_s()

    def tokenize(self, text: str) -> int:
        """Return the number of tokens of ``text``."""
        with self._lock:
            return self._engine.tokenize(text)

    def count_prompt(self, messages: tuple[ChatMessage, ...]) -> TokenizeFinished:
        """Return the tokens of a conversation's prompt, and of each turn's text alone.

        Raises:
            EnvironmentProblem: The model is not loaded, or its template refuses.
        """
        with self._lock:
            return self._engine.count_prompt(messages, self.template)

    def check_template(self) -> TemplateChecked:
        """Return what is wrong with the template that would be used; takes milliseconds.

        Raises:
            EnvironmentProblem: The model is not loaded, or the template ended the engine.
        """
        with self._lock:
            return self._engine.check_template(self.template)

    def choose_template(self, name: str) -> None:
        """Have another template write the prompts; ``name`` as in ``template``.

        Raises:
            UsageProblem: The engine has no such template.
        """
        self._engine.check_name(name)
        self.template = name

    def set_pace(self, pace: Pace) -> None:
        """Work at another pace from the next token on; callable from any thread."""
        self._engine.pace = pace

    def idle_left_s(self) -> float | None:
        """Return seconds until ``unload_if_idle`` would unload; ``None`` = nothing to unload."""
        if not self._engine.is_running:
            return None
        return max(0.0, self._used_s + self.idle_s - self._clock_s())

    def unload_if_idle(self) -> bool:
        """Unload the model if its time without a question is over; return whether it did."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            left_s = self.idle_left_s()
            if left_s is None or left_s > 0:
                return False
            self._release()
            self._is_idle = True
            return True
        finally:
            self._lock.release()

    def close(self) -> None:
        """Unload the model."""
        self._is_idle = False
        self._release()

    def __enter__(self) -> Self:
        """Load the model."""
        for _ in self.load():
            pass
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Unload the model."""
        self.close()

    def _load(self) -> Iterator[TrialProgress]:
        if not self._is_holding:
            self._lease.__enter__()
            self._is_holding = True
        is_loaded = False
        try:
            load = self._engine.start(self.spec, self._asked, self.template)
            self.notes = self._first_notes
            if self._landing is None:
                yield from load
            else:
                said = yield from self._landing.watched(load)
                self.notes = (*self._first_notes, *said)
            is_loaded = True
        except UsageProblem:
            raise
        except EnvironmentProblem as problem:
            raise explained_problem(problem, self._after_death) from problem
        finally:
            if not is_loaded:
                self._release()
        self._is_idle = False
        self.settings = self._engine.effective or self.settings
        self._used_s = self._clock_s()
        if self._lease.beside is not None:
            # two governors would undo each other's changes
            self.notes = (*self.notes, shared_note(self._lease.beside))
        elif self.power is not None:
            self._keeper = self.power.begin(self.spec, self.settings, self.set_pace)

    def _explained(self, event: ChatEvent) -> ChatEvent:
        """Return an answer's event; where the engine died, with the driver's reset."""
        if not isinstance(event, GenerationFinished) or event.error is None:
            return event
        if self._engine.is_running:
            return event
        return msgspec.structs.replace(event, error=explained(event.error, self._after_death))

    def _wake(self) -> Generator[TrialProgress, None, ErrorInfo | None]:
        """Load again what was unloaded for idleness; return why that failed."""
        if not self._is_idle:
            return None
        try:
            yield from self._load()
        except EnvironmentProblem as problem:
            return problem.info
        return None

    def _release(self) -> None:
        if self.power is not None and self._keeper is not None:
            # The keeper before the engine: a limit must not outlive what it was set for.
            self.power.end()
        self._keeper = None
        self._engine.close()
        if self._is_holding:
            self._is_holding = False
            self._lease.__exit__(None, None, None)


def _governed(answer: Generator[ChatEvent, None, None], keeper: Keeper) -> Iterator[ChatEvent]:
    """Pass an answer on, telling the governor how it comes along."""
    with closing(answer), keeper.answering():
        for event in answer:
            match event:
                case GenerationStarted(n_prompt=n_prompt):
                    keeper.progressed(0, n_prompt)
                case TokenGenerated(n_tok=n_tok):
                    keeper.progressed(n_tok)
                case GenerationFinished(n_gen=n_gen):
                    keeper.progressed(n_gen)
                case _:
                    pass
            yield event
