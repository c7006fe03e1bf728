"""A worker that keeps one model loaded and answers conversations."""

from collections.abc import Generator, Iterator

from app.domain.errors import EnvironmentProblem, ErrorInfo, UsageProblem
from app.domain.events import (
    ChatEvent,
    GenerationFinished,
    GenerationStarted,
    PromptProgress,
    TokenGenerated,
    TrialProgress,
)
from app.domain.model import ModelSpec
from app.domain.pacing import Pace
from app.domain.settings import Settings
from app.domain.units import NS_PER_S
from app.rig.death import explain, problem
from app.rig.ends import WorkerEnd, WorkerSilent
from app.rig.process import (
    OTHER_QUESTION,
    Final,
    Launch,
    WorkerProcess,
    drain,
    start_worker,
)
from app.worker import protocol
from app.worker.protocol import ChatMessage, Failed, ProtocolError, Reply, Sampling

_NS_PER_MS = 1e6
_TEMPLATE_S = 2.0
# a slow CPU, far below what it really does
_TOKENIZED_BYTES_S = 50e3
_HOSTILE = ErrorInfo(
    code="chat_template",
    message="The model's chat template did not end and the engine was stopped.",
    hint="Choose one of the built-in templates instead, e.g. chatml, or plain text.",
)


class ChatEngine:
    """Loads a model and streams answers. Used by one thread at a time.

    Attributes:
        effective: Settings the engine took, once started.
        template: Who wrote the last prompt: ``model``, ``text`` or a built-in template's name.
        pace: How much of the time to work; may be set by any thread at any time.
        templates: Names of the built-in templates, once a worker runs; empty = not known.
    """

    def __init__(self, launch: Launch | None = None) -> None:
        """Start nothing yet."""
        self.effective: Settings | None = None
        self.template: str | None = None
        self.pace = Pace()
        self.templates: tuple[str, ...] = ()
        self._launch = launch or Launch()
        self._worker: WorkerProcess | None = None
        self._settings: Settings | None = None
        self._model_bytes = 0

    def start(
        self, model: ModelSpec, settings: Settings, template: str = ""
    ) -> Iterator[TrialProgress]:
        """Load ``model``, ending an earlier one; closing the generator cancels.

        Args:
            model: What to load.
            settings: On which settings.
            template: Chat template that is going to be used, as in ``generate``.

        Raises:
            UsageProblem: The engine has no such template; nothing was loaded then.
            EnvironmentProblem: The engine cannot be had or does not load it.
        """
        self.close()
        self._settings, self._model_bytes = settings, model.file_bytes
        frac: float | None = None
        try:
            for reply in self._load(model, settings, template):
                frac = reply.frac if isinstance(reply, protocol.LoadProgress) else frac
                yield TrialProgress(phase="load" if self._worker else "start", frac=frac)
        except WorkerEnd as end:
            raise problem(end, "load") from end
        finally:
            if self.effective is None:
                self._abandon()

    @property
    def is_running(self) -> bool:
        """Whether an answer can be asked for."""
        return bool(self.effective and self._worker and not self._worker.is_gone())

    @property
    def pid(self) -> int | None:
        """Process id of the worker, if there is one."""
        return self._worker.pid if self._worker else None

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        stop: tuple[str, ...] = (),
        template: str = "",
    ) -> Generator[ChatEvent, None, None]:
        """Stream an answer; the last event is ``GenerationFinished``.

        While nothing new comes (a long prompt is read) an event without text does, every
        100 ms, so that closing the generator cancels soon: within one token while decoding. A
        crash is an event, too: what was streamed before stays with the caller.

        Args:
            messages: The conversation; a last turn of the assistant is gone on with.
            sampling: Sampler chain; ``None`` = the defaults.
            max_tokens: Most tokens; ``None`` = until the model or the context ends.
            stop: Strings that end the answer.
            template: Empty = the model's own, ``text`` = none, or a built-in one's name.
        """
        if not self.is_running or self._settings is None or self._worker is None:
            yield _failed(
                ErrorInfo(
                    code="not_running", message="No model is loaded.", hint="Start the model again."
                )
            )
            return
        request = protocol.Generate(
            settings=self._settings,
            messages=messages,
            max_tokens=max_tokens,
            sampling=sampling or Sampling(),
            stop=stop,
            template=template,
            pace=self.pace,
        )
        try:
            yield from self._stream(self._worker, request)
        except WorkerEnd as end:
            self._abandon()
            is_hostile = isinstance(end, WorkerSilent) and end.phase == "template"
            yield _failed(_HOSTILE if is_hostile else explain(end, "decode").error)
        except ProtocolError:
            yield _failed(
                ErrorInfo(
                    code="conversation_too_long",
                    message="The conversation is larger than 1 MiB of text.",
                    hint="Start a new conversation, or remove long attachments.",
                )
            )

    def tokenize(self, text: str) -> int:
        """Return the number of tokens of ``text``.

        Raises:
            EnvironmentProblem: No model is loaded, or the engine ended.
        """
        return self.count(protocol.Tokenize(text=text)).n_tok

    def count_prompt(
        self, messages: tuple[ChatMessage, ...], template: str = ""
    ) -> protocol.TokenizeFinished:
        """Return the tokens of a conversation's prompt, and of each turn's text alone.

        Raises:
            EnvironmentProblem: No model is loaded, the template refuses, or the engine ended.
        """
        return self.count(protocol.Tokenize(messages=messages, template=template))

    def count(self, request: protocol.Tokenize) -> protocol.TokenizeFinished:
        """Return the answer to a question for tokens.

        Raises:
            EnvironmentProblem: No model is loaded, it cannot be answered, or the engine ended.
        """
        n_bytes = len(request.text) + sum(len(m.content) for m in request.messages)
        reply = self._question(request, _TEMPLATE_S + n_bytes / _TOKENIZED_BYTES_S)
        if isinstance(reply, protocol.TokenizeFinished):
            return reply
        raise _as_problem(reply)

    def check_template(self, template: str = "") -> protocol.TemplateChecked:
        """Return what is wrong with the template that would be used.

        Raises:
            EnvironmentProblem: No model is loaded, or the engine ended.
        """
        reply = self._question(protocol.CheckTemplate(template=template), _TEMPLATE_S)
        if isinstance(reply, protocol.TemplateChecked):
            return reply
        raise _as_problem(reply)

    def close(self) -> None:
        """End the engine and wait until it is gone."""
        self.effective = None
        if self._worker:
            self._worker.close()
            self._worker = None

    def _question(self, request: protocol.Message, patience_s: float) -> Final:
        if self._worker is None:
            raise EnvironmentProblem("not_running", "No model is loaded.", "Start the model.")
        try:
            return drain(self._worker.ask(request, "template", lambda _: patience_s))
        except WorkerEnd as end:
            self._abandon()
            raise problem(end, "template") from end
        except ProtocolError as error:
            message = "The text is larger than 1 MiB."
            raise EnvironmentProblem("text_too_long", message, "Use a shorter one.") from error

    def check_name(self, template: str) -> None:
        """Refuse the name of a chat template that the engine does not have.

        Raises:
            UsageProblem: It has none of that name.
        """
        if template and template != "text" and self.templates and template not in self.templates:
            message = f"There is no built-in chat template {template!r}."
            known = ", ".join(("text", *self.templates))
            raise UsageProblem("unknown_template", message, f"Known: {known}.")

    def _load(
        self, model: ModelSpec, settings: Settings, template: str
    ) -> Generator[Reply | None, None, None]:
        self._worker = yield from start_worker(self._launch)
        self.templates = self._worker.chat_templates
        self.check_name(template)
        request = protocol.Load(model_path=model.path, settings=settings)
        reply = yield from self._worker.ask(request, "load", self._silence_s)
        if not isinstance(reply, protocol.LoadFinished):
            raise _as_problem(reply)
        self.effective = reply.effective

    def _stream(
        self, worker: WorkerProcess, request: protocol.Generate
    ) -> Generator[ChatEvent, None, None]:
        has_begun, n_tok, n_prompt, pace = False, 0, 0, request.pace

        def silence_s(phase: str) -> float:
            if phase == "template":
                return _TEMPLATE_S
            # the first batch of each shape may compile for minutes
            return self._silence_s("decode" if has_begun else "warm_up")

        exchange = worker.ask(request, "warm_up", silence_s)
        try:
            while True:
                reply = next(exchange)
                if self.pace != pace:
                    pace = self.pace
                    worker.tell(protocol.SetPace(pace=pace))
                match reply:
                    case protocol.Token(text=text, n_tok=n_tok, kind=kind):
                        has_begun = True
                        yield TokenGenerated(text=text, n_tok=n_tok, kind=kind)
                    case protocol.GenerateStarted(n_prompt=n_prompt):
                        self.template = reply.template
                        yield _started(reply)
                    case protocol.GenerateProgress(phase="prefill", n_done=n_done):
                        yield PromptProgress(n_done=n_done, n_prompt=n_prompt)
                    case _:
                        yield TokenGenerated(text="", n_tok=n_tok)
        except StopIteration as stop:
            yield _finished(stop.value)
        finally:
            exchange.close()

    def _silence_s(self, phase: str) -> float:
        n_batch = self._settings.n_batch if self._settings else 0
        return self._launch.budgets.silence_s(phase, self._model_bytes, n_batch)

    def _abandon(self) -> None:
        """End the worker in the background."""
        self.effective = None
        if self._worker:
            self._worker.stop_soon()


