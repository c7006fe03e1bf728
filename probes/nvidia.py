"""NVIDIA GPUs through NVML, in tiers, without waking or holding a card that could sleep.

Costs per call on one server card: most readings below 21 µs, fan, link and MIG mode 40-170 µs,
margin 0.5 ms, energy 2.6 ms (slow tier, 10 s), PCIe throughput 20 ms each way (it measures a
window), so that one is asked only inside a trial.
"""

import time
from collections.abc import Callable

import msgspec

from app.domain.machine import (
    GpuInfo,
    GpuKind,
    GpuProcess,
    GpuSample,
    PowerState,
    ProbeUnavailable,
)
from probes import tegra
from probes.nvidia_answers import is_mobile
from probes.nvidia_card import Card
from probes.nvidia_identity import UNIFIED_WORDS, identify_card, instances
from probes.nvml import Nvml
from probes.pci import is_gone, may_sleep, pci_gpus, power_state, unread
from probes.reading import Absence, gpu_info, gpu_sample, whole_number
from probes.tree import Tree

IDLE_SAMPLES = 10
"""Idle readings before the handles of a card that may sleep are released."""
PATIENCE_SAMPLES = 600
"""The same, after a release that did not let the card sleep (a display or program holds it)."""
SLEEP_SAMPLES = 20
"""Readings a released card gets to fall asleep (6-15 s seen) before it is read again."""
RETRY_S = 30.0
"""Pause after the library, or a device, was lost."""
MEMINFO_BYTES = 64
"""The total stands in the first line."""


class NvidiaProbe:
    """Every NVIDIA GPU of this machine."""

    name = "nvml"

    def __init__(
        self,
        tree: Tree,
        nvml: Nvml,
        process_name: Callable[[int], str | None],
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        *,
        sleep_unseen: bool = False,
    ) -> None:
        """Look for cards without touching them.

        Args:
            tree: File system, for addresses and power states.
            nvml: The door.
            process_name: Gives the program name of a pid.
            clock_ns: Monotonic clock.
            sleep_unseen: The system does not say whether a card sleeps (Windows): an idle
                laptop card is let go until a trial needs it.

        Raises:
            ProbeUnavailable: Neither the bus nor NVML has an NVIDIA GPU.
        """
        self._tree, self._nvml = tree, nvml
        self._process_name, self._clock_ns = process_name, clock_ns
        self._trial = False
        self._sleep_unseen = sleep_unseen
        self._idle = 0
        self._patience = IDLE_SAMPLES
        self._released_for: int | None = None
        self._retry_ns = 0
        self._problem: Absence | None = Absence.NO_DATA
        self._started = False
        self._cards = tuple(Card(g) for g in pci_gpus(tree) if g.vendor == "nvidia")
        if not self._cards:
            self._cards = self._cards_by_index()

    def identify(self) -> tuple[GpuInfo, ...]:
        """Return every card there is now; of a sleeping one only what wakes nothing."""
        whole = self._whole_cards()
        found = [(card, self._identify(card)) for card in whole]
        for card, info in tuple(found):
            if info is not None and info.mig == "parent":
                found += [(part, self._identify(part)) for part in instances(self._nvml, card)]
        self._cards = tuple(card for card, info in found if info is not None)
        return tuple(info for _, info in found if info is not None)

    def sample(self) -> tuple[GpuSample, ...]:
        """Return one reading per card; of a sleeping one only that it sleeps."""
        samples = tuple(self._sample(card) for card in self._cards)
        self._release_when_idle(samples)
        return samples

    def set_trial(self, *, active: bool) -> None:
        """Hold the cards and measure PCIe traffic while a trial runs; read the slow tier now."""
        self._trial = active
        self._released_for = None
        for card in self._cards:
            card.slow_due_ns = 0

    def rest(self) -> None:
        """Release the cards that could sleep: nobody looks, and a handle keeps them awake."""
        if any(self._could_sleep(card) for card in self._cards):
            self._stop()

    def close(self) -> None:
        """Release the library."""
        self._stop()

    def _whole_cards(self) -> tuple[Card, ...]:
        """Return the cards without their parts; on a bus those that are plugged in now."""
        whole = tuple(card for card in self._cards if not card.is_instance)
        if any(card.pci is None for card in whole):
            return whole
        known = {card.pci.pci_id: card for card in whole if card.pci is not None}
        listed = (g for g in pci_gpus(self._tree) if g.vendor == "nvidia")
        return tuple(known.get(g.pci_id) or Card(g) for g in listed)

    def _cards_by_index(self) -> tuple[Card, ...]:
        # No NVIDIA device on the PCI bus: Windows, WSL2 and Jetson enumerate by NVML alone.
        problem = self._start()
        if problem is not None:
            raise ProbeUnavailable(problem.value)
        count = self._nvml.query("nvmlDeviceGetCount")
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            self._stop()
            raise ProbeUnavailable(Absence.NO_DATA.value)
        return tuple(Card(None, index) for index in range(min(count, 64)))

    def _state(self, card: Card) -> PowerState:
        return PowerState.AWAKE if card.pci is None else power_state(self._tree, card.pci)

    def _start(self) -> Absence | None:
        if self._started:
            return None
        now = self._clock_ns()
        if now >= self._retry_ns:
            self._problem = self._nvml.start()
            self._started = self._problem is None
            if not self._started:
                self._retry_ns = now + int(RETRY_S * 1e9)
        return self._problem

    def _stop(self) -> None:
        if self._started:
            self._nvml.stop()
        self._started = False

    def _identify(self, card: Card) -> GpuInfo | None:
        state = self._state(card)
        problem = unread(state) if state is not PowerState.AWAKE else self._start()
        if problem is None:
            problem = card.refusal(self._nvml)
            if problem is Absence.NO_DATA:
                return None
        if problem is None:
            info = identify_card(self._nvml, card, ram_bytes(self._tree))
        else:
            # A suspended card scans nothing out.
            values = {"drives_display": False} if state is PowerState.ASLEEP else {}
            info = gpu_info(_known(self._tree, card), values, problem)
        card.remember(info)
        return info

    def _sample(self, card: Card) -> GpuSample:
        now = self._clock_ns()
        state = self._state(card)
        if state is not PowerState.AWAKE:
            self._released_for = None
            self._patience = IDLE_SAMPLES
            return gpu_sample(card.key, now, state, {}, default=unread(state))
        if card.pci is not None and is_gone(self._tree, card.pci):
            return gpu_sample(card.key, now, PowerState.UNKNOWN, {}, default=Absence.LOST)
        if self._released_for is not None:
            return gpu_sample(card.key, now, state, {}, default=Absence.RELEASED)
        problem = self._start() or card.problem(now)
        if problem is not None:
            return gpu_sample(card.key, now, state, {}, default=problem)
        values = card.read(self._nvml, now, self._tree.time_ns(), trial=self._trial)
        gone = self._note_loss(card, values["busy_pct"], now)
        if gone is not None:
            return gpu_sample(card.key, now, state, {}, default=gone)
        values["processes"] = self._named(values["processes"])
        if any(word in (card.name or "").lower() for word in UNIFIED_WORDS):
            values |= _filled(values, tegra.reading(self._tree))
        return gpu_sample(card.key, now, state, values, vram_total_bytes=card.vram_total_bytes)

    def _note_loss(self, card: Card, busy: object, now_ns: int) -> Absence | None:
        retry_ns = now_ns + int(RETRY_S * 1e9)
        if busy is Absence.LOST:
            card.lost_until_ns = retry_ns
            return Absence.LOST
        if busy is Absence.DRIVER_NOT_LOADED:
            # The driver was replaced under our feet: start over after a pause.
            self._stop()
            self._retry_ns, self._problem = retry_ns, Absence.DRIVER_NOT_LOADED
            return Absence.DRIVER_NOT_LOADED
        return None

    def _named(self, processes: object) -> object:
        if not isinstance(processes, dict):
            return processes
        return tuple(
            GpuProcess(pid=pid, name=self._process_name(pid), **msgspec.structs.asdict(use))
            for pid, use in processes.items()
        )

    def _release_when_idle(self, samples: tuple[GpuSample, ...]) -> None:
        # An open handle alone keeps a laptop's card awake, so idle cards are let go.
        if self._released_for is not None:
            self._released_for += 1
            # Where sleep is not seen, looking again would wake it for ever.
            if self._released_for > SLEEP_SAMPLES and not self._sleep_unseen:
                self._released_for, self._patience = None, PATIENCE_SAMPLES
            return
        idle = self._started and not self._trial and all(s.busy_pct in {0, None} for s in samples)
        self._idle = self._idle + 1 if idle else 0
        if self._idle >= self._patience:
            self._idle = 0
            if any(self._could_sleep(card) for card in self._cards):
                self._stop()
                self._released_for = 0

    def _could_sleep(self, card: Card) -> bool:
        # A card that drives a display stays awake whoever lets it go.
        if card.drives_display:
            return False
        if card.pci is None:
            return self._sleep_unseen and is_mobile(card.name or "")
        return may_sleep(self._tree, card.pci)


