"""NVIDIA: power limit and clock lock through NVML."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.power.helper.gpu import DriverRefused, identity_of
from app.power.protocol import CLOCK_FLOOR_FRAC, Facts, Range, power_range

NVIDIA = "0x10de"
MILLI = 1000
_CLOCK_GRAPHICS = 0


class NvidiaGpu:
    """A GPU that NVML manages."""

    def __init__(self, folder: Path | None, pci_id: str, nvml: Any) -> None:
        """Open it.

        Args:
            folder: The device in sysfs (``gpu.device_folder``); ``None`` on Windows.
            pci_id: Address of the device.
            nvml: The ``pynvml`` module (or one shaped like it).

        Raises:
            DriverRefused: No such device, no driver, or NVML answers for another address.
        """
        self._folder, self._pci_id, self._nvml = folder, pci_id, nvml
        self._call(nvml.nvmlInit)
        self._handle = self._call(nvml.nvmlDeviceGetHandleByPciBusId, pci_id.encode())
        bus_id = self._call(nvml.nvmlDeviceGetPciInfo, self._handle).busId
        text = (bus_id.decode() if isinstance(bus_id, bytes) else str(bus_id)).lower()
        if text[-len(pci_id) :] != pci_id:
            raise DriverRefused("wrong_device", f"NVML answered for {text}")

    @property
    def identity(self) -> str:
        """Ids of the card and its UUID."""
        uuid = self._call(self._nvml.nvmlDeviceGetUUID, self._handle)
        ids = identity_of(self._folder) if self._folder else ""
        return f"{ids}:{uuid}"

    def facts(self) -> Facts:
        """Return what may be set; nothing on a card that is split into MIG instances."""
        power, clocks = self._power_range(), self._clock_range()
        if self._is_split():
            power = clocks = "mig"
        return Facts(
            pci_id=self._pci_id,
            vendor="nvidia",
            power=power if isinstance(power, Range) else None,
            power_why=power if isinstance(power, str) else None,
            clocks=clocks if isinstance(clocks, Range) else None,
            clocks_why=clocks if isinstance(clocks, str) else None,
        )

    def read_power(self) -> float | None:
        """Return the limit set now, W."""
        milli = self._ask(self._nvml.nvmlDeviceGetPowerManagementLimit)
        return milli / MILLI if milli else None

    def write_power(self, watts: float) -> None:
        """Set the limit.

        Raises:
            DriverRefused: The driver did not take it.
        """
        milli = round(watts * MILLI)
        self._call(self._nvml.nvmlDeviceSetPowerManagementLimit, self._handle, milli)

    def lock_clocks(self, low_mhz: float, high_mhz: float) -> None:
        """Keep the core clock within the range.

        Raises:
            DriverRefused: The driver did not take it.
        """
        clocks = (round(low_mhz), round(high_mhz))
        self._call(self._nvml.nvmlDeviceSetGpuLockedClocks, self._handle, *clocks)

    def reset_clocks(self) -> None:
        """Undo ``lock_clocks``.

        Raises:
            DriverRefused: The driver did not take it.
        """
        self._call(self._nvml.nvmlDeviceResetGpuLockedClocks, self._handle)

    def close(self) -> None:
        """Release NVML; without persistence the driver itself then forgets the limit."""
        self._ask_plain(self._nvml.nvmlShutdown)

    def _power_range(self) -> Range | str:
        nvml = self._nvml
        limits = self._ask(nvml.nvmlDeviceGetPowerManagementLimitConstraints)
        now = self.read_power()
        if limits is None or now is None:
            # Laptops show a range and refuse to say or set the limit.
            return "not_supported"
        default = self._ask(nvml.nvmlDeviceGetPowerManagementDefaultLimit) or 0
        return power_range(limits[0] / MILLI, limits[1] / MILLI, default / MILLI, now)

    def _clock_range(self) -> Range | str:
        high = self._ask(self._nvml.nvmlDeviceGetMaxClockInfo, _CLOCK_GRAPHICS)
        if not high or not hasattr(self._nvml, "nvmlDeviceSetGpuLockedClocks"):
            return "not_supported"
        return Range(low=float(round(high * CLOCK_FLOOR_FRAC)), high=float(high), now=float(high))

    def _is_split(self) -> bool:
        mode = self._ask(getattr(self._nvml, "nvmlDeviceGetMigMode", None))
        return bool(mode and mode[0])

    def _ask(self, function: Callable[..., Any] | None, *args: int) -> Any:
        """Return what the driver says, ``None`` when it says nothing."""
        if function is None:
            return None
        try:
            return self._call(function, self._handle, *args)
        except DriverRefused:
            return None

    def _ask_plain(self, function: Callable[[], Any]) -> None:
        try:
            self._call(function)
        except DriverRefused:
            return

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except self._nvml.NVMLError as error:
            raise DriverRefused("refused_by_driver", str(error)) from error
