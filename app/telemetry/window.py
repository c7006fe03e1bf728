"""What the probes saw while one trial ran, and whether the trial was left in peace."""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from statistics import median

from app.domain.machine import GpuSample, HostSample, PowerSource, PowerState
from app.domain.trial import TelemetryWindow

MIN_SAMPLES = 3
DISTURBING_BYTES = 64 << 20
"""Growth of another program on the GPU that makes a trial not count."""


Sources = dict[str, list[GpuSample]]
"""Probe → its samples of one GPU. Two probes are never mixed in one figure."""


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
        self._gpus: dict[str, Sources] = {}
        self._host: list[HostSample] = []
        self._lock = threading.Lock()
        self._closed = False

    def own(self, pid: int) -> None:
        """Name a process of the engine that was started after the window opened."""
        with self._lock:
            self._own_pids.add(pid)

    def add(self, key: str, sample: GpuSample, source: str = "") -> None:
        """Take a GPU's sample, under the GPU's joined key, from the probe ``source``."""
        with self._lock:
            if not self._closed:
                self._gpus.setdefault(key, {}).setdefault(source, []).append(sample)

    def add_host(self, sample: HostSample) -> None:
        """Take a sample of the host."""
        with self._lock:
            if not self._closed:
                self._host.append(sample)

    def close(self, order: Sequence[str] = ()) -> None:
        """Set ``result``, or ``reason`` where there is none; probes named first win."""
        with self._lock:
            self._closed = True
            gpus = {key: _ordered(sources, order) for key, sources in self._gpus.items()}
            self.result, self.reason = summarise(gpus, self._host, self._own_pids)


def summarise(
    gpus: dict[str, Sources], host: Sequence[HostSample], own_pids: Collection[int]
) -> tuple[TelemetryWindow | None, str | None]:
    """Return what was seen, or why nothing can be said (``no_probe``, ``too_few_samples``).

    Each figure of a GPU comes from the first of its probes that has three readings of it: a
    median of two says nothing.
    """
    if not gpus:
        # without a GPU there is one thing to tell: that the power changed under the trial
        disturbed = _disturbed({}, host, own_pids)
        seen = TelemetryWindow(n_samples=len(host), disturbed=disturbed)
        return (seen, None) if disturbed else (None, "no_probe")
    enough = {key: kept for key, sources in gpus.items() if (kept := _enough(sources))}
    if not enough:
        return None, "too_few_samples"
    return (
        TelemetryWindow(
            n_samples=max(len(s) for sources in enough.values() for s in sources.values()),
            vram_peak_bytes=_ints(enough, "vram_used_bytes", max),
            vram_growth_bytes=_ints(enough, "vram_used_bytes", _growth),
            shared_growth_bytes=_ints(enough, "shared_used_bytes", _growth),
            busy_pct=_floats(enough, "busy_pct", median),
            mem_busy_pct=_floats(enough, "mem_busy_pct", median),
            pcie_rx_bytes_s=_floats(enough, "pcie_rx_bytes_s", median),
            power_w=_floats(enough, "power_w", median),
            temp_max_c=_floats(enough, "temp_c", max),
            throttle={
                key: tuple(sorted({reason for s in known for reason in s.throttle or ()}))
                for key, sources in enough.items()
                if (known := [s for s in _all(sources) if s.throttle is not None])
            },
            disturbed=_disturbed(enough, host, own_pids),
        ),
        None,
    )


def _ordered(sources: Sources, order: Sequence[str]) -> Sources:
    names = sorted(sources, key=lambda n: order.index(n) if n in order else len(order))
    return {name: sources[name] for name in names}


def _enough(sources: Sources) -> Sources:
    read = {name: [s for s in samples if _is_reading(s)] for name, samples in sources.items()}
    return {name: samples for name, samples in read.items() if len(samples) >= MIN_SAMPLES}


def _is_reading(sample: GpuSample) -> bool:
    known = (sample.busy_pct, sample.vram_used_bytes, sample.power_w, sample.temp_c)
    awake = sample.power_state is not PowerState.ASLEEP
    return awake and any(value is not None for value in known)


def _all(sources: Sources) -> list[GpuSample]:
    return [sample for samples in sources.values() for sample in samples]


def _values(sources: Sources, field: str) -> list[float]:
    """Return the readings of the best probe that has enough of them."""
    for samples in sources.values():
        values = [value for s in samples if (value := getattr(s, field)) is not None]
        if len(values) >= MIN_SAMPLES:
            return values
    return []


def _floats(
    gpus: dict[str, Sources], field: str, figure: Callable[[list[float]], float]
) -> dict[str, float]:
    found = {key: _values(sources, field) for key, sources in gpus.items()}
    return {key: figure(values) for key, values in found.items() if values}


def _ints(
    gpus: dict[str, Sources], field: str, figure: Callable[[list[float]], float]
) -> dict[str, int]:
    return {key: int(value) for key, value in _floats(gpus, field, figure).items()}


def _growth(values: list[float]) -> float:
    return max(values) - values[0]


def _disturbed(
    gpus: dict[str, Sources], host: Sequence[HostSample], own_pids: Collection[int]
) -> str | None:
    powers = {s.power_source for s in host if s.power_source is not PowerSource.UNKNOWN}
    if len(powers) > 1:
        return "power_source_changed"
    every = [samples for sources in gpus.values() for samples in sources.values()]
    return "other_process" if any(_others_grew(samples, own_pids) for samples in every) else None


def _others_grew(samples: Sequence[GpuSample], own_pids: Collection[int]) -> bool:
    # A list without a single size (Windows' NVML) cannot show growth.
    lists = [
        s.processes
        for s in samples
        if s.processes is not None
        and (not s.processes or any(p.vram_bytes is not None for p in s.processes))
    ]
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
