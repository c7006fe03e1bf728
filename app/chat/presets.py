"""Three ways to begin: a system prompt and a sampler chain each."""

from app.domain.record import Record
from app.worker.protocol import Sampling


class Preset(Record, frozen=True, kw_only=True):
    """A way to begin.

    Attributes:
        id: Stable name; surfaces have a title for it.
        system: System prompt.
        sampling: Sampler chain.
    """

    id: str
    system: str
    sampling: Sampling


PRESETS = (
    Preset(
        id="assistant",
        system="You are a helpful assistant. Answer briefly and say when you are not sure.",
        sampling=Sampling(),
    ),
    Preset(
        id="code",
        system=(
            "You are an experienced programmer. Give working code in fenced blocks with the "
            "language named, then one short explanation. Ask when the task is not clear."
        ),
        sampling=Sampling(temperature=0.2, top_p=0.9),
    ),
    Preset(
        id="writing",
        system=(
            "You are a careful editor and writer. Keep the author's voice, prefer plain words, "
            "and do not repeat yourself."
        ),
        sampling=Sampling(temperature=1.0, min_p=0.08, top_p=1.0, dry_multiplier=0.8),
    ),
)
