"""One trial: one set of settings × one workload at one KV depth."""

from app.domain.errors import ErrorInfo
from app.domain.outcome import Outcome
from app.domain.record import Record
from app.domain.settings import Settings


class Workload(Record, frozen=True, kw_only=True):
    """What is timed.

    Attributes:
        n_prompt: Prompt tokens per sequence (prefill), ≥ 1.
        n_gen: Generated tokens per sequence (decode), ≥ 1.
        depth: Tokens already in the KV cache when the timing starts.
        n_seq: Sequences in parallel.
    """

    n_prompt: int = 512
    n_gen: int = 64
    depth: int = 0
    n_seq: int = 1


class Sample(Record, frozen=True, kw_only=True):
    """One timed pass: ``n_tok`` tokens in ``ns`` nanoseconds."""

    n_tok: int
    ns: int


class Rate(Record, frozen=True, kw_only=True):
    """A speed with its 95 % interval of the median, tokens per second."""

    median: float
    low: float
    high: float


class TelemetryWindow(Record, frozen=True, kw_only=True):
    """What the probes saw while a trial ran; absent = fewer than 3 samples or no probe.

    Memory is watched from before the load; speed, heat and power from when it was measured.

    Attributes:
        n_samples: Readings inside the window.
        vram_peak_bytes: Highest dedicated use, per GPU key.
        vram_growth_bytes: Largest rise of dedicated use, per GPU key.
        shared_growth_bytes: Largest rise of shared memory, per GPU key.
        mem_busy_pct: Median busy time of the memory controller, per GPU key.
        pcie_rx_bytes_s: Median traffic into the device, per GPU key.
        busy_pct: Median busy time, per GPU key.
        power_w: Median draw, per GPU key.
        energy_j: What the device's own counter counted, per GPU key.
        energy_s: Seconds between the two readings of that counter, per GPU key.
        temp_max_c: Highest temperature, per GPU key.
        throttle: Throttle reasons seen, per GPU key.
        disturbed: Why the window does not count, if it does not.
    """

    n_samples: int
    vram_peak_bytes: dict[str, int] = {}
    vram_growth_bytes: dict[str, int] = {}
    shared_growth_bytes: dict[str, int] = {}
    busy_pct: dict[str, float] = {}
    mem_busy_pct: dict[str, float] = {}
    pcie_rx_bytes_s: dict[str, float] = {}
    power_w: dict[str, float] = {}
    energy_j: dict[str, float] = {}
    energy_s: dict[str, float] = {}
    temp_max_c: dict[str, float] = {}
    throttle: dict[str, tuple[str, ...]] = {}
    disturbed: str | None = None


class TrialRequest(Record, frozen=True, kw_only=True):
    """What the search asks a rig to run.

    Attributes:
        stage: Stage of the search that asks, e.g. ``layers``.
        settings: Requested settings.
        workload: What to time.
        min_reps: Repetitions at least.
        max_reps: Repetitions at most.
        max_s: Soft bound of the timed part, seconds; ``min_reps`` are run regardless.
    """

    stage: str
    settings: Settings
    workload: Workload
    min_reps: int = 3
    max_reps: int = 8
    max_s: float = 20.0


class Trial(Record, frozen=True, kw_only=True):
    """A finished trial, stored as it ends. Rates are derived from the raw samples.

    Attributes:
        request: What was asked.
        load_id: Number of the weight-allocating load it ran on (failed ones included), from 1.
        outcome: How it ended.
        effective: Settings the engine really used.
        prefill: Raw prefill passes.
        decode: Raw decode passes.
        device_bytes: Measured (or exactly planned) need per device.
        host_bytes: Host buffers of the engine.
        shared_growth_bytes: Growth of shared memory beyond known host buffers.
        load_s: Seconds the load took, ``None`` when the weights were already there.
        elapsed_s: Seconds from request to end on the rig's clock.
        telemetry: What the probes saw.
        error: Cause, when it failed.
        log_tail: Last lines of the engine's log.
        ended_utc: RFC 3339 time.
    """

    request: TrialRequest
    load_id: int
    outcome: Outcome
    effective: Settings | None = None
    prefill: tuple[Sample, ...] = ()
    decode: tuple[Sample, ...] = ()
    device_bytes: dict[str, int] = {}
    host_bytes: int | None = None
    shared_growth_bytes: int | None = None
    load_s: float | None = None
    elapsed_s: float = 0.0
    telemetry: TelemetryWindow | None = None
    error: ErrorInfo | None = None
    log_tail: tuple[str, ...] = ()
    ended_utc: str = ""
