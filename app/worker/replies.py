"""Lines from a worker to the core: what it answers and reports."""

from app.domain.errors import ErrorInfo
from app.domain.machine import EngineInfo
from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.trial import Sample
from app.worker.message import Message


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """First line of a child.

    ``chat_templates`` names the engine's built-in ones; empty = it does not say.
    """

    protocol: int
    app_version: str
    pid: int
    engine: EngineInfo
    chat_templates: tuple[str, ...] = ()


class LoadStarted(Message, frozen=True, kw_only=True, tag="load.started"):
    """The engine begins to read the weights."""


class LoadProgress(Message, frozen=True, kw_only=True, tag="load.progress"):
    """Share of the weights read, 0–1 (with mmap the engine reports few steps)."""

    frac: float


class LoadFinished(Message, frozen=True, kw_only=True, tag="load.finished"):
    """The weights are in place."""

    requested: Settings
    effective: Settings
    elapsed_ns: int


class DryRunFinished(Message, frozen=True, kw_only=True, tag="dry_run.finished"):
    """What ``settings`` would allocate, per device (``host`` = RAM), without verdicts.

    ``refused`` holds the engine's reason when it would not create the context.
    """

    devices: tuple[DeviceMemory, ...]
    effective: Settings | None
    elapsed_ns: int
    refused: ErrorInfo | None = None


class TrialStarted(Message, frozen=True, kw_only=True, tag="trial.started"):
    """The context exists.

    Attributes:
        effective: Settings the engine really uses.
        devices: Bytes allocated per device, as the engine counts them.
    """

    effective: Settings
    devices: tuple[DeviceMemory, ...]


class TrialProgress(Message, frozen=True, kw_only=True, tag="trial.progress"):
    """Phase ``context``, ``warm_up``, ``prefill``, ``decode``; share done where known."""

    phase: str
    frac: float | None = None


class TrialSample(Message, frozen=True, kw_only=True, tag="sample"):
    """One timed pass, as it ends: a crash later loses nothing measured before."""

    phase: str
    sample: Sample


class TrialFinished(Message, frozen=True, kw_only=True, tag="trial.finished"):
    """All repetitions are done."""

    prefill: tuple[Sample, ...]
    decode: tuple[Sample, ...]


class GenerateStarted(Message, frozen=True, kw_only=True, tag="generate.started"):
    """The prompt is built.

    Attributes:
        n_prompt: Its tokens.
        n_reused: Of these, tokens still valid in the cache.
        template: ``model`` (the file's own), ``text`` (no template: plain completion), or the
            name of the built-in template that was used instead.
        n_ctx: Tokens the context holds.
    """

    n_prompt: int
    n_reused: int
    template: str
    n_ctx: int = 0


class GenerateProgress(Message, frozen=True, kw_only=True, tag="generate.progress"):
    """Phase ``template``, ``context`` or ``prefill``; in prefill the prompt tokens done."""

    phase: str
    n_done: int = 0


class Token(Message, frozen=True, kw_only=True, tag="token"):
    """Text that has become complete, and how many tokens were generated so far.

    ``kind`` is ``answer``, ``reasoning`` or ``tool_call``.
    """

    text: str
    n_tok: int
    kind: str = "answer"


class GenerateFinished(Message, frozen=True, kw_only=True, tag="generate.finished"):
    """The answer ended: ``stop``, ``length``, ``context_full`` or ``cancelled``."""

    reason: str
    n_prompt: int
    n_reused: int
    n_gen: int
    ttft_ns: int | None
    prefill_ns: int
    decode_ns: int


class TokenizeFinished(Message, frozen=True, kw_only=True, tag="tokenize.finished"):
    """Token count of the text or prompt asked for, and of each turn's text alone."""

    n_tok: int
    per_message: tuple[int, ...] = ()


class TemplateFinding(Record, frozen=True, kw_only=True):
    """Something wrong with a chat template.

    Attributes:
        error: What it is and what the user can do.
        stop: A string that would end the answer where the template does; empty = none.
    """

    error: ErrorInfo
    stop: str = ""


class TemplateChecked(Message, frozen=True, kw_only=True, tag="check_template.finished"):
    """What is wrong with the template.

    Attributes:
        template: As in ``generate.started``.
        findings: What is wrong, worst first; empty = nothing.
        turn_end: Text that ends an assistant's turn, as the template writes it.
        builtin: The built-in template llama.cpp takes it for; empty = none.
    """

    template: str
    findings: tuple[TemplateFinding, ...]
    turn_end: str = ""
    builtin: str = ""


class OutputChecked(Message, frozen=True, kw_only=True, tag="check_output.finished"):
    """How far the distributions of the next token lie apart.

    Attributes:
        kl_mean_nats: Mean Kullback-Leibler divergence from the reference, nats.
        kl_max_nats: Largest of them.
        same_top: Places at which both find the same token likeliest.
        n_places: Places compared.
        n_tok: Tokens of text read.
    """

    kl_mean_nats: float
    kl_max_nats: float
    same_top: int
    n_places: int
    n_tok: int


class Speculated(Message, frozen=True, kw_only=True, tag="speculate.finished"):
    """Passes without and with drafts, taken in turns.

    Attributes:
        plain: Passes without.
        drafted: Passes with.
        n_drafted: Tokens drafted in all passes.
        n_accepted: Of these, tokens the model would have written itself.
        same_output: Whether both wrote the same tokens.
    """

    plain: tuple[Sample, ...]
    drafted: tuple[Sample, ...]
    n_drafted: int
    n_accepted: int
    same_output: bool


class ServeStarted(Message, frozen=True, kw_only=True, tag="serve.started"):
    """The server accepts requests.

    Attributes:
        port: Where, on 127.0.0.1.
        effective: Settings the engine really uses.
        devices: Bytes allocated per device, as the engine counts them.
    """

    port: int
    effective: Settings
    devices: tuple[DeviceMemory, ...]


class ServeProgress(Message, frozen=True, kw_only=True, tag="serve.progress"):
    """Requests so far, and how many of them are being answered now."""

    n_requests: int
    n_active: int


class ServeFinished(Message, frozen=True, kw_only=True, tag="serve.finished"):
    """The server has stopped."""

    n_requests: int


class Heartbeat(Message, frozen=True, kw_only=True, tag="heartbeat"):
    """The child's Python side lives (1 Hz); says nothing about progress."""


class Log(Message, frozen=True, kw_only=True, tag="log"):
    """A line of the engine's log: ``debug``, ``info``, ``warn`` or ``error``."""

    level: str
    text: str


class Failed(Message, frozen=True, kw_only=True, tag="error"):
    """The running request failed; the child lives on unless it says otherwise by ending."""

    outcome: Outcome
    error: ErrorInfo


class Bye(Message, frozen=True, kw_only=True, tag="bye"):
    """Last line of an orderly end."""


Reply = (
    Hello
    | LoadStarted
    | LoadProgress
    | LoadFinished
    | DryRunFinished
    | TrialStarted
    | TrialProgress
    | TrialSample
    | TrialFinished
    | GenerateStarted
    | GenerateProgress
    | Token
    | GenerateFinished
    | TokenizeFinished
    | TemplateChecked
    | OutputChecked
    | Speculated
    | ServeStarted
    | ServeProgress
    | ServeFinished
    | Heartbeat
    | Log
    | Failed
    | Bye
)
