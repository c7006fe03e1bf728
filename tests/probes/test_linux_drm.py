"""The DRM probe: rates from counters, sleeping cards, links, cards against processors."""

import pytest

from app.domain.machine import GpuKind, PowerState, ProbeUnavailable
from probes.linux_drm import DrmProbe
from probes.pci import normal_pci_id
from probes.reading import Absence
from tests.fakes.probe import FakeTree

BUS = "/sys/bus/pci/devices"
ARC = f"{BUS}/0000:03:00.0"
AMD = f"{BUS}/0000:08:00.0"
SECOND = 1_000_000_000


def files_of(path: str, vendor: str, device: str, driver: str) -> dict[str, str | Absence]:
    return {
        f"{path}/class": "0x030000",
        f"{path}/vendor": f"0x{vendor}",
        f"{path}/uevent": f"DRIVER={driver}\nPCI_ID={vendor.upper()}:{device.upper()}",
        f"{path}/power/runtime_status": "active",
        f"{path}/drm/card1/dev": "226:1",
    }


def arc() -> FakeTree:
    files = files_of(ARC, "8086", "56a0", "i915")
    files |= {
        f"{ARC}/hwmon/hwmon2/name": "i915",
        f"{ARC}/hwmon/hwmon2/energy1_input": "1000000000",
        f"{ARC}/drm/card1/gt/gt0/rc6_residency_ms": "5000",
        f"{ARC}/drm/card1/gt/gt0/throttle_reason_thermal": "1",
        f"{ARC}/drm/card1/gt/gt0/throttle_reason_pl1": "0",
    }
    return FakeTree(files)


def amd(device: str = "744c") -> FakeTree:
    return FakeTree(files_of(AMD, "1002", device, "amdgpu"))


def test_power_and_busy_are_made_of_two_readings() -> None:
    """Energy and idle counters become watts and per cent from the second reading on."""
    tree = arc()
    probe = DrmProbe(tree, sample_nvidia=True)
    first = probe.sample()[0]
    assert (first.power_w, first.busy_pct) == (None, None)
    tree.now_ns += 2 * SECOND
    tree.files[f"{ARC}/hwmon/hwmon2/energy1_input"] = "1090000000"
    tree.files[f"{ARC}/drm/card1/gt/gt0/rc6_residency_ms"] = "5500"
    second = probe.sample()[0]
    assert second.power_w == pytest.approx(45.0)
    assert second.busy_pct == pytest.approx(75.0)
    assert second.throttle == ("hw_thermal",)


def test_counter_that_steps_back_says_nothing() -> None:
    """A wrapped or restarted counter gives no reading instead of a wrong one."""
    tree = arc()
    probe = DrmProbe(tree, sample_nvidia=True)
    probe.sample()
    tree.now_ns += SECOND
    tree.files[f"{ARC}/hwmon/hwmon2/energy1_input"] = "5"
    tree.files[f"{ARC}/drm/card1/gt/gt0/rc6_residency_ms"] = "1"
    sample = probe.sample()[0]
    assert (sample.power_w, sample.busy_pct) == (None, None)


def test_sleeping_card_is_read_no_further() -> None:
    """After ``runtime_status`` says suspended, no sensor and no busy file is opened."""
    tree = amd()
    tree.files[f"{AMD}/power/runtime_status"] = "suspended"
    tree.files[f"{AMD}/gpu_busy_percent"] = "50"
    probe = DrmProbe(tree, sample_nvidia=True)
    tree.read.clear()
    sample = probe.sample()[0]
    assert sample.power_state is PowerState.ASLEEP
    assert tree.read == [f"{AMD}/power/runtime_status"]
    probe.identify()
    # All of these the kernel answers from memory.
    harmless = (
        *("runtime_status", "boot_vga", "boot_display", "/control", "d3cold_allowed"),
        *("numa_node", "removable", "/class", "/vendor", "/uevent"),
    )
    assert all(path.endswith(harmless) for path in tree.read)


def test_failed_power_management_is_not_sleep() -> None:
    """A device whose power state is an error is not read either, and is not called asleep."""
    tree = amd()
    tree.files[f"{AMD}/power/runtime_status"] = "error"
    sample = DrmProbe(tree, sample_nvidia=True).sample()[0]
    assert sample.power_state is PowerState.UNKNOWN
    assert sample.missing["busy_pct"] == "error"


