"""Probes that answer from a script, for tests of what reads probes."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from app.domain.machine import (
    GpuInfo,
    GpuSample,
    HostInfo,
    HostSample,
    PowerSource,
    PowerState,
)
from probes.reading import Absence
from probes.system import SystemFacts


def gpu_sample(key: str = "GPU-1", **fields: Any) -> GpuSample:
    """Return an awake sample of now with the given fields."""
    values: dict[str, Any] = {"power_state": PowerState.AWAKE, "t_ns": time.perf_counter_ns()}
    return GpuSample(key=key, **(values | fields))


class FakeGpuProbe:
    """Gives its samples one after the other, then the last one for ever."""

    def __init__(self, samples: Sequence[GpuSample], name: str = "fake") -> None:
        self.name = name
        self.samples = list(samples)
        self.n_samples = 0
        self.closed = False
        self.trials: list[bool] = []
        self.entered = threading.Event()
        self.rested = threading.Event()
        self.hang: threading.Event | None = None
        self.error: Exception | None = None
        self.on_sample: Callable[[], None] = lambda: None

    def identify(self) -> tuple[GpuInfo, ...]:
        return (GpuInfo(probe=self.name, uuid=self.samples[0].key),)

    def sample(self) -> tuple[GpuSample, ...]:
        self.entered.set()
        if self.hang is not None:
            self.hang.wait(30)
        if self.error is not None:
            raise self.error
        sample = self.samples[min(self.n_samples, len(self.samples) - 1)]
        self.n_samples += 1
        self.on_sample()
        return (sample,)

    def set_trial(self, *, active: bool) -> None:
        self.trials.append(active)

    def rest(self) -> None:
        self.rested.set()

    def stall(self) -> None:
        """Hang in every reading from now on, until ``hang`` is set."""
        self.hang = threading.Event()

    def close(self) -> None:
        self.closed = True


class FakeHostProbe:
    """Gives its power sources one after the other, then the last one for ever."""

    def __init__(self, *sources: PowerSource) -> None:
        self.sources = list(sources) or [PowerSource.AC]
        self.n_samples = 0

    def identify(self) -> HostInfo:
        return HostInfo(os="linux")

    def sample(self) -> HostSample:
        source = self.sources[min(self.n_samples, len(self.sources) - 1)]
        self.n_samples += 1
        return HostSample(t_ns=time.perf_counter_ns(), cpu_busy_pct=5.0, power_source=source)


class FakeTree:
    """A file system in a dictionary; notes what was read."""

    def __init__(
        self,
        files: dict[str, str | Absence],
        links: dict[str, str] | None = None,
        binary: dict[str, bytes | Absence] | None = None,
    ) -> None:
        self.files = files
        self.links = links or {}
        self.binary = binary or {}
        self.read: list[str] = []
        self.now_ns = 0
        self.clients: tuple[tuple[int, str], ...] = ()

    def text(self, path: str, limit: int = 0) -> str | Absence:
        self.read.append(path)
        return self.files.get(path, Absence.NOT_SUPPORTED)

    def head(self, path: str, n_bytes: int) -> bytes | Absence:
        self.read.append(path)
        return self.binary.get(path, Absence.NOT_SUPPORTED)

    def names(self, path: str) -> tuple[str, ...]:
        below = [f[len(path) + 1 :] for f in self.files if f.startswith(f"{path}/")]
        return tuple(sorted({name.split("/")[0] for name in below}))

    def target(self, path: str) -> str:
        return self.links.get(path, path)

    def drm_clients(self) -> tuple[tuple[int, str], ...]:
        return self.clients

    def time_ns(self) -> int:
        return self.now_ns


class FakeNvml:
    """Answers NVML calls from a dictionary of functions; notes what was asked."""

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.answers = answers or {}
        self.problem: Absence | None = None
        self.started = 0
        self.stopped = 0
        self.asked: list[str] = []

    def start(self) -> Absence | None:
        self.started += 1
        return self.problem

    def stop(self) -> None:
        self.stopped += 1

    def query(self, function: str, *args: int, device: str | None = None) -> Any:
        self.asked.append(function)
        answer = self.answers.get(function, Absence.NOT_SUPPORTED)
        return answer(*args, device) if callable(answer) else answer


class FakeSystem:
    """Gives fixed numbers of the operating system."""

    def __init__(self, facts: SystemFacts | None = None) -> None:
        self.numbers = facts or SystemFacts(os="linux", allowed_cpus=(0, 1), cores_physical=2)

    @property
    def os(self) -> str:
        return self.numbers.os

    def facts(self) -> SystemFacts:
        return self.numbers

    def load(self) -> SystemFacts:
        return self.numbers

    def process_name(self, pid: int) -> str | None:
        return f"program{pid}"
