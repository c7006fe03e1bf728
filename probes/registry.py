"""Builds the probes of this machine, or of a recorded one. Only composition roots import it."""

from dataclasses import dataclass
from pathlib import Path

from app.domain.machine import GpuProbe, ProbeUnavailable
from probes import record as recording
from probes import replay as playing
from probes.host import HostProbe
from probes.linux_drm import DrmProbe
from probes.nvidia import NvidiaProbe
from probes.nvml import LiveNvml, Nvml
from probes.system import LiveSystem, System
from probes.tree import FileTree, Tree


@dataclass(frozen=True)
class Doors:
    """The three ways a probe reads the machine; a recording stands in for all of them."""

    tree: Tree
    nvml: Nvml
    system: System


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
    return build(Doors(FileTree(root), LiveNvml(), LiveSystem()))


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
        )
    )


def record(directory: Path | str, root: Path = Path("/")) -> Path:
    """Read this machine once, write the recording into ``directory`` and return its file.

    Raises:
        EnvironmentProblem: The folder cannot be written.
    """
    tree, nvml = recording.RecordingTree(FileTree(root)), recording.RecordingNvml(LiveNvml())
    system = LiveSystem()
    probes = build(Doors(tree, nvml, system))
    probes.host.identify()
    probes.host.sample()
    for probe in probes.gpus:
        probe.identify()
        probe.sample()
        probe.close()
    return recording.write(Path(directory), recording.recorded(tree, nvml, system))


def build(doors: Doors) -> Probes:
    """Return the probes that read through ``doors``."""
    gpus: list[GpuProbe] = []
    unavailable: dict[str, str] = {}
    try:
        gpus.append(NvidiaProbe(doors.tree, doors.nvml, doors.system.process_name))
    except ProbeUnavailable as reason:
        unavailable[NvidiaProbe.name] = str(reason)
    try:
        gpus.append(DrmProbe(doors.tree, sample_nvidia=not gpus))
    except ProbeUnavailable as reason:
        unavailable[DrmProbe.name] = str(reason)
    return Probes(HostProbe(doors.tree, doors.system), tuple(gpus), unavailable)
