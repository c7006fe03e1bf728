"""The back ends behind one interface, on the odd ranges of real devices."""

from pathlib import Path

import pytest

from app.power.helper.gpu import DriverRefused, device_folder
from app.power.helper.nvidia import NvidiaGpu
from app.power.helper.sysfs import SysfsGpu
from app.power.protocol import Facts
from tests.fakes.nvml_power import NO_PERMISSION, FakeNvml
from tests.fakes.power_sysfs import (
    AMD_PCI,
    INTEL_PCI,
    NVIDIA_PCI,
    limit_w,
    make_amd,
    make_gpu,
    make_intel,
)


def shape(facts: Facts) -> tuple[float, float] | str | None:
    return (facts.power.low, facts.power.high) if facts.power else facts.power_why


def nvidia(root: Path, nvml: FakeNvml) -> NvidiaGpu:
    make_gpu(root, NVIDIA_PCI, "0x10de", None, {})
    return NvidiaGpu(device_folder(root, NVIDIA_PCI), NVIDIA_PCI, nvml)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (101.5, 203.0)),
        ({"power1_cap_min": 0}, (101.5, 203.0)),
        ({"power1_cap_min": 203_000_000, "power1_cap_max": 203_000_000}, "no_range"),
        ({"power1_cap": None}, "not_supported"),
        ({"power1_label": "slowPPT"}, "several_limits"),
        ({"power1_label": None, "power1_cap_default": None}, (101.5, 203.0)),
        ({"power1_cap": "garbage"}, "limit_not_readable"),
        ({"power1_cap_min": 183_000_000}, (183.0, 203.0)),
    ],
)
def test_amd_ranges(
    tmp_path: Path, files: dict[str, object], expected: tuple[float, float] | str
) -> None:
    """AMD: microwatts, minimum 0, minimum equal to maximum, no limit, two limits."""
    make_amd(tmp_path, **files)
    assert shape(SysfsGpu(tmp_path, AMD_PCI).facts()) == expected


@pytest.mark.parametrize("driver", ["xe", "i915"])
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (95.0, 190.0)),
        ({"power1_rated_max": 0}, (95.0, 190.0)),
        ({"power1_max": 0}, "limit_switched_off"),
        ({"power1_max": None}, "not_supported"),
        ({"power1_max": None, "power2_max": 120_000_000}, (60.0, 120.0)),
    ],
)
def test_intel_ranges(
    tmp_path: Path, driver: str, files: dict[str, object], expected: tuple[float, float] | str
) -> None:
    """Intel: card or package limit, rated maximum 0, and a limit that is switched off."""
    make_intel(tmp_path, driver, **files)
    assert shape(SysfsGpu(tmp_path, INTEL_PCI).facts()) == expected


@pytest.mark.parametrize("watts", [0.0, 0.4, 1e-9, -5.0])
def test_intel_limit_is_never_switched_off(tmp_path: Path, watts: float) -> None:
    """Writing 0 would disable the limit; the back end itself refuses it."""
    hwmon = make_intel(tmp_path)
    with pytest.raises(DriverRefused):
        SysfsGpu(tmp_path, INTEL_PCI).write_power(watts)
    assert limit_w(hwmon, "power1_max") == 190.0


def test_sysfs_write_and_read(tmp_path: Path) -> None:
    """A limit is written in microwatts and read back in watts."""
    hwmon = make_amd(tmp_path)
    gpu = SysfsGpu(tmp_path, AMD_PCI)
    gpu.write_power(150.25)
    assert (hwmon / "power1_cap").read_text() == "150250000"
    assert gpu.read_power() == 150.25


def test_link_in_place_of_the_limit_is_not_followed(tmp_path: Path) -> None:
    """A limit file that is a link is not written through."""
    hwmon = make_amd(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (hwmon / "power1_cap").unlink()
    (hwmon / "power1_cap").symlink_to(victim)
    with pytest.raises(DriverRefused):
        SysfsGpu(tmp_path, AMD_PCI).write_power(150.0)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("class", "0x020000", "no_gpu"),
        ("power/runtime_status", "suspended", "asleep"),
        ("vendor", "0x1a03", "unknown_vendor"),
    ],
)
def test_other_devices_are_refused(tmp_path: Path, file: str, text: str, code: str) -> None:
    """No network card, no sleeping GPU, no other vendor."""
    make_amd(tmp_path)
    (tmp_path / "sys/bus/pci/devices" / AMD_PCI / file).write_text(text)
    with pytest.raises(DriverRefused) as refused:
        SysfsGpu(tmp_path, AMD_PCI)
    assert refused.value.code == code


@pytest.mark.parametrize("pci_id", ["", "../..", "0000:03:00.8", "0000:03:00.0\n", "0000:03:00.0/"])
def test_malformed_addresses_never_reach_the_file_system(tmp_path: Path, pci_id: str) -> None:
    """An address is an address or nothing."""
    with pytest.raises(DriverRefused) as refused:
        device_folder(tmp_path, pci_id)
    assert refused.value.code == "bad_pci_id"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (175.0, 350.0)),
        ({"limit_readable": False}, "not_supported"),  # 4080 Laptop: limit not readable (C01)
        ({"constraints": None}, "not_supported"),
        ({"mig": 1}, "mig"),  # A100 split into instances (C10)
        ({"constraints": (350_000, 350_000)}, "no_range"),
        ({"default": 0}, (175.0, 350.0)),
    ],
)
def test_nvidia_ranges(
    tmp_path: Path, changes: dict[str, object], expected: tuple[float, float] | str
) -> None:
    """NVIDIA: laptops without a limit, MIG parents, fixed limits."""
    assert shape(nvidia(tmp_path, FakeNvml(**changes)).facts()) == expected


def test_split_card_offers_no_clocks_either(tmp_path: Path) -> None:
    """Power control is never offered on a MIG parent."""
    facts = nvidia(tmp_path, FakeNvml(mig=1)).facts()
    assert (facts.power, facts.clocks) == (None, None)


def test_laptop_without_limit_still_offers_clocks(tmp_path: Path) -> None:
    """The fallback of C01: clocks where the limit is fixed."""
    facts = nvidia(tmp_path, FakeNvml(limit_readable=False)).facts()
    assert facts.clocks is not None
    assert (facts.clocks.low, facts.clocks.high) == (630.0, 2100.0)


def test_nvidia_calls(tmp_path: Path) -> None:
    """Limits go in milliwatts, clocks in MHz, and the lock has its own reset."""
    nvml = FakeNvml()
    gpu = nvidia(tmp_path, nvml)
    gpu.write_power(200.5)
    gpu.lock_clocks(630.0, 1500.0)
    gpu.reset_clocks()
    assert nvml.calls == [("limit", (200_500,)), ("lock", (630, 1500)), ("unlock", ())]
    assert gpu.read_power() == 200.5


def test_nvidia_refusal(tmp_path: Path) -> None:
    """A driver's error is a refusal, not a crash."""
    gpu = nvidia(tmp_path, FakeNvml(set_error=NO_PERMISSION))
    with pytest.raises(DriverRefused):
        gpu.write_power(200.0)


def test_nvidia_answers_for_another_card(tmp_path: Path) -> None:
    """NVML must mean the same device."""
    with pytest.raises(DriverRefused) as refused:
        nvidia(tmp_path, FakeNvml(bus_id="00000000:02:00.0"))
    assert refused.value.code == "wrong_device"
