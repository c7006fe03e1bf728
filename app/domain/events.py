"""What happened, in the past tense: the vocabulary between rig, sweep, session and surfaces."""

from app.domain.errors import ErrorInfo
from app.domain.memory import DeviceMemory
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import SweepPlan, SweepResult
from app.domain.trial import Trial, TrialRequest


class Event(Record, frozen=True, kw_only=True, tag_field="type"):
    """Base of events; ``--progress jsonl`` streams them as they are."""


class SweepPlanned(Event, frozen=True, kw_only=True, tag="sweep.planned"):
    """The plan is ready; nothing has been loaded yet."""

    plan: SweepPlan


class TrialStarted(Event, frozen=True, kw_only=True, tag="trial.started"):
    """A trial begins; ``index`` counts from 0."""

    index: int
    request: TrialRequest


class TrialProgress(Event, frozen=True, kw_only=True, tag="trial.progress"):
    """A sign of life at least every 200 ms: a point where cancelling takes effect.

    Attributes:
        phase: ``start``, ``cool_down``, ``load``, ``context``, ``warm_up``, ``prefill``,
            ``decode`` or, after the last trial, ``check`` (of the output).
        frac: Progress of the phase 0–1 where known.
    """

    phase: str
    frac: float | None = None


class TrialFinished(Event, frozen=True, kw_only=True, tag="trial.finished"):
    """A trial ended and is stored."""

    index: int
    trial: Trial


class SweepPaused(Event, frozen=True, kw_only=True, tag="sweep.paused"):
    """The search waits: asking for the next event goes on, cancelling keeps what there is.

    Attributes:
        code: Why, a note of ``assets/text``: ``power_source_changed``, ``power_mode_changed``.
    """

    code: str


class SweepFinished(Event, frozen=True, kw_only=True, tag="sweep.finished"):
    """The search ended, whole or early; everything measured is in ``result``."""

    result: SweepResult


class GenerationStarted(Event, frozen=True, kw_only=True, tag="generation.started"):
    """The prompt is built; it is read next.

    Attributes:
        n_prompt: Its tokens.
        n_prompt_reused: Of these, tokens still valid in the cache: only the rest is read.
        n_ctx: Tokens the context holds.
        template: ``model``, ``text`` (plain completion) or the built-in template used instead.
    """

    n_prompt: int
    n_prompt_reused: int
    n_ctx: int
    template: str


class PromptProgress(Event, frozen=True, kw_only=True, tag="prompt.progress"):
    """Part of the prompt has been read; ``n_done`` counts what was found in the cache, too."""

    n_done: int
    n_prompt: int


class TokenGenerated(Event, frozen=True, kw_only=True, tag="token.generated"):
    """A piece of the answer.

    Attributes:
        text: New text (may be empty while a multi-byte character is incomplete).
        n_tok: Tokens generated so far.
        kind: ``answer``, ``reasoning`` (thought before the answer, without its markers) or
            ``tool_call`` (with its markers).
    """

    text: str
    n_tok: int
    kind: str = "answer"


class GenerationFinished(Event, frozen=True, kw_only=True, tag="generation.finished"):
    """The answer ended.

    Attributes:
        reason: ``stop`` (end-of-generation token), ``length``, ``context_full``,
            ``cancelled`` or ``error``.
        n_prompt: Prompt tokens.
        n_prompt_reused: Of these, tokens found in the cache.
        n_gen: Generated tokens.
        ttft_ms: Request start to first token.
        prefill_tok_s: Prompt speed.
        decode_tok_s: Generation speed, first token excluded.
        error: Cause, when it failed.
    """

    reason: str
    n_prompt: int
    n_prompt_reused: int = 0
    n_gen: int = 0
    ttft_ms: float | None = None
    prefill_tok_s: float | None = None
    decode_tok_s: float | None = None
    error: ErrorInfo | None = None


class TurnsDropped(Event, frozen=True, kw_only=True, tag="turns.dropped"):
    """The context was too small: the model does not see the oldest turns (they stay stored).

    Attributes:
        n_turns: Turns left out of the prompt, counted from the oldest.
        summary: What stands in for them; empty = nothing.
    """

    n_turns: int
    summary: str = ""


class SaveFailed(Event, frozen=True, kw_only=True, tag="save.failed"):
    """The conversation could not be written; it goes on, and writing is tried again."""

    error: ErrorInfo


class ServerStarted(Event, frozen=True, kw_only=True, tag="server.started"):
    """A local server accepts requests.

    Attributes:
        port: Where, on 127.0.0.1.
        effective: Settings the engine uses.
        devices: Bytes allocated per device, as the engine counts them.
    """

    port: int
    effective: Settings
    devices: tuple[DeviceMemory, ...]


class ServerProgress(Event, frozen=True, kw_only=True, tag="server.progress"):
    """Requests so far, and how many are being answered now; comes every 100 ms, too."""

    n_requests: int
    n_active: int


class ServerStopped(Event, frozen=True, kw_only=True, tag="server.stopped"):
    """The server went away by itself; ``error`` says why."""

    n_requests: int
    error: ErrorInfo | None = None


RigEvent = TrialProgress | TrialFinished
SweepEvent = (
    SweepPlanned | TrialStarted | TrialProgress | TrialFinished | SweepPaused | SweepFinished
)
ChatEvent = (
    TrialProgress
    | GenerationStarted
    | PromptProgress
    | TokenGenerated
    | TurnsDropped
    | SaveFailed
    | GenerationFinished
)
"""``TrialProgress`` comes while a model that was unloaded is loaded again."""
ServerEvent = TrialProgress | ServerStarted | ServerProgress | ServerStopped
