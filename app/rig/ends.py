"""How a worker can fail to answer."""

from app.worker.protocol import Failed


class WorkerEnd(Exception):
    """A worker that will not answer any more."""


class WorkerDied(WorkerEnd):
    """The process ended (or its words made no sense) before it answered.

    Attributes:
        code: Exit code; negative = ended by that signal; ``None`` = not gone yet.
        lines: Last lines of its log and standard error.
        protocol: What was wrong with its words, if that was it.
    """

    def __init__(self, code: int | None, lines: tuple[str, ...], protocol: str | None) -> None:
        """Keep what is known of the end."""
        super().__init__(f"worker ended with {code}")
        self.code = code
        self.lines = lines
        self.protocol = protocol


class WorkerSilent(WorkerEnd):
    """The budget of a phase ran out."""

    def __init__(self, phase: str, budget_s: float) -> None:
        """Keep which one."""
        super().__init__(f"no progress in {phase} for {budget_s:.0f} s")
        self.phase = phase
        self.budget_s = budget_s


class WorkerRefused(WorkerEnd):
    """The worker cannot work here at all (no such remote device, say) and says why."""

    def __init__(self, failed: Failed) -> None:
        """Keep the reason."""
        super().__init__(failed.error.message)
        self.outcome = failed.outcome
        self.error = failed.error


class WorkerAbsent(WorkerEnd):
    """The program could not be started at all."""
