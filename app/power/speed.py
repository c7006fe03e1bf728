"""Decode speed as the governor wants it: pauses taken out, and what a fuller context costs too."""

from app.domain.record import Record


class Load(Record, frozen=True, kw_only=True):
    """What a model reads per token.

    Attributes:
        weights_bytes: Weights.
        kv_bytes_per_token: KV cache per token of context; ``None`` = unknown (counts as nothing).
    """

    weights_bytes: int
    kv_bytes_per_token: int | None = None


class SpeedWatch:
    """Tokens per second of work, as if the context were empty. Not thread-safe.

    A token costs the weights and the cache so far, so a context that fills slows decode down
    without any heat; without that a long conversation would look like a hot memory.
    """

    def __init__(self, load: Load | None = None) -> None:
        """Start with nothing seen."""
        self._load = load
        self._seen: tuple[float, int] | None = None

    def speed(self, now_s: float, n_tok: int, depth: int, duty: float) -> float | None:
        """Return the speed since the last call, tok/s; ``None`` when nothing was decoded.

        Args:
            now_s: Seconds on a steady clock.
            n_tok: Tokens decoded in this answer so far.
            depth: Tokens in the context.
            duty: Share of the time that was worked.
        """
        before, self._seen = self._seen, (now_s, n_tok)
        if before is None or now_s <= before[0] or n_tok <= before[1]:
            return None
        if not before[1]:
            return None  # prefill is in it as well, and short answers would look slow
        rate = (n_tok - before[1]) / (now_s - before[0]) / max(duty, 0.01)
        return rate * self._depth_factor(depth)

    def rest(self) -> None:
        """An answer ended: the next one is counted from its own beginning."""
        self._seen = None

    def _depth_factor(self, depth: int) -> float:
        load = self._load
        if load is None or not load.weights_bytes or load.kv_bytes_per_token is None:
            return 1.0
        return 1.0 + depth * load.kv_bytes_per_token / load.weights_bytes