def test_amdgpu_that_refuses_while_falling_asleep_is_asleep() -> None:
    """Newer kernels answer EPERM for a suspended card: that is sleep, not missing rights."""
    tree = amd()
    tree.files[f"{AMD}/gpu_busy_percent"] = Absence.NO_PERMISSION
    sample = DrmProbe(tree, sample_nvidia=True).sample()[0]
    assert sample.missing["busy_pct"] == "asleep"


def test_metrics_format_tells_processor_from_card() -> None:
    """The metrics table decides; the PCI id only where there is none."""
    for device, head, kind in (
        ("ffff", bytes([0, 0, 2, 4]), GpuKind.INTEGRATED),
        ("ffff", bytes([0, 0, 3, 0]), GpuKind.INTEGRATED),
        ("15bf", bytes([0, 0, 1, 3]), GpuKind.DISCRETE),
        ("15bf", None, GpuKind.INTEGRATED),
        ("73df", None, GpuKind.DISCRETE),
    ):
        tree = amd(device)
        if head is not None:
            tree.binary[f"{AMD}/gpu_metrics"] = head
        assert DrmProbe(tree, sample_nvidia=True).identify()[0].kind is kind, (device, head)


def test_limit_of_one_value_is_not_settable() -> None:
    """Where lowest and highest limit are the same, nothing can be set."""
    for high, settable in (("95000000", False), ("120000000", True)):
        tree = amd()
        tree.files |= {
            f"{AMD}/hwmon/hwmon1/name": "amdgpu",
            f"{AMD}/hwmon/hwmon1/power1_cap_min": "95000000",
            f"{AMD}/hwmon/hwmon1/power1_cap_max": high,
        }
        info = DrmProbe(tree, sample_nvidia=True).identify()[0]
        assert info.power_limit_settable is settable
        assert info.power_limit_max_w == pytest.approx(int(high) / 1e6)


def test_nvidia_cards_are_sampled_only_without_nvml() -> None:
    """One card is not sampled twice."""
    tree = FakeTree(files_of(ARC, "10de", "2704", "nouveau"))
    assert DrmProbe(tree, sample_nvidia=False).sample() == ()
    assert DrmProbe(tree, sample_nvidia=True).sample()[0].power_state is PowerState.AWAKE


def test_machine_without_display_devices_has_no_probe() -> None:
    """A server's BMC is no GPU; no GPU is a normal state."""
    bmc = FakeTree(files_of(ARC, "1a03", "2000", "ast"))
    for tree in (bmc, FakeTree({})):
        with pytest.raises(ProbeUnavailable):
            DrmProbe(tree, sample_nvidia=True)


def test_addresses_of_all_sources_are_alike() -> None:
    """NVML's eight digits, the kernel's four and an engine's none are one address."""
    same = {normal_pci_id(t) for t in ("00000000:0A:00.0", "0000:0a:00.0", "0a:00.0")}
    assert same == {"0000:0a:00.0"}
    assert normal_pci_id("0000000F:01:00.0") == "000f:01:00.0"
    assert normal_pci_id("CUDA0") is None
    assert normal_pci_id(None) is None


def test_removable_card_is_external() -> None:
    """A card behind a port that can be unplugged is an eGPU; fixed ones and silence are not."""
    tree = amd()
    tree.links[AMD] = "/sys/devices/pci0000:00/0000:00:1d.0/0000:08:00.0"
    info = DrmProbe(tree, sample_nvidia=True).identify()[0]
    assert info.external is None
    assert info.missing["external"] == "no_data"
    tree.files[f"{AMD}/removable"] = "fixed"
    assert DrmProbe(tree, sample_nvidia=True).identify()[0].external is False
    tree.files[f"{BUS}/0000:00:1d.0/removable"] = "removable"
    assert DrmProbe(tree, sample_nvidia=True).identify()[0].external is True


def test_sleeping_card_still_tells_what_the_bus_knows() -> None:
    """Whether it may sleep, lose power, be unplugged: read without waking it."""
    tree = amd()
    tree.files |= {
        f"{AMD}/power/runtime_status": "suspended",
        f"{AMD}/power/control": "auto",
        f"{AMD}/d3cold_allowed": "1",
        f"{AMD}/numa_node": "1",
    }
    info = DrmProbe(tree, sample_nvidia=True).identify()[0]
    assert (info.may_sleep, info.d3cold_allowed, info.numa_node) == (True, True, 1)
    assert info.missing["resizable_bar"] == "asleep"


