"""Builds the probes of this machine, or of a recorded one. Only composition roots import it."""

from dataclasses import dataclass
from pathlib import Path

from app.domain.machine import GpuProbe, ProbeUnavailable
from probes import bandwidth
from probes import record as recording
from probes import replay as playing
from probes.host import HostProbe
from probes.linux_drm import DrmProbe
from probes.nvidia import NvidiaProbe
from probes.nvml import LiveNvml, Nvml
from probes.system import LiveSystem, System
from probes.tree import FileTree, Tree
from probes.windows.facts import Windows
from probes.windows.live import LiveWindows
from probes.windows.probe import WindowsProbe
from probes.windows.recording import RecordedWindows

__all__ = [
    "Doors",
    "Probes",
    "build",
    "detect",
    "disk_read_mb_s",
    "ram_read_gb_s",
    "record",
    "replay",
]


@dataclass(frozen=True)
class Doors:
    """The four ways a probe reads the machine; a recording stands in for all of them."""

    tree: Tree
    nvml: Nvml
    system: System
    windows: Windows


@dataclass(frozen=True)
class Probes:
    """What this machine offers.

    Attributes:
        host: CPU, RAM and power.
        gpus: One probe per vendor stack found, the more precise first.
        unavailable: Why a stack is not used, by probe name; normal on most machines.
    """

    host: HostProbe
    gpus: tuple[GpuProbe, ...]
    unavailable: dict[str, str]


def detect(root: Path = Path("/")) -> Probes:
    """Return the probes of this machine. Wakes no sleeping GPU.

    ``root`` is where the kernel's files are looked for.
    """
    return build(Doors(FileTree(root), LiveNvml(), LiveSystem(), LiveWindows()))


def replay(directory: Path | str) -> Probes:
    """Return probes that show a recorded machine.

    Raises:
        EnvironmentProblem: ``directory`` holds no recording.
    """
    machine = playing.load(Path(directory))
    return build(
        Doors(
            playing.RecordedTree(machine),
            playing.RecordedNvml(machine),
            playing.RecordedSystem(machine),
            RecordedWindows(machine.windows),
        )
    )


def ram_read_gb_s(n_threads: int, cache_bytes: int | None = None) -> float | None:
    """Return how fast this machine reads RAM, 10⁹ bytes per second; takes 1.5 s of load.

    ``None`` where the memory for it cannot be had.
    """
    return bandwidth.read_gb_s(n_threads, cache_bytes)


def disk_read_mb_s(path: Path) -> float | None:
    """Return how fast a file's beginning comes from its disk, 10⁶ bytes per second.

    ``None`` where it cannot be read.
    """
    return bandwidth.disk_read_mb_s(path)


def record(directory: Path | str, root: Path = Path("/")) -> Path:
    """Read this machine once, write the recording into ``directory`` and return its file.

    Raises:
        EnvironmentProblem: The folder cannot be written.
    """
    tree, nvml = recording.RecordingTree(FileTree(root)), recording.RecordingNvml(LiveNvml())
    system, windows = LiveSystem(), LiveWindows()
    probes = build(Doors(tree, nvml, system, windows))
    probes.host.identify()
    probes.host.sample()
    for probe in probes.gpus:
        probe.identify()
        probe.sample()
        probe.close()
    return recording.write(Path(directory), recording.recorded(tree, nvml, system, windows))


def build(doors: Doors) -> Probes:
    """Return the probes that read through ``doors``."""
    gpus: list[GpuProbe] = []
    unavailable: dict[str, str] = {}
    try:
        gpus.append(
            NvidiaProbe(
                doors.tree,
                doors.nvml,
                doors.system.process_name,
                sleep_unseen=doors.system.os == "windows",
            )
        )
    except ProbeUnavailable as reason:
        unavailable[NvidiaProbe.name] = str(reason)
    unavailable |= _add_system_probe(doors, gpus)
    return Probes(HostProbe(doors.tree, doors.system, doors.windows), tuple(gpus), unavailable)


def _add_system_probe(doors: Doors, gpus: list[GpuProbe]) -> dict[str, str]:
    """Add the probe that asks the operating system itself, or return why there is none."""
    name = doors.system.process_name
    try:
        if doors.system.os == "windows":
            gpus.append(WindowsProbe(doors.windows, name))
        else:
            gpus.append(DrmProbe(doors.tree, sample_nvidia=not gpus, process_name=name))
    except ProbeUnavailable as reason:
        probe = WindowsProbe if doors.system.os == "windows" else DrmProbe
        return {probe.name: str(reason)}
    return {}
