"""AMD and Intel: the limit is a file in the kernel's hwmon folder, in microwatts."""

import os
from pathlib import Path

from app.power.helper.gpu import DriverRefused, device_folder, identity_of, read_text
from app.power.protocol import Facts, Range, power_range

MICRO = 1_000_000
AMD, INTEL = "0x1002", "0x8086"
VENDORS = {AMD: "amd", INTEL: "intel"}
_DRIVERS = {AMD: ("amdgpu",), INTEL: ("xe", "i915")}


class SysfsGpu:
    """A GPU whose limit is ``power1_cap`` (AMD) or ``power1_max`` (Intel)."""

    def __init__(self, root: Path, pci_id: str) -> None:
        """Find the files.

        Args:
            root: ``/``, or a folder shaped like it.
            pci_id: Address of the device.

        Raises:
            DriverRefused: No such device, or none of these vendors.
        """
        self._pci_id = pci_id
        self._folder = device_folder(root, pci_id)
        self._vendor = read_text(self._folder / "vendor")
        if self._vendor not in VENDORS:
            raise DriverRefused("unknown_vendor", "neither AMD nor Intel")
        self._hwmon = self._find_hwmon()
        self._limit = None if self._hwmon is None else self._find_limit(self._hwmon)

    @property
    def identity(self) -> str:
        """Vendor, device and subsystem ids."""
        return identity_of(self._folder)

    def facts(self) -> Facts:
        """Return what may be set."""
        power = self._power_range()
        return Facts(
            pci_id=self._pci_id,
            vendor=VENDORS[self._vendor],
            power=power if isinstance(power, Range) else None,
            power_why=power if isinstance(power, str) else None,
            clocks_why="not_supported",
        )

    def read_power(self) -> float | None:
        """Return the limit set now, W."""
        return None if self._limit is None else _watts(self._limit)

    def write_power(self, watts: float) -> None:
        """Set the limit; a value that would round to 0 (Intel: limit off) is never written.

        Raises:
            DriverRefused: The kernel did not take it.
        """
        micro = round(watts * MICRO)
        if self._limit is None or micro < MICRO:
            raise DriverRefused("not_supported", "there is no limit to set")
        try:
            # NOFOLLOW (absent on Windows): the limit is a file of the kernel, never a link.
            flags = os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
            fd = os.open(self._limit, flags)
            try:
                os.write(fd, b"%d" % micro)
            finally:
                os.close(fd)
        except OSError as error:
            raise DriverRefused("refused_by_driver", error.strerror or str(error)) from error

    def lock_clocks(self, low_mhz: float, high_mhz: float) -> None:
        """Refuse: these drivers have no such lock without overdrive."""
        raise DriverRefused("not_supported", f"no clock lock ({low_mhz:.0f}-{high_mhz:.0f} MHz)")

    def reset_clocks(self) -> None:
        """Nothing was locked."""

    def close(self) -> None:
        """Nothing is held."""

    def _find_hwmon(self) -> Path | None:
        folders = sorted((self._folder / "hwmon").glob("hwmon*"))
        named = (f for f in folders if read_text(f / "name") in _DRIVERS[self._vendor])
        return next(named, None)

    def _find_limit(self, hwmon: Path) -> Path | None:
        names = ("power1_cap",) if self._vendor == AMD else ("power1_max", "power2_max")
        return next((hwmon / n for n in names if (hwmon / n).is_file()), None)

    def _power_range(self) -> Range | str:
        if self._hwmon is None or self._limit is None:
            return "not_supported"
        name = self._limit.name
        if self._vendor == INTEL:
            rated = _watts(self._hwmon / name.replace("_max", "_rated_max"))
            return power_range(None, rated, rated, self.read_power())
        if read_text(self._hwmon / "power1_label") not in {"", "PPT"}:
            # Van Gogh has a slow and a fast limit; one alone says little.
            return "several_limits"
        low, high, default = (
            _watts(self._hwmon / f"power1_cap_{suffix}") for suffix in ("min", "max", "default")
        )
        return power_range(low, high, default, self.read_power())


def _watts(path: Path) -> float | None:
    text = read_text(path)
    return int(text) / MICRO if text.isascii() and text.isdigit() else None
