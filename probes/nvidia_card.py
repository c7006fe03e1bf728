"""One NVIDIA card: which NVML calls answer which reading, in which unit, how often."""

from typing import Any

from app.domain.machine import GpuInfo
from probes.nvidia_answers import (
    FORGET,
    absence_of,
    adapter,
    first,
    memory_of,
    part,
    throttle_names,
)
from probes.nvml import Nvml
from probes.pci import PciGpu
from probes.reading import Absence, scaled

SLOW_NS = 10_000_000_000
PCIE_NS = 1_000_000_000
MILLI = 1e-3
TEMPERATURE_GPU = 0
FIELD_MEMORY_TEMP = 82


class Card:
    """State of one card between readings."""

    def __init__(self, pci: PciGpu | None, index: int = 0) -> None:
        """Know the card by its PCI device, or by NVML index where there is none."""
        self.pci, self.index = pci, index
        # NVML wants the eight-digit domain.
        self.device = f"pci:{pci.pci_id:0>16}" if pci else f"index:{index}"
        self.key = pci.pci_id if pci else f"nvml:{index}"
        self.uuid: str | None = None
        self.name: str | None = None
        self.vram_total_bytes: int | None = None
        self.drives_display: bool | None = None
        self.is_instance = False
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
            # A counter that is carried on would look as if nothing had been used since.
            energy = self.ask(nvml, "nvmlDeviceGetTotalEnergyConsumption")
            values["energy_j"] = scaled(energy, MILLI)
        else:
            values["energy_j"] = Absence.NO_DATA
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
        # These, and energy above all (2.6 ms), are answered by the card itself.
        return {
            "temp_margin_c": self.ask(nvml, "nvmlDeviceGetMarginTemperature"),
            "temp_memory_c": self._memory_temperature(nvml),
            "fan_pct": self.ask(nvml, "nvmlDeviceGetFanSpeed"),
            "adapter": adapter(self.ask(nvml, "nvmlDeviceGetPowerSource")),
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