def _started(reply: protocol.GenerateStarted) -> GenerationStarted:
    return GenerationStarted(
        n_prompt=reply.n_prompt,
        n_prompt_reused=reply.n_reused,
        n_ctx=reply.n_ctx,
        template=reply.template,
    )


def _finished(reply: Final) -> GenerationFinished:
    if not isinstance(reply, protocol.GenerateFinished):
        return _failed(reply.error if isinstance(reply, Failed) else OTHER_QUESTION)
    return GenerationFinished(
        reason=reply.reason,
        n_prompt=reply.n_prompt,
        n_prompt_reused=reply.n_reused,
        n_gen=reply.n_gen,
        ttft_ms=None if reply.ttft_ns is None else reply.ttft_ns / _NS_PER_MS,
        prefill_tok_s=_tok_s(reply.n_prompt - reply.n_reused, reply.prefill_ns),
        decode_tok_s=_tok_s(reply.n_gen - 1, reply.decode_ns),
    )


def _failed(error: ErrorInfo) -> GenerationFinished:
    return GenerationFinished(reason="error", n_prompt=0, error=error)


def _as_problem(reply: Final) -> EnvironmentProblem:
    error = reply.error if isinstance(reply, Failed) else OTHER_QUESTION
    return EnvironmentProblem(error.code, error.message, error.hint)


def _tok_s(n_tok: int, ns: int) -> float | None:
    return n_tok * NS_PER_S / ns if n_tok > 0 and ns > 0 else None
