"""The one place that samples probes; dashboard, sweep and chat all read from it."""

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol, runtime_checkable

import psutil

from app.domain.machine import GpuProbe, GpuSample, HostProbe, HostSample
from app.domain.units import NS_PER_S
from app.telemetry.ring import Ring, Series
from app.telemetry.sampler import JOIN_S, Sampler
from app.telemetry.window import Window

LOG = logging.getLogger(__name__)

INTERVAL_S = 1.0
TRIAL_INTERVAL_S = 0.2
"""The driver itself refreshes utilisation about every 200 ms."""
FORCED_S = 0.5
"""Longest a trial waits for the readings at its edges; a stalled probe costs no more."""
STALE_INTERVALS = 3.0

GPU_COLUMNS = (
    "busy_pct",
    "mem_busy_pct",
    "vram_used_bytes",
    "shared_used_bytes",
    "temp_c",
    "temp_memory_c",
    "temp_margin_c",
    "power_w",
    "power_limit_w",
    "clock_mhz",
    "clock_memory_mhz",
    "fan_pct",
    "pcie_rx_bytes_s",
    "pcie_tx_bytes_s",
    "n_throttle",
    "limited_most_pct",
)
HOST_COLUMNS = ("cpu_busy_pct", "ram_available_bytes", "swap_used_bytes", "cpu_temp_c")

Subscriber = Callable[[str, GpuSample | HostSample], None]
"""Called on the probe's thread with the GPU's key (``host`` for the host) and the sample."""
HOST = "host"


@runtime_checkable
class TrialAware(Protocol):
    """A probe that reads more, or holds its device, while a trial runs."""

    def set_trial(self, *, active: bool) -> None:
        """Begin or end the closer look; the next sample reads the slow fields anew."""
        ...


@runtime_checkable
class Restful(Protocol):
    """A probe that can let go of what keeps a device awake until it is read again."""

    def rest(self) -> None:
        """Release handles; nothing is read for a while."""
        ...


