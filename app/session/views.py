"""Answers of the façade that are more than one record of the domain."""

from app.domain.memory import MemoryEstimate, Verdict
from app.domain.record import Record
from app.domain.settings import Settings


class Estimate(Record, frozen=True, kw_only=True):
    """A configuration's need and the most that would fit around it.

    Attributes:
        settings: The configuration asked about.
        estimate: Its need and verdict per device.
        max_n_gpu_layers: Most layers that fit at this context; ``None`` = not known.
        max_n_ctx: Longest context that fits at these layers, tokens; ``None`` = not known.
    """

    settings: Settings
    estimate: MemoryEstimate
    max_n_gpu_layers: int | None
    max_n_ctx: int | None


class Prediction(Record, frozen=True, kw_only=True):
    """Decode speed of a model on this machine, and what it rests on.

    Attributes:
        tok_s: Tokens per second; ``None`` = nothing can be said.
        source: ``measured`` (tuned here), ``estimated`` (from other models' measurements here) or
            ``bound`` (at most, from the measured speed of RAM).
        reason: Why there is none: ``nothing_measured``, ``gpu_asleep`` or ``not_usable``.
    """

    tok_s: float | None = None
    source: str | None = None
    reason: str | None = None


class ModelEntry(Record, frozen=True, kw_only=True):
    """A model found on this machine, with its verdict.

    Attributes:
        id: What the user may type for it.
        origin: Program that downloaded it.
        name: That program's name for it.
        path: First file.
        file_bytes: Size of all its files.
        arch: Architecture, ``None`` when the header cannot be read.
        quant: File type such as ``Q4_K_M``.
        verdict: Whether all layers fit the devices (RAM when there is none).
        predicted_tok_s: ``predicted.tok_s``.
        predicted: Decode speed here, tagged, or why there is none.
        problem: Why it cannot be used, if so.
    """

    id: str
    origin: str
    name: str
    path: str
    file_bytes: int
    arch: str | None = None
    quant: str | None = None
    verdict: Verdict = Verdict.UNKNOWN
    predicted_tok_s: float | None = None
    predicted: Prediction = Prediction()
    problem: str | None = None
