"""How long a worker may be silent in each phase before it counts as hung."""

from app.domain.record import Record

_MODEL_BYTES_S = 20e6
# seconds per prompt token and byte of weights: about 160 GFLOPS, a slow CPU
_TOKEN_BYTE_S = 2e-11


class Budgets(Record, frozen=True, kw_only=True):
    """Seconds without a sign of progress (a heartbeat is none).

    Attributes:
        hello_s: Start of the process to ``hello``: libraries and drivers load.
        load_s: Reading the weights, on top of the time their bytes take on a slow disk.
        context_s: Creating a context.
        first_use_s: First use of a shape; software Vulkan compiles for up to 71 s.
        batch_s: One prompt batch, on top of the time it takes on a slow CPU.
        token_s: One generated token of every sequence.
        dry_run_s: One answer of the planner.
        cancel_s: From ``cancel`` to the end of the request.
        shutdown_s: From ``shutdown`` to the end of the process.
        terminate_s: From the polite signal to the end of the process.
    """

    hello_s: float = 90.0
    load_s: float = 60.0
    context_s: float = 120.0
    first_use_s: float = 240.0
    batch_s: float = 120.0
    token_s: float = 60.0
    dry_run_s: float = 60.0
    cancel_s: float = 1.5
    shutdown_s: float = 2.0
    terminate_s: float = 3.0

    def silence_s(self, phase: str, model_bytes: int, n_batch: int) -> float:
        """Return how long ``phase`` may be silent.

        Args:
            phase: ``load``, ``context``, ``warm_up``, ``prefill``, ``decode`` or ``dry_run``.
            model_bytes: Size of the weights.
            n_batch: Tokens submitted at once.
        """
        batch_s = n_batch * model_bytes * _TOKEN_BYTE_S
        return {
            "load": self.load_s + model_bytes / _MODEL_BYTES_S,
            "context": self.context_s,
            "warm_up": self.first_use_s + batch_s,
            "prefill": self.batch_s + batch_s,
            "decode": self.token_s,
            "dry_run": self.dry_run_s,
        }[phase]
