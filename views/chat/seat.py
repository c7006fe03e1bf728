"""The engine of the chat page: loaded when a question needs it, given back when told to."""

import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack

from app.chat.selftest import Trial
from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.events import ChatEvent, GenerationFinished, TrialProgress
from app.worker.protocol import ChatMessage, Sampling, TemplateFinding
from views.bridge import Jobs
from views.chat.picker import Choice
from views.chat.turns import ChatReady, TemplateTried
from views.chat.watch import Watch
from views.port import ChatPort, SessionPort

WAIT_S = 0.1


class Seat:
    """Answers like a loaded model, and loads it first where it is not. One thread only.

    Attributes:
        choice: What to load.
        template: Who writes the prompts, as ``Chat.template``.
        stop: Strings that end answers.
        news: What happened besides the events of an answer; take it after each event.
        watch: Readings, while a model is loaded.
    """

    def __init__(
        self, session: SessionPort, jobs: Jobs, choice: Choice, stopping: threading.Event
    ) -> None:
        """Load nothing yet.

        Args:
            session: The core.
            jobs: Who else may use the engine.
            choice: What to load.
            stopping: Set while the user wants the answer stopped.
        """
        self.choice = choice
        self.template = ""
        self.stop: tuple[str, ...] = ()
        self.news: list[object] = []
        self.watch: Watch | None = None
        self._session = session
        self._jobs = jobs
        self._stopping = stopping
        self._loaded: Choice | None = None
        self._chat: ChatPort | None = None
        self._held = ExitStack()
        self._tried: set[tuple[str, str]] = set()

    @property
    def chat(self) -> ChatPort | None:
        """The loaded model."""
        chat = self._chat
        return chat if chat is not None and chat.is_running else None

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Stream an answer, loading the model first; closing the iterator cancels either."""
        problem = yield from self._sit()
        chat = self._chat
        if problem is not None or chat is None:
            reason = "cancelled" if problem is None else "error"
            yield GenerationFinished(reason=reason, n_prompt=0, error=problem)
            return
        chat.template, chat.stop = self.template, self.stop
        yield from chat.generate(messages, sampling, max_tokens)

    def leave(self) -> None:
        """Unload the model and let others use the engine."""
        self._chat = self._loaded = self.watch = None
        self._held.close()

    def _sit(self) -> Generator[ChatEvent, None, ErrorInfo | None]:
        """Load what is chosen where it is not loaded; return why that failed."""
        if self._is_seated():
            return None
        self.leave()
        if self._jobs.running("search"):
            yield TrialProgress(phase="wait")
        while True:
            try:
                if self._held.enter_context(self._jobs.engine_turn(self._stopping, shares=True)):
                    yield from self._load()
            except EnvironmentProblem as problem:
                if problem.info.code != "busy" or not self._jobs.running("serve"):
                    return problem.info
            else:
                return None
            finally:
                if self._chat is None:
                    self._held.close()
            if not (yield from self._server_left()):
                return None

    def _server_left(self) -> Generator[ChatEvent, None, bool]:
        """Wait until our server, which leaves no room, has ended; ``False`` = stopped first."""
        while self._jobs.running("serve"):
            yield TrialProgress(phase="wait")
            if self._stopping.wait(WAIT_S):
                return False
        return True

    def _is_seated(self) -> bool:
        """Whether what is chosen is loaded; a profile may have been found by the model's name."""
        chat, loaded, choice = self.chat, self._loaded, self.choice
        if chat is None or loaded is None:
            return False
        is_same = choice.profile_id in {loaded.profile_id, chat.profile_id}
        return choice.model == loaded.model and is_same

    def _load(self) -> Iterator[ChatEvent]:
        chat = self._session.chat(self.choice.model, self.choice.profile_id)
        self._held.callback(chat.close)
        chat.template, chat.stop = self.template, self.stop
        yield from chat.load()
        findings = yield from self._try_template(chat)
        profiles = (p for p in self._session.profiles() if p.id == chat.profile_id)
        machine, telemetry = self._session.machine(), self._session.telemetry()
        self.watch = Watch(chat, machine, telemetry, next(profiles, None))
        self._chat, self._loaded = chat, self.choice
        self.news.append(
            ChatReady(
                settings=chat.settings,
                profile_id=chat.profile_id,
                has_template=chat.has_template,
                notes=tuple(chat.notes),
                devices=self._session.estimate(chat.spec, chat.settings).estimate.devices,
            )
        )
        if findings:
            self.news.append(TemplateTried(findings=findings))

    def _try_template(
        self, chat: ChatPort
    ) -> Generator[ChatEvent, None, tuple[TemplateFinding, ...]]:
        """Try two short turns, once per model and template; return what is wrong."""
        key = (chat.spec.fingerprint, self.template)
        if key in self._tried:
            return ()
        trial = Trial(chat)
        for _ in trial.run():
            yield TrialProgress(phase="template")
        self._tried.add(key)
        return trial.findings
