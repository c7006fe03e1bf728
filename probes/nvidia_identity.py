"""What NVML says an NVIDIA card is, and the parts it may be split into."""

from collections.abc import Callable
from typing import Any

from app.domain.machine import GpuInfo, GpuKind
from probes.nvidia_answers import (
    absence_of,
    all_addressable,
    bandwidth,
    capability,
    cuda_version,
    driver_model,
    is_mobile,
    is_on,
    memory_of,
    part,
    text_of,
)
from probes.nvidia_card import MILLI, Card
from probes.nvml import Nvml
from probes.pci import normal_pci_id
from probes.reading import Absence, gpu_info, scaled

THRESHOLD_SHUTDOWN, THRESHOLD_SLOWDOWN = 0, 1
CLOCK_GRAPHICS, CLOCK_MEMORY = 0, 2
UNIFIED_WORDS = ("nvgpu", "gb10", "thor", "tegra", "orin", "xavier")
MAX_INSTANCES = 16
MAX_NVLINKS = 36
"""``NVML_NVLINK_MAX_LINKS``."""


def identify_card(nvml: Nvml, card: Card, ram_bytes: int | Absence) -> GpuInfo:
    """Return what NVML says a card is.

    ``ram_bytes`` is what a card without memory of its own shares with the processor.
    """

    def ask(function: str, *args: int) -> Any:
        return card.ask(nvml, function, *args)

    name = text_of(ask("nvmlDeviceGetName"))
    memory = memory_of(ask)
    unified = any(word in name.lower() for word in UNIFIED_WORDS)
    uuid = text_of(ask("nvmlDeviceGetUUID"))
    bus_id = part(ask("nvmlDeviceGetPciInfo"), "busId")
    pci_id = card.pci.pci_id if card.pci else normal_pci_id(text_of(bus_id))
    known = GpuInfo(
        probe="nvml",
        uuid=uuid if uuid.startswith(("GPU-", "MIG-")) else None,
        pci_id=pci_id,
        name=name or None,
        vendor="nvidia",
        kind=GpuKind.INTEGRATED if unified else GpuKind.DISCRETE,
        # Without a bus the number under which NVML lists it is all that tells two cards apart.
        node=card.pci.card if card.pci else f"gpu{card.index}",
    )
    bar = part(ask("nvmlDeviceGetBAR1MemoryInfo"), "bar1Total")
    total = part(memory, "total")
    bus = ask("nvmlDeviceGetMemoryBusWidth")
    values = {
        "driver": _prefixed("nvidia ", nvml.query("nvmlSystemGetDriverVersion")),
        "cuda_version": cuda_version(nvml.query("nvmlSystemGetCudaDriverVersion_v2")),
        "vram_total_bytes": total,
        "shared_total_bytes": ram_bytes if unified else Absence.NOT_APPLICABLE,
        "unified_memory": unified,
        "drives_display": is_on(ask("nvmlDeviceGetDisplayActive")),
        "pcie_gen_max": ask("nvmlDeviceGetMaxPcieLinkGeneration"),
        "pcie_width_max": ask("nvmlDeviceGetMaxPcieLinkWidth"),
        **_power_limits(ask, name),
        "temp_slowdown_c": ask("nvmlDeviceGetTemperatureThreshold", THRESHOLD_SLOWDOWN),
        "temp_shutdown_c": ask("nvmlDeviceGetTemperatureThreshold", THRESHOLD_SHUTDOWN),
        "clock_max_mhz": ask("nvmlDeviceGetMaxClockInfo", CLOCK_GRAPHICS),
        "n_fans": ask("nvmlDeviceGetNumFans"),
        # Without a bus it is Windows or WSL2, which always answer "on".
        "persistence": is_on(ask("nvmlDeviceGetPersistenceMode"))
        if card.pci is not None
        else Absence.NOT_APPLICABLE,
        "compute_capability": capability(ask("nvmlDeviceGetCudaComputeCapability")),
        "driver_model": driver_model(ask("nvmlDeviceGetDriverModel_v2")),
        "bar_bytes": bar,
        "resizable_bar": all_addressable(bar, total),
        "mig": mig_role(card, ask),
        "pcie_gen_device_max": ask("nvmlDeviceGetGpuMaxPcieLinkGeneration"),
        "n_cores": ask("nvmlDeviceGetNumGpuCores"),
        "memory_bus_bits": bus,
        "memory_gb_s": bandwidth(bus, ask("nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY)),
        "n_nvlinks": n_nvlinks(ask),
        "ecc": is_on(ask("nvmlDeviceGetEccMode")),
    }
    return gpu_info(known, values)


def _power_limits(ask: Callable[..., Any], name: str) -> dict[str, Any]:
    limits = ask("nvmlDeviceGetPowerManagementLimitConstraints")
    low, high = limits if isinstance(limits, list) and len(limits) == 2 else (limits, limits)
    return {
        "power_limit_min_w": scaled(low, MILLI),
        "power_limit_max_w": scaled(high, MILLI),
        "power_limit_default_w": scaled(ask("nvmlDeviceGetPowerManagementDefaultLimit"), MILLI),
        "power_limit_settable": _settable(ask, name, low, high),
    }


def instances(nvml: Nvml, card: Card) -> tuple[Card, ...]:
    """Return the parts a card is split into."""
    most = card.ask(nvml, "nvmlDeviceGetMaxMigDeviceCount")
    found = []
    for index in range(min(most, MAX_INSTANCES) if isinstance(most, int) else 0):
        one = Card(card.pci)
        one.device, one.is_instance = f"mig:{index}:{card.device}", True
        # Slots without an instance answer "not found".
        if text_of(one.ask(nvml, "nvmlDeviceGetUUID")):
            found.append(one)
    return tuple(found)


def n_nvlinks(ask: Callable[..., Any]) -> object:
    """Return how many links to other cards are up; GeForce cards of today have none to ask."""
    states: list[object] = []
    for link in range(MAX_NVLINKS):
        state = ask("nvmlDeviceGetNvLinkState", link)
        if not isinstance(state, int):
            break
        states.append(state)
    return sum(state == 1 for state in states) if states else absence_of(state)


def mig_is_on(ask: Callable[..., Any]) -> bool:
    """Return whether the card is split into instances now."""
    mode = ask("nvmlDeviceGetMigMode")
    return isinstance(mode, list) and mode[:1] == [1]


def mig_role(card: Card, ask: Callable[..., Any]) -> object:
    """Return ``parent`` for a split card, ``instance`` for a part of one."""
    if card.is_instance:
        return "instance"
    return "parent" if mig_is_on(ask) else Absence.NOT_APPLICABLE


def _settable(ask: Callable[..., Any], name: str, low: object, high: object) -> object:
    # Laptop drivers show a range and refuse to set it (NVIDIA, Linux 530 and later); a card
    # split into MIG instances refuses as well.
    if is_mobile(name):
        return False
    if mig_is_on(ask):
        return False
    limit = ask("nvmlDeviceGetPowerManagementLimit")
    if isinstance(limit, Absence) or isinstance(low, Absence) or isinstance(high, Absence):
        return False if limit is Absence.NOT_SUPPORTED else Absence.NO_DATA
    return bool(low != high)


def _prefixed(prefix: str, answer: object) -> object:
    text = text_of(answer)
    return prefix + text if text else absence_of(answer)
