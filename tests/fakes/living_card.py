"""A recorded machine whose NVIDIA card lives on: draw, memory and programs change when told."""

import threading
from pathlib import Path
from typing import Any

from typing_extensions import override

from app.domain.machine import ProbeSet
from app.domain.units import MIB
from probes import registry
from probes import replay as playing
from probes.windows.recording import RecordedWindows
from tests.fakes.recorded import MACHINES, RecordedMachine

DESKTOP, LAPTOP = "nvidia-desktop", "hybrid-awake"
_CARDS = {DESKTOP: "@pci:00000000:09:00.0", LAPTOP: "@pci:00000000:01:00.0"}


class LivingCard(RecordedMachine):
    """``Probing`` for a session: every reading comes through the NVIDIA probe.

    Attributes:
        folder: The recording.
        names: Program names by process id.
        is_let_go: Set while NVML is not open.
    """

    def __init__(self, name: str = DESKTOP) -> None:
        """Be as it was recorded."""
        super().__init__(name)
        self.folder = str(MACHINES / name)
        self._recorded = playing.load(Path(self.folder))
        self.names: dict[int, str] = {}
        self.is_let_go = threading.Event()
        self.is_let_go.set()
        card = _CARDS[name]
        self._memory = f"nvmlDeviceGetMemoryInfo(33554472){card}"
        self._programs = f"nvmlDeviceGetComputeRunningProcesses_v3(){card}"
        self._draw = f"nvmlDeviceGetPowerUsage(){card}"

    @override
    def replay(self, directory: Path | str) -> ProbeSet:
        """Return the probes of this card, whatever ``directory``."""
        recorded = self._recorded
        doors = registry.Doors(
            playing.RecordedTree(recorded), _Nvml(self, recorded), _System(self, recorded),
            RecordedWindows(recorded.windows),
        )  # fmt: skip
        return registry.build(doors)

    def draw(self, watts: float) -> None:
        """Draw so much from now on."""
        self._recorded.nvml[self._draw] = round(watts * 1000)

    def hold(self, pid: int, name: str, mib: int) -> None:
        """Have a program hold so much memory from now on; 0 = it has ended."""
        self.names[pid] = name
        nvml, n_bytes = self._recorded.nvml, mib * MIB
        before = sum(p["usedGpuMemory"] for p in nvml[self._programs] if p["pid"] == pid)
        others = [p for p in nvml[self._programs] if p["pid"] != pid]
        nvml[self._programs] = [*others, {"pid": pid, "usedGpuMemory": n_bytes}] if mib else others
        memory = nvml[self._memory]
        nvml[self._memory] = memory | {
            "free": memory["free"] + before - n_bytes,
            "used": memory["used"] - before + n_bytes,
        }


class _Nvml(playing.RecordedNvml):
    """Tells whether the driver is open."""

    def __init__(self, card: LivingCard, recorded: Any) -> None:
        super().__init__(recorded)
        self._card = card

    @override
    def start(self) -> Any:
        self._card.is_let_go.clear()
        return super().start()

    @override
    def stop(self) -> None:
        self._card.is_let_go.set()


class _System(playing.RecordedSystem):
    """Knows the names of programs."""

    def __init__(self, card: LivingCard, recorded: Any) -> None:
        super().__init__(recorded)
        self._card = card

    @override
    def process_name(self, pid: int) -> str | None:
        return self._card.names.get(pid)
