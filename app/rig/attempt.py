"""A trial in the making: what the worker has said of it so far."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.domain.causes import Cause
from app.domain.events import TrialProgress
from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.trial import Sample, TelemetryWindow, Trial, TrialRequest
from app.domain.units import NS_PER_S
from app.rig.cooling import throttled_gpus
from app.rig.process import OTHER_QUESTION
from app.rig.seen import outcome_seen, pinned_bytes, shared_growth
from app.worker import protocol
from app.worker.protocol import Failed, LoadFinished, Reply

if TYPE_CHECKING:
    from app.domain.errors import ErrorInfo
    from app.rig.footprint import Footprint


class Attempt:
    """Collects replies; a crash later loses nothing that was measured before."""

    def __init__(self, request: TrialRequest) -> None:
        """Begin with nothing."""
        self.request = request
        self.phase = "start"
        self.telemetry: TelemetryWindow | None = None
        self.log_tail: tuple[str, ...] = ()
        self.footprints: tuple[Footprint, ...] = ()
        self._frac: float | None = None
        self._outcome: Outcome | None = None
        self._error: ErrorInfo | None = None
        self._effective: Settings | None = None
        self._devices: tuple[DeviceMemory, ...] = ()
        self._load_s: float | None = None
        self._samples: dict[str, list[Sample]] = {"prefill": [], "decode": []}

    def enter(self, phase: str) -> None:
        """Begin ``phase``."""
        self.phase, self._frac = phase, None

    def see(self, reply: Reply | None) -> TrialProgress:
        """Take note of ``reply`` and return the progress to show."""
        match reply:
            case protocol.LoadProgress():
                self._frac = reply.frac
            case protocol.TrialProgress():
                self.phase, self._frac = reply.phase, reply.frac
            case protocol.TrialStarted():
                self._effective, self._devices = reply.effective, reply.devices
            case protocol.TrialSample() if reply.phase in self._samples:
                self._samples[reply.phase].append(reply.sample)
            case _:
                pass
        return TrialProgress(phase=self.phase, frac=self._frac)

    def take(self, reply: Reply) -> bool:
        """Take the last reply of a request; return whether the trial can go on."""
        match reply:
            case Failed():
                self.fail(Cause(outcome=reply.outcome, error=reply.error))
            case LoadFinished():
                self._load_s = reply.elapsed_ns / NS_PER_S
                self._effective = reply.effective
                return True
            case protocol.TrialFinished():
                self._outcome = Outcome.OK
                self._samples = {"prefill": [*reply.prefill], "decode": [*reply.decode]}
                return True
            case _:
                self.fail(Cause(outcome=Outcome.CRASHED, error=OTHER_QUESTION))
        return False

    def fail(self, cause: Cause) -> None:
        """End the trial with ``cause``."""
        self._outcome, self._error = cause.outcome, cause.error

    @property
    def effective(self) -> Settings | None:
        """Settings the engine really uses, once it has said them."""
        return self._effective

    @property
    def devices(self) -> tuple[DeviceMemory, ...]:
        """Buffers the engine allocated, once the context exists."""
        return self._devices

    @property
    def load_s(self) -> float | None:
        """Seconds the load took, ``None`` when there was none."""
        return self._load_s

    def trial(
        self, load_id: int, elapsed_s: float, gpus: Mapping[str, int | None] | None = None
    ) -> Trial:
        """Return the finished trial; ``gpus`` are those whose shared memory tells of a spill."""
        settings = self._effective or self.request.settings
        pinned = pinned_bytes(self._devices, settings, loaded=self._load_s is not None)
        growth = shared_growth(self.telemetry, gpus, pinned)
        if self._outcome is Outcome.OK and settings.devices:
            self._outcome = outcome_seen(self.telemetry, gpus, growth)
        host = next((d.total_bytes for d in self._devices if d.device == "host"), None)
        is_failed = self._error is not None
        outcome = self._outcome or Outcome.CRASHED
        if outcome is Outcome.OK and throttled_gpus(self.telemetry):
            outcome = Outcome.THROTTLED
        return Trial(
            request=self.request,
            load_id=load_id,
            outcome=outcome,
            effective=self._effective,
            prefill=tuple(self._samples["prefill"]),
            decode=tuple(self._samples["decode"]),
            device_bytes={d.device: d.total_bytes for d in self._devices if d.device != "host"},
            host_bytes=host,
            load_s=self._load_s,
            elapsed_s=elapsed_s,
            shared_growth_bytes=growth,
            telemetry=self.telemetry,
            error=self._error,
            log_tail=self.log_tail if is_failed else (),
            ended_utc=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )
