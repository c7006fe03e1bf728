"""What the probes saw while one trial ran, and whether the trial was left in peace."""

import threading
from collections.abc import Collection, Iterable, Sequence
from statistics import median

from app.domain.machine import GpuSample, HostSample, PowerSource, PowerState
from app.domain.trial import TelemetryWindow

MIN_SAMPLES = 3
DISTURBING_BYTES = 64 << 20
"""Growth of another program on the GPU that makes a trial not count."""


class Window:
    """Collects samples from its opening to its closing; filled by ``Telemetry``."""

    def __init__(self, own_pids: Iterable[int] = ()) -> None:
        """Start empty.

        Args:
            own_pids: Processes of the engine, whose memory is the trial itself.
        """
        self.result: TelemetryWindow | None = None
        self.reason: str | None = None
        self._own_pids = set(own_pids)
        self._gpus: dict[str, list[GpuSample]] = {}
        self._host: list[HostSample] = []
        self._lock = threading.Lock()
        self._closed = False

    def own(self, pid: int) -> None:
        """Name a process of the engine that was started after the window opened."""
        with self._lock:
            self._own_pids.add(pid)

    def add(self, key: str, sample: GpuSample) -> None:
        """Take a GPU's sample, under the GPU's joined key."""
        with self._lock:
            if not self._closed:
                self._gpus.setdefault(key, []).append(sample)

    def add_host(self, sample: HostSample) -> None:
        """Take a sample of the host."""
        with self._lock:
            if not self._closed:
                self._host.append(sample)

    def close(self) -> None:
        """Set ``result``, or ``reason`` where there is none."""
        with self._lock:
            self._closed = True
            self.result, self.reason = summarise(self._gpus, self._host, self._own_pids)


def summarise(
    gpus: dict[str, list[GpuSample]], host: Sequence[HostSample], own_pids: Collection[int]
) -> tuple[TelemetryWindow | None, str | None]:
    """Return what was seen, or why nothing can be said (``no_probe``, ``too_few_samples``).

    A GPU with fewer than three readings is left out: a median of two says nothing.
    """
    if not gpus:
        return None, "no_probe"
    read = {key: [s for s in samples if _is_reading(s)] for key, samples in gpus.items()}
    enough = {key: samples for key, samples in read.items() if len(samples) >= MIN_SAMPLES}
    if not enough:
        return None, "too_few_samples"
    return (
        TelemetryWindow(
            n_samples=max(map(len, enough.values())),
            vram_peak_bytes=_ints(enough, "vram_used_bytes"),
            shared_growth_bytes=_growths(enough),
            busy_pct=_floats(enough, "busy_pct"),
            power_w=_floats(enough, "power_w"),
            temp_max_c={
                key: max(values)
                for key, samples in enough.items()
                if (values := _values(samples, "temp_c"))
            },
            throttle={
                key: tuple(sorted({reason for s in samples for reason in s.throttle or ()}))
                for key, samples in enough.items()
                if any(s.throttle is not None for s in samples)
            },
            disturbed=_disturbed(enough, host, own_pids),
        ),
        None,
    )


def _is_reading(sample: GpuSample) -> bool:
    known = (sample.busy_pct, sample.vram_used_bytes, sample.power_w, sample.temp_c)
    awake = sample.power_state is not PowerState.ASLEEP
    return awake and any(value is not None for value in known)


def _values(samples: Sequence[GpuSample], field: str) -> list[float]:
    values = (getattr(sample, field) for sample in samples)
    return [value for value in values if value is not None]


def _floats(gpus: dict[str, list[GpuSample]], field: str) -> dict[str, float]:
    found = {key: _values(samples, field) for key, samples in gpus.items()}
    return {key: median(v) for key, v in found.items() if len(v) >= MIN_SAMPLES}


def _ints(gpus: dict[str, list[GpuSample]], field: str) -> dict[str, int]:
    found = {key: _values(samples, field) for key, samples in gpus.items()}
    return {key: int(max(v)) for key, v in found.items() if v}


def _growths(gpus: dict[str, list[GpuSample]]) -> dict[str, int]:
    found = {key: _values(samples, "shared_used_bytes") for key, samples in gpus.items()}
    return {key: int(max(v) - v[0]) for key, v in found.items() if len(v) >= MIN_SAMPLES}


def _disturbed(
    gpus: dict[str, list[GpuSample]], host: Sequence[HostSample], own_pids: Collection[int]
) -> str | None:
    sources = {s.power_source for s in host if s.power_source is not PowerSource.UNKNOWN}
    if len(sources) > 1:
        return "power_source_changed"
    if any(_others_grew(samples, own_pids) for samples in gpus.values()):
        return "other_process"
    return None


def _others_grew(samples: Sequence[GpuSample], own_pids: Collection[int]) -> bool:
    lists = [s.processes for s in samples if s.processes is not None]
    if len(lists) < 2:
        return False
    before = {p.pid: p.vram_bytes or 0 for p in lists[0]}
    after = {p.pid: p.vram_bytes or 0 for p in lists[-1]}
    if own_pids and not set(own_pids) & (set(before) | set(after)):
        # In a container the driver reports pids of the host: ours cannot be told apart.
        return False
    return any(
        used - before.get(pid, 0) > DISTURBING_BYTES
        for pid, used in after.items()
        if pid not in own_pids
    )