def _filled(values: dict[str, object], others: dict[str, object]) -> dict[str, object]:
    """Return what of ``others`` NVML does not give as a number."""
    return {n: other for n, other in others.items() if not isinstance(values[n], int | float)}


def _known(tree: Tree, card: Card) -> GpuInfo:
    """What the kernel says, or was known before, of a card that must not or cannot be asked."""
    pci_id = card.pci.pci_id if card.pci is not None else None
    text = tree.text(f"/proc/driver/nvidia/gpus/{pci_id}/information")
    lines = {} if isinstance(text, Absence) else dict(_pairs(text))
    module = tree.text("/proc/driver/nvidia/version")
    uuid, name = lines.get("GPU UUID", ""), lines.get("Model", "")
    return GpuInfo(
        probe=NvidiaProbe.name,
        pci_id=pci_id,
        uuid=uuid if uuid.startswith("GPU-") and "?" not in uuid else card.uuid,
        name=name if name not in {"", "?", "Unknown"} else card.name,
        vendor="nvidia",
        kind=GpuKind.DISCRETE,
        driver=None if isinstance(module, Absence) else _module_version(module),
        node=card.pci.card if card.pci is not None else f"gpu{card.index}",
    )


def ram_bytes(tree: Tree) -> int | Absence:
    """Return the memory a card without its own shares with the processor."""
    meminfo = tree.text("/proc/meminfo", MEMINFO_BYTES)
    if isinstance(meminfo, Absence):
        return meminfo
    kib = whole_number(dict(_pairs(meminfo)).get("MemTotal", "").removesuffix("kB"))
    return kib if isinstance(kib, Absence) else kib * 1024


def _pairs(text: str) -> list[tuple[str, str]]:
    parts = (line.partition(":") for line in text.splitlines())
    return [(name.strip(), value.strip()) for name, _, value in parts]


def _module_version(text: str) -> str | None:
    # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  <date>", or "… Open Kernel
    # Module for x86_64  580.159.04  Release Build …": the first word that is a version.
    words = text.splitlines()[0].split() if text else []
    versions = [w for w in words if w[0].isdigit() and w.replace(".", "").isdigit() and "." in w]
    return f"nvidia {versions[0]}" if versions else None
