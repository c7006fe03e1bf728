"""What happened, in the past tense: the vocabulary between rig, sweep, session and surfaces."""

from app.domain.errors import ErrorInfo
from app.domain.record import Record
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
        phase: ``start``, ``load``, ``context``, ``warm_up``, ``prefill`` or ``decode``.
        frac: Progress of the phase 0–1 where known.
    """

    phase: str
    frac: float | None = None


class TrialFinished(Event, frozen=True, kw_only=True, tag="trial.finished"):
    """A trial ended and is stored."""

    index: int
    trial: Trial


class SweepFinished(Event, frozen=True, kw_only=True, tag="sweep.finished"):
    """The search ended, whole or early; everything measured is in ``result``."""

    result: SweepResult


class TokenGenerated(Event, frozen=True, kw_only=True, tag="token.generated"):
    """A piece of the answer.

    Attributes:
        text: New text (may be empty while a multi-byte character is incomplete).
        n_tok: Tokens generated so far.
    """

    text: str
    n_tok: int


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


RigEvent = TrialProgress | TrialFinished
SweepEvent = SweepPlanned | TrialStarted | TrialProgress | TrialFinished | SweepFinished
ChatEvent = TokenGenerated | GenerationFinished
