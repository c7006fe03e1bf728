"""One NVIDIA card: which NVML calls answer which reading, in which unit, how often."""

from functools import partial
from typing import Any

from app.domain.machine import GpuInfo
from probes.nvidia_answers import (
    FORGET,
    adapter,
    first,
    generation_of,
    memory_of,
    part,
    power_mizer,
    throttle_names,
)
from probes.nvidia_load import LimitedTime, programs
from probes.nvml import Nvml
from probes.pci import PciGpu
from probes.reading import Absence, scaled

SLOW_NS = 10_000_000_000
PCIE_NS = 1_000_000_000
MILLI = 1e-3
TEMPERATURE_GPU = 0
UNCORRECTED, VOLATILE = 1, 0
"""Kind of memory error, and since when it is counted: since the driver was loaded."""
FIELD_MEMORY_TEMP, FIELD_POWER_NOW, FIELD_ENERGY = 82, 186, 191


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
        self.n_fans: int | None = None
        self.is_instance = False
        self.slow_due_ns = 0
        self.lost_until_ns = 0
        self._pcie_due_ns = 0
        self._slow: dict[str, object] = {}
        self._never: dict[str, Absence] = {}
        self._limited = LimitedTime()

    def refusal(self, nvml: Nvml) -> Absence | None:
        """Return why NVML says nothing at all of the card, if it does.

        ``no_data``: the bus shows the card but NVML does not (another container's GPU).
        """
        # One call may fail by itself; a card whose name and number are refused gives nothing.
        names = ("nvmlDeviceGetName", "nvmlDeviceGetUUID")
        reasons = [a for name in names if isinstance(a := self.ask(nvml, name), Absence)]
        refused = len(reasons) == len(names) and not FORGET & set(reasons)
        return reasons[0] if refused else None

    def remember(self, info: GpuInfo) -> None:
        """Take key and sizes from an identification, so that samples carry the same key."""
        self.key = info.key
        self.uuid, self.name = info.uuid, info.name
        self.drives_display = info.drives_display
        self.vram_total_bytes = info.vram_total_bytes
        self.n_fans = info.n_fans
        self._limited.driver = info.driver
        # What was read before the card was known counted one fan.
        self.slow_due_ns = 0

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

    def read(self, nvml: Nvml, now_ns: int, counted_ns: int, *, trial: bool) -> dict[str, object]:
        """Return the raw readings due now; slow ones are carried on until they are due.

        A card that is gone gives nothing but the reason, as its ``busy_pct``.

        Args:
            nvml: The door.
            now_ns: Time of now.
            counted_ns: The same for counters: it stands still in a recording.
            trial: Whether to measure PCIe traffic as well.
        """
        values = self._fast(nvml)
        for gone in (Absence.LOST, Absence.DRIVER_NOT_LOADED):
            if gone in values.values():
                return {"busy_pct": gone}
        if now_ns >= self.slow_due_ns:
            self.slow_due_ns = now_ns + SLOW_NS
            self._slow = self._read_slow(nvml)
            # A counter that is carried on would look as if nothing had been used since.
            values["energy_j"] = scaled(self._energy(nvml), MILLI)
        else:
            values["energy_j"] = Absence.NO_DATA
        values["limited_pct"] = self._limited.read(partial(self.ask, nvml), counted_ns)
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
            "power_w": scaled(
                first(
                    ask("nvmlDeviceGetPowerUsage"),
                    lambda: ask("nvmlDeviceGetFieldValues", FIELD_POWER_NOW),
                ),
                MILLI,
            ),
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
            "memory_errors": self.ask(nvml, "nvmlDeviceGetTotalEccErrors", UNCORRECTED, VOLATILE),
            "fan_pct": self._fan(nvml),
            "fan_rpm": self.ask(nvml, "nvmlDeviceGetFanSpeedRPM"),
            "power_mizer": power_mizer(self.ask(nvml, "nvmlDeviceGetPowerMizerMode_v1")),
            "adapter": adapter(self.ask(nvml, "nvmlDeviceGetPowerSource")),
            "pcie_gen": first(
                self.ask(nvml, "nvmlDeviceGetCurrPcieLinkGeneration"),
                lambda: generation_of(self.ask(nvml, "nvmlDeviceGetPcieSpeed")),
            ),
            "pcie_width": self.ask(nvml, "nvmlDeviceGetCurrPcieLinkWidth"),
            "processes": programs(partial(self.ask, nvml)),
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

    def _energy(self, nvml: Nvml) -> Any:
        return first(
            self.ask(nvml, "nvmlDeviceGetTotalEnergyConsumption"),
            lambda: self.ask(nvml, "nvmlDeviceGetFieldValues", FIELD_ENERGY),
        )

    def _fan(self, nvml: Nvml) -> object:
        # The fastest is the one that is heard; a laptop's fans belong to its own controller.
        speeds = [self.ask(nvml, "nvmlDeviceGetFanSpeed_v2", n) for n in range(self.n_fans or 0)]
        known = [speed for speed in speeds if isinstance(speed, int)]
        return max(known) if known else self.ask(nvml, "nvmlDeviceGetFanSpeed")
