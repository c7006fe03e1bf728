"""Whether drafting tokens pays: one comparison, asked for by the user."""

from app.domain.errors import ErrorInfo
from app.domain.record import Record

LOOKUP = "lookup"
"""Drafts that are looked up in the text so far, without a draft model."""


class DraftResult(Record, frozen=True, kw_only=True):
    """Decode with drafts against decode without, measured in turns.

    Attributes:
        draft: ``lookup`` (drafts from the text so far) or the draft model's file.
        kept: Whether the gain is proven: its whole 95 % interval lies above 0, with equal output.
        gain_frac: How much faster; ``gain_low_frac`` … ``gain_high_frac`` is the interval.
        accepted_frac: Share of drafted tokens the model agreed with.
        same_output: Whether both wrote the same tokens.
        n_draft: Tokens drafted at once, at most.
        n_gpu_layers: Layers of the draft model on the devices; ``None`` = no draft model.
        error: Why it was not measured.
    """

    draft: str
    kept: bool = False
    gain_frac: float | None = None
    gain_low_frac: float | None = None
    gain_high_frac: float | None = None
    accepted_frac: float | None = None
    same_output: bool | None = None
    n_draft: int
    n_gpu_layers: int | None = None
    error: ErrorInfo | None = None
