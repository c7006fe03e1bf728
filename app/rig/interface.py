"""The interface every rig has. The sweep knows nothing else of where trials run."""

from collections.abc import Iterator
from typing import Protocol

from app.domain.events import RigEvent
from app.domain.memory import MemoryEstimate
from app.domain.settings import Settings
from app.domain.sweep import SearchSpace
from app.domain.trial import TrialRequest


class Rig(Protocol):
    """Runs trials one after the other and answers what would fit.

    A trial re-uses the loaded weights when ``settings.load_key`` equals the last one's and the
    last trial left the engine usable; otherwise it loads, which gives it a new ``load_id``.
    """

    def space(self) -> SearchSpace:
        """Return model, host and devices with the free memory of now."""
        ...

    def dry_run(self, settings: Settings) -> MemoryEstimate:
        """Return the need of ``settings`` without allocating it, with a verdict per device.

        Never raises for a configuration the engine refuses: verdict ``does_not_fit`` + note.
        """
        ...

    def run_trial(self, request: TrialRequest) -> Iterator[RigEvent]:
        """Run one trial; the last event is ``TrialFinished`` (``index`` is filled in by the sweep).

        Yields ``TrialProgress`` at least every 200 ms. Closing the generator abandons the
        trial and stops the engine within 2 s. An engine failure is an outcome, not an
        exception.
        """
        ...

    def now_s(self) -> float:
        """Return the rig's clock, seconds: real for workers, virtual for a replay."""
        ...

    def close(self) -> None:
        """End the engine and release the devices."""
        ...