class Telemetry:
    """Samples every probe on a thread of its own and keeps the recent past.

    The probes belong to it from ``start`` on: they are read and closed on their threads only.
    """

    def __init__(
        self,
        gpus: Sequence[GpuProbe],
        host: HostProbe | None = None,
        *,
        names: Mapping[str, str] | None = None,
        interval_s: float | None = INTERVAL_S,
    ) -> None:
        """Prepare, without reading anything.

        Args:
            gpus: Probes, the more precise first: it wins where two give the same field.
            host: Probe of CPU and RAM.
            names: A probe's key → the joined GPU's key (``app.machine.aliases``).
            interval_s: Seconds between readings; ``None`` = only inside trials and on demand.
        """
        self._names = dict(names or {})
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._subscribers: list[Subscriber] = []
        self._windows: list[Window] = []
        self._rings: dict[tuple[str, str], Ring] = {}
        self._latest: dict[tuple[str, str], GpuSample] = {}
        self._latest_host: HostSample | None = None
        self._samplers: dict[str, Sampler] = {}
        self._aware: dict[str, TrialAware] = {}
        for probe in gpus:
            self._add(probe.name, probe, partial(self._read_gpus, probe), probe.close)
        if host is not None:
            self._add(HOST, host, partial(self._read_host, host), lambda: None)

    def start(self) -> None:
        """Begin to sample."""
        for sampler in self._samplers.values():
            sampler.start()

    def stop(self, timeout_s: float = JOIN_S) -> bool:
        """End all threads and release the probes; ``False`` when a hanging one was left behind."""
        for sampler in self._samplers.values():
            sampler.stop()
        deadline = time.perf_counter() + timeout_s
        ended = [s.join(deadline - time.perf_counter()) for s in self._samplers.values()]
        return all(ended)

    def rename(self, names: Mapping[str, str]) -> None:
        """Take new joined keys, after the machine was looked at again."""
        with self._lock:
            self._names = dict(names)
            # A card that woke up may answer under another name than it slept under.
            self._latest.clear()

    def set_interval(self, interval_s: float | None) -> None:
        """Change the pace outside trials; ``None`` pauses (nobody is looking)."""
        with self._lock:
            self._interval_s = interval_s
            in_trial = bool(self._windows)
        if not in_trial:
            self._pace(interval_s, interval_s)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call ``callback`` with every sample from now on; returns what ends that."""
        with self._lock:
            self._subscribers.append(callback)

        def end() -> None:
            with self._lock, suppress(ValueError):
                self._subscribers.remove(callback)

        return end

    def sample_now(self, timeout_s: float = FORCED_S) -> bool:
        """Read every probe once; ``False`` when one did not answer in time."""
        return self._force(timeout_s, None)

    def keys(self) -> tuple[str, ...]:
        """Return the GPUs that were ever sampled."""
        with self._lock:
            return tuple(dict.fromkeys(self._names.get(k, k) for _, k in self._latest))

    def latest(self, key: str) -> tuple[GpuSample, ...]:
        """Return the newest sample of a GPU from each probe that reads it, best probe first."""
        with self._lock:
            return tuple(
                self._latest[probe, own]
                for probe in self._samplers
                for name, own in self._latest
                if name == probe and self._names.get(own, own) == key
            )

    def latest_host(self) -> HostSample | None:
        """Return the newest sample of the host."""
        with self._lock:
            return self._latest_host

    def is_stale(self, sample: GpuSample | HostSample) -> bool:
        """Whether a sample is older than its probe should need: the probe hangs or is paused."""
        age_s = (time.perf_counter_ns() - sample.t_ns) / NS_PER_S
        return age_s > STALE_INTERVALS * (self._interval_s or INTERVAL_S)

    def series(self, key: str, field: str) -> Series | None:
        """Return the recent past of a field of ``GpuSample`` (``HostSample`` for key ``host``)."""
        with self._lock:
            rings = [
                ring
                for probe in self._samplers
                for (name, own), ring in self._rings.items()
                if name == probe and self._names.get(own, own) == key and field in ring.columns
            ]
            best = next((ring for ring in rings if ring.has(field)), None)
            return best.series(field) if best is not None else None

    @contextmanager
    def window(self, own_pids: Collection[int] = ()) -> Iterator[Window]:
        """Watch over a trial: closer sampling, with a reading at either end.

        The window's ``result`` (or ``reason``) is set when the block ends. Never waits longer
        than half a second at either end.

        Args:
            own_pids: Processes of the engine; more can be named through ``Window.own``.
        """
        window = Window(own_pids, self._read_slow_too)
        with self._lock:
            self._windows.append(window)
        self._pace(TRIAL_INTERVAL_S, INTERVAL_S)
        self._force(FORCED_S, trial=True)
        try:
            yield window
        finally:
            with self._lock:
                last = len(self._windows) == 1
            self._force(FORCED_S, trial=False if last else None)
            with self._lock:
                self._windows.remove(window)
            for pid in own_processes():
                window.own(pid)
            window.close(tuple(self._samplers))
            if last:
                self._pace(self._interval_s, self._interval_s)

    def _add(
        self, name: str, probe: object, read: Callable[[], None], close: Callable[[], None]
    ) -> None:
        rest = probe.rest if isinstance(probe, Restful) else lambda: None
        self._samplers[name] = Sampler(name, read, close, self._interval_s, rest)
        if isinstance(probe, TrialAware):
            self._aware[name] = probe

    def _pace(self, gpus_s: float | None, host_s: float | None) -> None:
        for name, sampler in self._samplers.items():
            sampler.set_interval(host_s if name == HOST else gpus_s)

    def _force(self, timeout_s: float, trial: bool | None) -> bool:  # noqa: FBT001 - three states
        tickets = []
        for name, sampler in self._samplers.items():
            aware = self._aware.get(name)
            known = aware is not None and trial is not None
            before = partial(aware.set_trial, active=bool(trial)) if aware and known else None
            tickets.append((sampler, sampler.request(before)))
        deadline = time.perf_counter() + timeout_s
        answers = [s.wait(ticket, deadline - time.perf_counter()) for s, ticket in tickets]
        return all(answers)

    def _read_slow_too(self) -> None:
        self._force(FORCED_S, trial=True)

    def _read_gpus(self, probe: GpuProbe) -> None:
        for sample in probe.sample():
            with self._lock:
                key = self._names.get(sample.key, sample.key)
                self._latest[probe.name, sample.key] = sample
                self._keep((probe.name, sample.key), GPU_COLUMNS, sample)
                windows = tuple(self._windows)
            for window in windows:
                window.add(key, sample, probe.name)
            self._publish(key, sample)

    def _read_host(self, probe: HostProbe) -> None:
        sample = probe.sample()
        with self._lock:
            self._latest_host = sample
            self._keep((HOST, HOST), HOST_COLUMNS, sample)
            windows = tuple(self._windows)
        for window in windows:
            window.add_host(sample)
        self._publish(HOST, sample)

    def _keep(
        self, where: tuple[str, str], columns: Sequence[str], sample: GpuSample | HostSample
    ) -> None:
        if where not in self._rings:
            self._rings[where] = Ring(columns)
        row = [getattr(sample, name) for name in columns]
        pace_s = TRIAL_INTERVAL_S if self._windows else self._interval_s or INTERVAL_S
        self._rings[where].append(sample.t_ns / NS_PER_S, row, max(pace_s, INTERVAL_S))

    def _publish(self, key: str, sample: GpuSample | HostSample) -> None:
        with self._lock:
            subscribers = tuple(self._subscribers)
        for subscriber in subscribers:
            try:
                subscriber(key, sample)
            except Exception:
                # A surface in trouble must not stop the sampling for the others.
                LOG.exception("a telemetry subscriber failed")


def own_processes() -> list[int]:
    """Return this process and all it started: their memory disturbs no trial of ours."""
    try:
        children = psutil.Process().children(recursive=True)
    except psutil.Error:
        children = []
    return [os.getpid(), *(child.pid for child in children)]
