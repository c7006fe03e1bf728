"""What may be done with a device, and what an administrator could do."""

import pytest

from app.domain.errors import UsageProblem
from app.domain.machine import GpuInfo, GpuSample, HostSample, PowerSource
from app.power.admin import clocks_command, limit_command
from app.power.devices import check_cap, expected_range, governed_device, reading_of
from app.power.protocol import Facts, Range
from app.power.records import Knob, Mode, Reading
from app.power.targets import effective_mode

DESKTOP = GpuInfo(
    probe="nvml", uuid="GPU-1", pci_id="0000:01:00.0", vendor="nvidia",
    power_limit_min_w=150.0, power_limit_max_w=180.0, power_limit_default_w=180.0,
    power_limit_settable=True, temp_slowdown_c=88.0,
)  # fmt: skip
LAPTOP = GpuInfo(probe="nvml", pci_id="0000:01:00.0", vendor="nvidia", power_limit_settable=False)
FACTS = Facts(pci_id="0000:01:00.0", vendor="nvidia", power=Range(low=150.0, high=180.0, now=180.0))


def test_without_a_helper_only_pacing_is_offered() -> None:
    """Displayed limits do not mean that they can be set."""
    device = governed_device(DESKTOP)
    assert [k for k in Knob if device.offers(k)] == [Knob.PACING]


def test_facts_of_the_helper_decide() -> None:
    """What the helper read is what may be set."""
    device = governed_device(DESKTOP, FACTS)
    assert device.offers(Knob.POWER_LIMIT)
    assert not device.offers(Knob.CLOCKS)
    assert (device.floor_w, device.ceiling_w, device.slowdown_c) == (150.0, 180.0, 88.0)


@pytest.mark.parametrize("cap", [149.9, 180.1, 0.0])
def test_cap_outside_the_range_is_rejected(cap: float) -> None:
    """Below the hardware's minimum is an error, never silently the minimum (B20)."""
    with pytest.raises(UsageProblem) as problem:
        check_cap(governed_device(DESKTOP, FACTS), cap)
    assert "150 to 180 W" in problem.value.info.hint


def test_cap_on_a_laptop_is_rejected() -> None:
    """Where no limit can be set, none is promised."""
    with pytest.raises(UsageProblem):
        check_cap(governed_device(LAPTOP), 80.0)


@pytest.mark.parametrize(
    ("info", "code"),
    [
        (LAPTOP, "not_adjustable"),
        (GpuInfo(probe="nvml", uuid="MIG-1", pci_id="0000:01:00.0"), "mig"),
        (GpuInfo(probe="vulkan", power_limit_settable=True), "no_address"),
    ],
)
def test_reasons_for_no_range(info: GpuInfo, code: str) -> None:
    """Every device without a range has a reason."""
    assert expected_range(info, 80.0) == code


def test_commands_for_an_administrator() -> None:
    """The exact commands, with the way back."""
    command = limit_command(DESKTOP, 150.0, 180.0)
    assert command is not None
    assert command.set == "sudo nvidia-smi -i 0000:01:00.0 -pl 150"
    assert command.undo == "sudo nvidia-smi -i 0000:01:00.0 -pl 180"
    windows = clocks_command(LAPTOP, 210.0, 1800.0, "windows")
    assert windows is not None
    assert windows.set == "nvidia-smi -i 0000:01:00.0 -lgc 210,1800"
    assert windows.note == "administrator_prompt"
    amd = limit_command(GpuInfo(probe="drm", pci_id="0000:03:00.0", vendor="amd"), 150.0, 203.0)
    assert amd is not None
    assert amd.set == (
        "echo 150000000 | sudo tee /sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon*/power1_cap"
    )


def test_no_command_where_nobody_can() -> None:
    """A fixed limit, an unknown address or a limit of 0 gives no command."""
    assert limit_command(LAPTOP, 80.0, 115.0) is None
    odd = GpuInfo(probe="nvml", pci_id="0000:01:00.0; reboot", vendor="nvidia")
    assert limit_command(odd, 80.0, 115.0) is None
    assert clocks_command(odd, 210.0, 1800.0) is None
    intel = GpuInfo(probe="drm", pci_id="0000:04:00.0", vendor="intel")
    assert limit_command(intel, 0.0, 190.0) is None
    assert limit_command(intel, 100.0, 190.0, "windows") is None


def test_reading_of_a_sample() -> None:
    """A lost device and the power source reach the governor."""
    sample = GpuSample(key="k", t_ns=1, temp_c=70.0, missing={"power_w": "lost"})
    other = GpuSample(key="k", t_ns=1, temp_c=71.0, power_w=90.0)
    host = HostSample(t_ns=1, power_source=PowerSource.BATTERY, power_mode="saver")
    reading = reading_of((sample, other), host, active=True, speed=20.0)
    assert (reading.temp_c, reading.power_w, reading.lost) == (70.0, 90.0, True)
    assert (reading.source, reading.profile) == (PowerSource.BATTERY, "saver")
    assert not reading_of((other,), None, active=False).lost
    assert reading_of((), None, active=False).temp_c is None


@pytest.mark.parametrize("profile", ["saver", "quiet", "low-power"])
def test_a_quiet_system_is_kept_quiet(profile: str) -> None:
    """Balanced becomes quiet under the system's own saving mode, in the probes' words."""
    reading = Reading(profile=profile)
    assert effective_mode(Mode.BALANCED, reading) is Mode.QUIET
    assert effective_mode(Mode.FULL, reading) is Mode.FULL
