"""What the helper needs of a GPU, whoever made it."""

from pathlib import Path
from typing import Protocol

from app.power.protocol import PCI_ID, Facts


class DriverRefused(Exception):
    """The driver did not do it; ``code`` is stable, the text is the driver's."""

    def __init__(self, code: str, message: str) -> None:
        """Keep both."""
        super().__init__(message)
        self.code = code


class Gpu(Protocol):
    """One GPU with its limit."""

    @property
    def identity(self) -> str:
        """What tells this card from another one that is plugged in at the same address later."""
        ...

    def facts(self) -> Facts:
        """Return what may be set.

        Raises:
            DriverRefused: The device does not answer.
        """
        ...

    def read_power(self) -> float | None:
        """Return the limit set now, W."""
        ...

    def write_power(self, watts: float) -> None:
        """Set the limit.

        Raises:
            DriverRefused: The driver did not take it.
        """
        ...

    def lock_clocks(self, low_mhz: float, high_mhz: float) -> None:
        """Keep the core clock within the range.

        Raises:
            DriverRefused: The driver did not take it.
        """
        ...

    def reset_clocks(self) -> None:
        """Undo ``lock_clocks``.

        Raises:
            DriverRefused: The driver did not take it.
        """
        ...

    def close(self) -> None:
        """Release the device."""
        ...


def device_folder(root: Path, pci_id: str) -> Path:
    """Return the device's folder in sysfs.

    Raises:
        DriverRefused: ``pci_id`` is malformed, absent, no display device, or asleep.
    """
    if not PCI_ID.match(pci_id):
        raise DriverRefused("bad_pci_id", "not a PCI address")
    folder = root / "sys/bus/pci/devices" / pci_id
    if not folder.is_dir():
        raise DriverRefused("no_device", "there is no such device")
    if not read_text(folder / "class").startswith("0x03"):
        raise DriverRefused("no_gpu", "it is not a display device")
    if read_text(folder / "power/runtime_status") in {"suspended", "suspending"}:
        raise DriverRefused("asleep", "the device sleeps")
    return folder


def identity_of(folder: Path) -> str:
    """Return vendor, device and subsystem ids: what names the card model in the slot."""
    names = ("vendor", "device", "subsystem_vendor", "subsystem_device", "unique_id")
    return ":".join(read_text(folder / name) for name in names)


def read_text(path: Path) -> str:
    """Return the stripped text of a small file; empty when it cannot be read."""
    try:
        with path.open("rb", buffering=0) as file:
            return (file.read(256) or b"").decode("ascii", "replace").replace("\0", "").strip()
    except OSError:
        return ""