@pytest.mark.parametrize(
    ("visible", "total", "on"), [("256", "4096", False), ("4096", "4096", True), ("", "9", None)]
)
def test_resizable_bar_of_amd(visible: str, total: str, on: bool | None) -> None:
    """All memory visible to the processor means on."""
    tree = amd()
    tree.files |= {f"{AMD}/mem_info_vis_vram_total": visible, f"{AMD}/mem_info_vram_total": total}
    assert DrmProbe(tree, sample_nvidia=True).identify()[0].resizable_bar is on


@pytest.mark.parametrize(
    ("parameter", "release", "limit_ms", "source"),
    [
        ("10000,60000,10000,10000", "7.1.0", 60_000, "set"),
        ("10000, 9000", "7.1.0", 9_000, "set"),
        ("10000,-1,10000,10000", "7.1.0", None, "set"),
        ("10000,0,10000,10000", "7.1.0", 2_000, "default"),
        ("10000,x", "6.1", 60_000, "default"),
        ("", "7.0.1", 2_000, "default"),
        ("", "6.14.0", 60_000, "default"),
        ("10000", "6.14.0", 60_000, "default"),
        ("", "odd", None, None),
    ],
)
def test_compute_timeout_of_amdgpu(
    parameter: str, release: str, limit_ms: int | None, source: str | None
) -> None:
    """What was set counts (negative = never), else the default of the kernel's version."""
    tree = amd()
    tree.files |= {
        "/sys/module/amdgpu/parameters/lockup_timeout": parameter,
        "/proc/sys/kernel/osrelease": release,
    }
    info = DrmProbe(tree, sample_nvidia=True).identify()[0]
    assert (info.compute_timeout_ms, info.compute_timeout_source) == (limit_ms, source)


@pytest.mark.parametrize(
    ("preempt", "heartbeat", "limit_ms"),
    [("7500", "2500", 7_500), ("640", "0", None), ("0", "2500", None), ("x", "2500", None)],
)
def test_time_limit_of_i915(preempt: str, heartbeat: str, limit_ms: int | None) -> None:
    """Without heartbeats, or with a limit of zero, the driver ends nothing."""
    tree = arc()
    card = next(n for n in tree.names(f"{ARC}/drm") if n.startswith("card"))
    tree.files |= {
        f"{ARC}/drm/{card}/engine/rcs0/preempt_timeout_ms": preempt,
        f"{ARC}/drm/{card}/engine/rcs0/heartbeat_interval_ms": heartbeat,
    }
    assert DrmProbe(tree, sample_nvidia=True).identify()[0].compute_timeout_ms == limit_ms


def test_arc_memory_window_and_job_timeout() -> None:
    """The third memory window is the one onto an Arc card's memory."""
    tree = arc()
    line = "0x00000000fb000000 0x00000000fbffffff 0x0000000000140204"
    big = "0x000000e000000000 0x000000e3ffffffff 0x000000000014220c"
    tree.files |= {
        f"{ARC}/resource": f"{line}\n{line}\n{big}",
        f"{ARC}/tile0/gt0/engines/ccs/job_timeout_ms": "5000",
    }
    info = DrmProbe(tree, sample_nvidia=True).identify()[0]
    assert (info.bar_bytes, info.resizable_bar) == (16 << 30, True)
    assert info.compute_timeout_ms == 5000
    tree.files[f"{ARC}/resource"] = "rubbish"
    assert DrmProbe(tree, sample_nvidia=True).identify()[0].resizable_bar is None


def test_unplugged_card_is_lost_and_found_again() -> None:
    """A card that leaves the bus is no card asleep, and not one of zeros."""
    tree = arc()
    probe = DrmProbe(tree, sample_nvidia=True)
    files, tree.files = tree.files, {}
    (sample,) = probe.sample()
    assert sample.power_state is PowerState.UNKNOWN
    assert set(sample.missing.values()) == {"lost"}
    assert probe.identify() == ()
    tree.files = files
    assert len(probe.identify()) == 1
    assert probe.sample()[0].power_state is PowerState.AWAKE
