"""What the probes saw while one trial ran, and whether the trial was left in peace."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from statistics import median

from app.domain.machine import GpuSample, HostSample, PowerSource, PowerState
from app.domain.trial import TelemetryWindow
from app.domain.units import NS_PER_S

MIN_SAMPLES = 3
DISTURBING_BYTES = 64 << 20
"""Growth of another program on the GPU that makes a trial not count."""
MIN_ENERGY_S = 1.0
"""The counters step every 10 ms or more, so a shorter time says little."""


Sources = dict[str, list[GpuSample]]
"""Probe → its samples of one GPU. Two probes are never mixed in one figure."""


class Window:
    """Collects samples from its opening to its closing; filled by ``Telemetry``."""

    def __init__(
        self, own_pids: Iterable[int] = (), on_begin: Callable[[], None] = lambda: None
    ) -> None:
        """Start empty.

        Args:
            own_pids: Processes of the engine, whose memory is the trial itself.
            on_begin: Takes a reading when the measured part begins.
        """
        self._on_begin = on_begin
        self._since_ns: int | None = None
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

    def begin(self) -> None:
        """Note that the weights are in place and the measured part begins."""
        with self._lock:
            self._since_ns = time.perf_counter_ns()
        self._on_begin()

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
            self.result, self.reason = summarise(gpus, self._host, self._own_pids, self._since_ns)


def summarise(
    gpus: dict[str, Sources],
    host: Sequence[HostSample],
    own_pids: Collection[int],
    since_ns: int | None = None,
) -> tuple[TelemetryWindow | None, str | None]:
    """Return what was seen, or why nothing can be said (``no_probe``, ``too_few_samples``).

    Each figure of a GPU comes from the first of its probes that has three readings of it: a
    median of two says nothing.

    Args:
        gpus: Readings per GPU key and probe.
        host: Readings of the host.
        own_pids: Processes of the engine.
        since_ns: When the measured part began: a load in the same window would water down how
            busy and how hot the device was. ``None`` = it all counts.
    """
    if not gpus:
        # without a GPU there is one thing to tell: that the power changed under the trial
        disturbed = _disturbed({}, host, own_pids)
        seen = TelemetryWindow(n_samples=len(host), disturbed=disturbed)
        return (seen, None) if disturbed else (None, "no_probe")
    enough = {key: kept for key, sources in gpus.items() if (kept := _enough(sources))}
    if not enough:
        return None, "too_few_samples"
    timed = {key: _since(sources, since_ns) for key, sources in enough.items()}
    energy = {key: used for key, sources in timed.items() if (used := _energy(sources))}
    return (
        TelemetryWindow(
            n_samples=max(len(s) for sources in enough.values() for s in sources.values()),
            vram_peak_bytes=_ints(enough, "vram_used_bytes", max),
            vram_growth_bytes=_ints(enough, "vram_used_bytes", _rise),
            shared_growth_bytes=_ints(enough, "shared_used_bytes", _rise),
            busy_pct=_floats(timed, "busy_pct", median),
            mem_busy_pct=_floats(timed, "mem_busy_pct", median),
            pcie_rx_bytes_s=_floats(timed, "pcie_rx_bytes_s", median),
            power_w=_floats(timed, "power_w", median),
            energy_j={key: joules for key, (joules, _) in energy.items()},
            energy_s={key: seconds for key, (_, seconds) in energy.items()},
            temp_max_c=_floats(timed, "temp_c", max),
            throttle={
                key: tuple(sorted({reason for s in known for reason in s.throttle or ()}))
                for key, sources in timed.items()
                if (known := [s for s in _all(sources) if s.throttle is not None])
            },
            disturbed=_disturbed(enough, host, own_pids),
        ),
        None,
    )


def _since(sources: Sources, since_ns: int | None) -> Sources:
    return {
        name: [s for s in samples if since_ns is None or s.t_ns >= since_ns]
        for name, samples in sources.items()
    }


def _energy(sources: Sources) -> tuple[float, float] | None:
    """Return joules by the device's own counter and the seconds they were counted over."""
    for samples in sources.values():
        counted = [(s.t_ns, s.energy_j) for s in samples if s.energy_j is not None]
        if len(counted) < 2:
            continue
        seconds = (counted[-1][0] - counted[0][0]) / NS_PER_S
        joules = counted[-1][1] - counted[0][1]
        # It starts anew with the driver.
        if seconds >= MIN_ENERGY_S and joules >= 0:
            return joules, seconds
    return None


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


def _rise(values: list[float]) -> float:
    """Return the largest rise from an earlier to a later reading.

    Not from the first one: what an engine before this one held may be given back meanwhile.
    """
    lowest, rise = values[0], 0.0
    for value in values:
        lowest = min(lowest, value)
        rise = max(rise, value - lowest)
    return rise


def _disturbed(
    gpus: dict[str, Sources], host: Sequence[HostSample], own_pids: Collection[int]
) -> str | None:
    powers = {s.power_source for s in host if s.power_source is not PowerSource.UNKNOWN}
    if len(powers) > 1:
        return "power_source_changed"
    if len({s.power_mode for s in host if s.power_mode is not None}) > 1:
        return "power_mode_changed"
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
