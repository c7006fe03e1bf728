"""The exact command for an administrator, where RigTune itself may or can not set a limit."""

import sys
from typing import Literal

from app.domain.machine import GpuInfo
from app.domain.record import Record
from app.power.protocol import PCI_ID

System = Literal["linux", "windows"]


class AdminCommand(Record, frozen=True, kw_only=True):
    """A command to copy, and the one that undoes it (a restart undoes it as well).

    Attributes:
        set: Sets the limit.
        undo: Puts it back.
        note: Code of what to know first; ``None`` = nothing.
    """

    set: str
    undo: str
    note: str | None = None


def this_system() -> System:
    """Return the system whose commands to show."""
    return "windows" if sys.platform == "win32" else "linux"


def limit_command(
    info: GpuInfo, watts: float, before_w: float, system: System = "linux"
) -> AdminCommand | None:
    """Return how an administrator sets the power limit; ``None`` where nobody can.

    Args:
        info: The device.
        watts: Limit wanted.
        before_w: Limit found, for the way back.
        system: Operating system.
    """
    address = info.pci_id or ""
    if not PCI_ID.match(address) or info.power_limit_settable is False or watts < 1:
        return None
    if info.vendor == "nvidia":
        prefix = _elevated(system)
        return AdminCommand(
            set=f"{prefix}nvidia-smi -i {address} -pl {watts:.0f}",
            undo=f"{prefix}nvidia-smi -i {address} -pl {before_w:.0f}",
            note="administrator_prompt" if system == "windows" else None,
        )
    files = {"amd": "power1_cap", "intel": "power1_max"}
    if system != "linux" or info.vendor not in files:
        return None
    path = f"/sys/bus/pci/devices/{address}/hwmon/hwmon*/{files[info.vendor]}"
    return AdminCommand(set=_tee(watts, path), undo=_tee(before_w, path))


def clocks_command(
    info: GpuInfo, low_mhz: float, high_mhz: float, system: System = "linux"
) -> AdminCommand | None:
    """Return how an administrator locks the clocks: the way for laptops whose limit is fixed."""
    address = info.pci_id or ""
    if not PCI_ID.match(address) or info.vendor != "nvidia":
        return None
    prefix = _elevated(system)
    return AdminCommand(
        set=f"{prefix}nvidia-smi -i {address} -lgc {low_mhz:.0f},{high_mhz:.0f}",
        undo=f"{prefix}nvidia-smi -i {address} -rgc",
        note="administrator_prompt" if system == "windows" else None,
    )


def _elevated(system: System) -> str:
    return "sudo " if system == "linux" else ""


def _tee(watts: float, path: str) -> str:
    return f"echo {round(watts * 1_000_000)} | sudo tee {path}"
