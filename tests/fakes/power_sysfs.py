"""Fake sysfs trees with one GPU and its limit files; the helper's tests write to these only."""

from pathlib import Path

AMD_PCI, INTEL_PCI, NVIDIA_PCI = "0000:03:00.0", "0000:04:00.0", "0000:01:00.0"
BOOT_ID = "11111111-2222-3333-4444-555555555555"


def make_gpu(
    root: Path, pci_id: str, vendor: str, driver: str | None, files: dict[str, object]
) -> Path:
    """Make a GPU below ``root`` and return its hwmon folder.

    Args:
        root: Where ``/sys`` and ``/proc`` begin.
        pci_id: Its address.
        vendor: PCI vendor id.
        driver: Name in hwmon; ``None`` = no sensors.
        files: Files of the hwmon folder: microwatts, text, or ``None`` = absent.
    """
    folder = root / "sys/bus/pci/devices" / pci_id
    hwmon = folder / "hwmon" / "hwmon3"
    hwmon.mkdir(parents=True)
    (folder / "power").mkdir()
    for name, text in {
        "vendor": vendor,
        "device": "0x73bf",
        "subsystem_vendor": "0x1da2",
        "subsystem_device": "0xe437",
        "class": "0x030000",
        "power/runtime_status": "active",
    }.items():
        (folder / name).write_text(text + "\n")
    if driver is not None:
        (hwmon / "name").write_text(driver + "\n")
    for name, value in files.items():
        if value is not None:
            (hwmon / name).write_text(f"{value}\n")
    boot = root / "proc/sys/kernel/random"
    boot.mkdir(parents=True, exist_ok=True)
    (boot / "boot_id").write_text(BOOT_ID + "\n")
    return hwmon


def make_amd(root: Path, **other: object) -> Path:
    """Make a desktop card of 203 W (default), settable from 183 to 233 W."""
    files: dict[str, object] = {
        "power1_cap": 203_000_000,
        "power1_cap_min": 92_000_000,
        "power1_cap_max": 233_000_000,
        "power1_cap_default": 203_000_000,
        "power1_label": "PPT",
    }
    return make_gpu(root, AMD_PCI, "0x1002", "amdgpu", files | other)


def make_intel(root: Path, driver: str = "xe", **other: object) -> Path:
    """Make a card of 190 W."""
    files: dict[str, object] = {"power1_max": 190_000_000, "power1_rated_max": 190_000_000}
    return make_gpu(root, INTEL_PCI, "0x8086", driver, files | other)


def limit_w(hwmon: Path, name: str = "power1_cap") -> float:
    """Return what the limit file says, W."""
    return int((hwmon / name).read_text()) / 1e6
