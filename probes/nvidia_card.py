"""One NVIDIA card: which NVML calls answer which field, in which unit, how often."""

from collections.abc import Callable
from typing import Any

from app.domain.machine import GpuInfo, GpuKind
from probes.nvml import Nvml
from probes.pci import PciGpu, normal_pci_id
from probes.reading import Absence, gpu_info, scaled

SLOW_NS = 10_000_000_000
PCIE_NS = 1_000_000_000
MILLI = 1e-3
MEMORY_V2 = 0x02000028
"""``nvmlMemory_v2``: total, reserved, free, used; v1 counts the reserve as used."""
TEMPERATURE_GPU = 0
THRESHOLD_SLOWDOWN = 1
FIELD_MEMORY_TEMP = 82

THROTTLE_NAMES: dict[int, str] = {
    0x002: "app_clocks",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal",
    0x040: "hw_thermal",
    0x080: "hw_power_brake",
    0x100: "display_clocks",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Bits of the clock event reasons (``nvml.h``); bit 0, idle, is not throttling."""

MOBILE_WORDS = ("laptop", "mobile", "max-q", "notebook")
UNIFIED_WORDS = ("nvgpu", "gb10", "thor", "tegra", "orin", "xavier")
FORGET = {Absence.NOT_SUPPORTED, Absence.SYMBOL_MISSING}


class Card:
    """State of one card between readings."""

    def __init__(self, pci: PciGpu | None, index: int = 0) -> None:
        """Know the card by its PCI device, or by NVML index where there is none."""
        self.pci = pci
        # NVML wants the eight-digit domain.
        self.device = f"pci:0000{pci.pci_id}" if pci else f"index:{index}"
        self.key = pci.pci_id if pci else f"nvml:{index}"
        self.uuid: str | None = None
        self.name: str | None = None
        self.vram_total_bytes: int | None = None
        self.drives_display: bool | None = None
        self.slow_due_ns = 0
        self.lost_until_ns = 0
        self._pcie_due_ns = 0
        self._slow: dict[str, object] = {}
        self._never: dict[str, Absence] = {}

    def refusal(self, nvml: Nvml) -> Absence | None:
        """Return why NVML says nothing at all of the card, if it does.

        ``no_data``: the bus shows the card but NVML does not (another container's GPU).
        """
        answer = self.ask(nvml, "nvmlDeviceGetName")
        return answer if isinstance(answer, Absence) and answer not in FORGET else None

    def remember(self, info: GpuInfo) -> None:
        """Take key and sizes from an identification, so that samples carry the same key."""
        self.key = info.key
        self.uuid, self.name = info.uuid, info.name
        self.drives_display = info.drives_display
        self.vram_total_bytes = info.vram_total_bytes

    def problem(self, now_ns: int) -> Absence | None:
        """Return why the card is not asked now, if it is not."""
        return Absence.LOST if now_ns < self.lost_until_ns else None

    def ask(self, nvml: Nvml, function: str, *args: int) -> Any:
        """Ask NVML about this card; what it never supports is asked only once."""
        name = f"{function}{args}"
        if name in self._never:
            return self._never[name]
        answer = nvml.query(function, *args, device=self.device)
        if isinstance(answer, Absence) and answer in FORGET:
            self._never[name] = answer
        return answer

    def read(self, nvml: Nvml, now_ns: int, *, trial: bool) -> dict[str, object]:
        """Return the raw readings due now; slow ones are carried on until they are due.

        A card that is gone gives nothing but the reason, as its ``busy_pct``.
        """
        values = self._fast(nvml)
        for gone in (Absence.LOST, Absence.DRIVER_NOT_LOADED):
            if gone in values.values():
                return {"busy_pct": gone}
        if now_ns >= self.slow_due_ns:
            self.slow_due_ns = now_ns + SLOW_NS
            self._slow = self._read_slow(nvml)
        values.update(self._slow)
        if trial and now_ns >= self._pcie_due_ns:
            self._pcie_due_ns = now_ns + PCIE_NS
            values.update(self._read_pcie(nvml))
        else:
            values["pcie_tx_bytes_s"] = values["pcie_rx_bytes_s"] = Absence.NO_DATA
        return values

    def _fast(self, nvml: Nvml) -> dict[str, object]:
        def ask(function: str, *args: int) -> Any:
            return self.ask(nvml, function, *args)

        busy = ask("nvmlDeviceGetUtilizationRates")
        memory = memory_of(ask)
        return {
            "busy_pct": part(busy, "gpu"),
            "mem_busy_pct": part(busy, "memory"),
            "vram_used_bytes": part(memory, "used"),
            "vram_free_bytes": part(memory, "free"),
            "temp_c": first(
                ask("nvmlDeviceGetTemperatureV", TEMPERATURE_GPU),
                lambda: ask("nvmlDeviceGetTemperature", TEMPERATURE_GPU),
            ),
            "power_w": scaled(ask("nvmlDeviceGetPowerUsage"), MILLI),
            # The enforced limit: laptops refuse the management limit, and the value moves.
            "power_limit_w": scaled(ask("nvmlDeviceGetEnforcedPowerLimit"), MILLI),
            "clock_mhz": ask("nvmlDeviceGetClockInfo", 0),
            "clock_memory_mhz": ask("nvmlDeviceGetClockInfo", 2),
            "throttle": throttle_names(
                first(
                    ask("nvmlDeviceGetCurrentClocksEventReasons"),
                    lambda: ask("nvmlDeviceGetCurrentClocksThrottleReasons"),
                )
            ),
        }

    def _read_slow(self, nvml: Nvml) -> dict[str, object]:
        return {
            "temp_memory_c": self._memory_temperature(nvml),
            "fan_pct": self.ask(nvml, "nvmlDeviceGetFanSpeed"),
            "pcie_gen": self.ask(nvml, "nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie_width": self.ask(nvml, "nvmlDeviceGetCurrPcieLinkWidth"),
            "processes": self._processes(nvml),
        }

    def _read_pcie(self, nvml: Nvml) -> dict[str, object]:
        # The card's transmit counter is what leaves the card; NVML counts KB/s.
        return {
            "pcie_tx_bytes_s": scaled(self.ask(nvml, "nvmlDeviceGetPcieThroughput", 0), 1000),
            "pcie_rx_bytes_s": scaled(self.ask(nvml, "nvmlDeviceGetPcieThroughput", 1), 1000),
        }

    def _memory_temperature(self, nvml: Nvml) -> object:
        answer = self.ask(nvml, "nvmlDeviceGetFieldValues", FIELD_MEMORY_TEMP)
        return answer if answer != 0 else Absence.NOT_SUPPORTED

    def _processes(self, nvml: Nvml) -> dict[int, int | None] | Absence:
        found: dict[int, int | None] = {}
        answers = [self._running(nvml, kind) for kind in ("Compute", "Graphics")]
        for answer in answers:
            for entry in answer if isinstance(answer, list) else []:
                pid, used = part(entry, "pid"), part(entry, "usedGpuMemory")
                if isinstance(pid, int):
                    found[pid] = used if isinstance(used, int) else None
        known = any(isinstance(answer, list) for answer in answers)
        return found if known else absence_of(answers[0])

    def _running(self, nvml: Nvml, kind: str) -> Any:
        name = f"nvmlDeviceGet{kind}RunningProcesses"
        return first(self.ask(nvml, f"{name}_v3"), lambda: self.ask(nvml, name))


def identify_card(nvml: Nvml, card: Card, ram_bytes: int | Absence) -> GpuInfo:
    """Return what NVML says a card is.

    ``ram_bytes`` is what a card without memory of its own shares with the processor.
    """

    def ask(function: str, *args: int) -> Any:
        return card.ask(nvml, function, *args)

    name = text_of(ask("nvmlDeviceGetName"))
    memory = memory_of(ask)
    unified = isinstance(memory, Absence) and any(w in name.lower() for w in UNIFIED_WORDS)
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
        node=card.pci.card if card.pci else None,
    )
    limits = ask("nvmlDeviceGetPowerManagementLimitConstraints")
    low, high = limits if isinstance(limits, list) and len(limits) == 2 else (limits, limits)
    display = ask("nvmlDeviceGetDisplayActive")
    values = {
        "driver": _prefixed("nvidia ", nvml.query("nvmlSystemGetDriverVersion")),
        "cuda_version": cuda_version(nvml.query("nvmlSystemGetCudaDriverVersion_v2")),
        "vram_total_bytes": part(memory, "total"),
        "shared_total_bytes": ram_bytes if unified else Absence.NOT_APPLICABLE,
        "unified_memory": unified,
        "drives_display": bool(display) if isinstance(display, int) else display,
        "pcie_gen_max": ask("nvmlDeviceGetMaxPcieLinkGeneration"),
        "pcie_width_max": ask("nvmlDeviceGetMaxPcieLinkWidth"),
        "power_limit_min_w": scaled(low, MILLI),
        "power_limit_max_w": scaled(high, MILLI),
        "power_limit_default_w": scaled(ask("nvmlDeviceGetPowerManagementDefaultLimit"), MILLI),
        "power_limit_settable": _settable(ask, name, low, high),
        "temp_slowdown_c": ask("nvmlDeviceGetTemperatureThreshold", THRESHOLD_SLOWDOWN),
    }
    return gpu_info(known, values)


def _settable(ask: Callable[..., Any], name: str, low: object, high: object) -> object:
    # Laptop drivers show a range and refuse to set it (NVIDIA, Linux 530 and later); a card
    # split into MIG instances refuses as well.
    if any(word in name.lower() for word in MOBILE_WORDS):
        return False
    mig = ask("nvmlDeviceGetMigMode")
    if isinstance(mig, list) and mig[:1] == [1]:
        return False
    limit = ask("nvmlDeviceGetPowerManagementLimit")
    if isinstance(limit, Absence) or isinstance(low, Absence) or isinstance(high, Absence):
        return False if limit is Absence.NOT_SUPPORTED else Absence.NO_DATA
    return bool(low != high)


def memory_of(ask: Callable[..., Any]) -> Any:
    """Return the memory answer, version 2 where the driver has it."""
    return first(ask("nvmlDeviceGetMemoryInfo", MEMORY_V2), lambda: ask("nvmlDeviceGetMemoryInfo"))


def first(answer: Any, other: Callable[[], Any]) -> Any:
    """Return ``answer``, or what ``other`` gives where the driver lacks the newer call."""
    return other() if isinstance(answer, Absence) and answer in FORGET else answer


def part(answer: object, name: str) -> object:
    """Return one member of a structure."""
    if isinstance(answer, dict):
        return answer.get(name, Absence.NO_DATA)
    return absence_of(answer)


def throttle_names(mask: object) -> object:
    """Return the reasons in a bit mask; empty when only idle."""
    if isinstance(mask, bool) or not isinstance(mask, int):
        return absence_of(mask)
    return tuple(name for bit, name in THROTTLE_NAMES.items() if mask & bit)


def cuda_version(number: object) -> object:
    """Return 12040 as ``12.4``."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1000:
        return absence_of(number)
    return f"{number // 1000}.{number % 1000 // 10}"


def text_of(answer: object) -> str:
    """Return the text of an answer, or an empty one."""
    return "" if isinstance(answer, Absence) or not isinstance(answer, str) else answer


def absence_of(answer: object) -> Absence:
    """Return why an answer of the wrong shape is no reading."""
    return answer if isinstance(answer, Absence) else Absence.NO_DATA


def _prefixed(prefix: str, answer: object) -> object:
    text = text_of(answer)
    return prefix + text if text else absence_of(answer)
