"""GPUs through the Linux kernel: identity and power state of all, readings of AMD and Intel."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from app.domain.machine import (
    GpuInfo,
    GpuKind,
    GpuProcess,
    GpuSample,
    PowerState,
    ProbeUnavailable,
)
from probes import amdgpu, intel
from probes.fdinfo import memory_by_program
from probes.pci import PciGpu, external, is_gone, pci_gpus, power_state, unread
from probes.reading import Absence, gpu_info, gpu_sample, whole_number
from probes.tree import Tree

SLOW_NS = 10_000_000_000
PROGRAMS_NS = 30_000_000_000


@dataclass
class Seen:
    """What is remembered of a card between readings."""

    gpu: PciGpu
    vram_total_bytes: int | None = None
    shared_total_bytes: int | None = None
    slow: dict[str, object] = field(default_factory=dict)
    slow_due_ns: int = 0
    counters: intel.Counters = field(default_factory=intel.Counters)


class DrmProbe:
    """Every display device of a known vendor on the PCI bus."""

    name = "drm"

    def __init__(
        self,
        tree: Tree,
        *,
        sample_nvidia: bool,
        process_name: Callable[[int], str | None] = lambda _pid: None,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """Look for cards.

        Args:
            tree: File system.
            sample_nvidia: Report power states of NVIDIA cards (when NVML does not).
            process_name: Gives the program name of a pid.
            clock_ns: Monotonic clock.

        Raises:
            ProbeUnavailable: The bus has no such device (or this is not Linux).
        """
        self._tree, self._clock_ns, self._sample_nvidia = tree, clock_ns, sample_nvidia
        self._process_name = process_name
        self._clients: tuple[tuple[int, str], ...] = ()
        self._programs_due_ns = 0
        self._cards = tuple(Seen(gpu) for gpu in pci_gpus(tree))
        if not self._cards:
            raise ProbeUnavailable(Absence.NO_DATA.value)

    def identify(self) -> tuple[GpuInfo, ...]:
        """Return every card there is now; of a sleeping one only its identity."""
        known = {card.gpu.pci_id: card for card in self._cards}
        self._cards = tuple(known.get(g.pci_id) or Seen(g) for g in pci_gpus(self._tree))
        return tuple(self._identify(card) for card in self._cards)

    def sample(self) -> tuple[GpuSample, ...]:
        """Return one reading per card; of a sleeping one only that it sleeps."""
        return tuple(
            self._sample(card)
            for card in self._cards
            if card.gpu.vendor != "nvidia" or self._sample_nvidia
        )

    def set_trial(self, *, active: bool) -> None:  # noqa: ARG002 - the same at both ends
        """Read the slow tier anew at both ends of a trial."""
        self._programs_due_ns = 0
        for card in self._cards:
            card.slow_due_ns = 0

    def close(self) -> None:
        """Nothing is held open."""

    def _look_for_programs(self, now_ns: int) -> None:
        # One walk over the user's open files serves all cards; it is the dearest reading here.
        if now_ns >= self._programs_due_ns:
            self._programs_due_ns = now_ns + PROGRAMS_NS
            self._clients = self._tree.drm_clients()

    def _programs(self, gpu: PciGpu) -> object:
        if gpu.card is None:
            return Absence.NOT_SUPPORTED
        held = memory_by_program(self._clients, gpu.pci_id)
        return tuple(
            GpuProcess(
                pid=pid, name=self._process_name(pid), vram_bytes=used[0], shared_bytes=used[1]
            )
            for pid, used in held.items()
        )

    def _identify(self, card: Seen) -> GpuInfo:
        gpu, tree = card.gpu, self._tree
        state = power_state(tree, gpu)
        known = GpuInfo(
            probe=self.name,
            pci_id=gpu.pci_id,
            vendor=gpu.vendor,
            node=gpu.card,
            kind=kind_by_address(gpu),
            driver=gpu.driver,
        )
        values: dict[str, object] = {"boot_vga": boot_vga(tree, gpu), **bus_facts(tree, gpu)}
        if gpu.driver is None and gpu.vendor != "nvidia":
            values["driver"] = Absence.DRIVER_NOT_LOADED
        if state is not PowerState.AWAKE:
            values["drives_display"] = False if state is PowerState.ASLEEP else Absence.NO_DATA
            return gpu_info(known, values, unread(state))
        values["drives_display"] = drives_display(tree, gpu)
        kind = known.kind
        if gpu.driver == "amdgpu":
            kind = amdgpu.kind(tree, gpu)
            values.update(amdgpu.identity(tree, gpu, kind))
        elif gpu.vendor == "intel":
            values.update(intel.identity(tree, gpu, kind))
        info = gpu_info(msgspec.structs.replace(known, kind=kind), values)
        card.vram_total_bytes = info.vram_total_bytes
        card.shared_total_bytes = info.shared_total_bytes
        return info

    def _sample(self, card: Seen) -> GpuSample:
        now, gpu = self._clock_ns(), card.gpu
        state = power_state(self._tree, gpu)
        if state is not PowerState.AWAKE:
            card.counters = intel.Counters()
            return gpu_sample(gpu.pci_id, now, state, {}, default=unread(state))
        if is_gone(self._tree, gpu):
            return gpu_sample(gpu.pci_id, now, PowerState.UNKNOWN, {}, default=Absence.LOST)
        slow_due = now >= card.slow_due_ns
        if slow_due:
            card.slow_due_ns = now + SLOW_NS
        values: dict[str, object] = {}
        if gpu.driver == "amdgpu":
            values = amdgpu.reading(self._tree, gpu)
            if slow_due:
                card.slow = amdgpu.slow_reading(self._tree, gpu)
        elif gpu.vendor == "intel":
            values = intel.reading(self._tree, gpu, card.counters)
            if slow_due:
                card.slow = intel.slow_reading(self._tree, gpu)
        if gpu.vendor != "nvidia":
            self._look_for_programs(now)
            card.slow["processes"] = self._programs(gpu)
        values.update(card.slow)
        return gpu_sample(
            gpu.pci_id,
            now,
            state,
            values,
            vram_total_bytes=card.vram_total_bytes,
            shared_total_bytes=card.shared_total_bytes,
        )


def bus_facts(tree: Tree, gpu: PciGpu) -> dict[str, object]:
    """Return what the bus says of a card without waking it."""
    control = tree.text(f"{gpu.path}/power/control")
    d3cold = tree.text(f"{gpu.path}/d3cold_allowed")
    node = whole_number(tree.text(f"{gpu.path}/numa_node"))
    return {
        "external": external(tree, gpu),
        "may_sleep": control if isinstance(control, Absence) else control == "auto",
        "d3cold_allowed": d3cold if isinstance(d3cold, Absence) else d3cold == "1",
        # -1 on machines with one node.
        "numa_node": Absence.NOT_APPLICABLE if node == -1 else node,
    }


def boot_vga(tree: Tree, gpu: PciGpu) -> bool | Absence:
    """Return whether firmware showed the boot screen on the card."""
    # The newer file knows; the older one exists for the VGA class only and can be wrong.
    shown = tree.text(f"{gpu.path}/drm/{gpu.card}/boot_display")
    if isinstance(shown, Absence):
        shown = tree.text(f"{gpu.path}/boot_vga")
    return shown if isinstance(shown, Absence) else shown == "1"


def drives_display(tree: Tree, gpu: PciGpu) -> bool | Absence:
    """Return whether a display hangs on the card (the kernel's last known state)."""
    if gpu.card is None:
        return Absence.NO_DATA
    folder = f"{gpu.path}/drm/{gpu.card}"
    connectors = [n for n in tree.names(folder) if n.startswith(f"{gpu.card}-")]
    return any(tree.text(f"{folder}/{name}/status") == "connected" for name in connectors)


def kind_by_address(gpu: PciGpu) -> GpuKind:
    """Return card or part of the processor from what the bus alone tells."""
    if gpu.vendor == "nvidia":
        return GpuKind.DISCRETE
    return intel.kind(gpu) if gpu.vendor == "intel" else amdgpu.kind_by_id(gpu)
