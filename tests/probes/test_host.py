"""The host probe: what this process may use, where the power comes from, what it runs in."""

import pytest

from app.domain.machine import PowerSource
from probes.host import HostProbe, cpu_list
from probes.reading import Absence
from probes.system import LiveSystem, SystemFacts
from probes.tree import FileTree
from tests.fakes.probe import FakeSystem, FakeTree

GIB = 1 << 30
CPU = "/sys/devices/system/cpu"
SUPPLY = "/sys/class/power_supply"
EIGHT = SystemFacts(
    os="linux",
    allowed_cpus=tuple(range(8)),
    cores_physical=4,
    ram_bytes=32 * GIB,
    ram_available_bytes=20 * GIB,
)


def topology(n_cpus: int, threads_per_core: int) -> dict[str, str | Absence]:
    files: dict[str, str | Absence] = {}
    for cpu in range(n_cpus):
        files[f"{CPU}/cpu{cpu}/topology/core_id"] = str(cpu // threads_per_core)
        files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = "0"
    return files


def probe_of(files: dict[str, str | Absence], facts: SystemFacts = EIGHT) -> HostProbe:
    return HostProbe(FakeTree(files), FakeSystem(facts))


def test_cores_are_those_this_process_may_use() -> None:
    """Affinity counts: two allowed threads of one core are one core."""
    facts = SystemFacts(os="linux", allowed_cpus=(2, 3), cores_physical=4)
    host = probe_of(topology(8, 2), facts).identify()
    assert (host.cores_physical, host.cores_logical) == (1, 2)


def test_performance_cores_of_hybrid_processors() -> None:
    """P-cores are counted without their second threads; others have none to tell apart."""
    files = topology(8, 2) | {
        "/sys/devices/cpu_core/cpus": "0-3",
        "/sys/devices/cpu_atom/cpus": "4-7",
    }
    assert probe_of(files).identify().cores_performance == 2
    alike = probe_of(topology(8, 2)).identify()
    assert alike.cores_performance is None
    assert alike.missing["cores_performance"] == "not_applicable"


@pytest.mark.parametrize("version", [1, 2])
def test_container_limits_count(version: int) -> None:
    """Quota and memory limit of either control group version bound what is reported."""
    files = topology(8, 1)
    if version == 2:
        root = "/sys/fs/cgroup/app"
        files["/proc/self/cgroup"] = "0::/app"
        files[f"{root}/cpu.max"] = "250000 100000"
        files[f"{root}/memory.max"] = str(8 * GIB)
        files[f"{root}/memory.current"] = str(3 * GIB)
        files[f"{root}/memory.stat"] = f"anon 5\ninactive_file {GIB}"
    else:
        root = "/sys/fs/cgroup"
        files["/proc/self/cgroup"] = "4:memory:/app\n1:cpu,cpuacct:/app"
        files[f"{root}/cpu/app/cpu.cfs_quota_us"] = "250000"
        files[f"{root}/cpu/app/cpu.cfs_period_us"] = "100000"
        files[f"{root}/memory/app/memory.limit_in_bytes"] = str(8 * GIB)
        files[f"{root}/memory/app/memory.usage_in_bytes"] = str(3 * GIB)
        files[f"{root}/memory/app/memory.stat"] = f"total_inactive_file {GIB}"
    host = probe_of(files).identify()
    assert (host.cores_physical, host.cores_logical) == (2, 2)
    assert host.ram_bytes == 8 * GIB
    assert host.ram_available_bytes == 6 * GIB


def test_unlimited_groups_change_nothing() -> None:
    """``max``, and version 1's huge number, are no limits."""
    files = topology(8, 2) | {
        "/proc/self/cgroup": "0::/\n4:memory:/",
        "/sys/fs/cgroup/cpu.max": "max 100000",
        "/sys/fs/cgroup/memory.max": "max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    }
    host = probe_of(files).identify()
    assert (host.ram_bytes, host.ram_available_bytes) == (32 * GIB, 20 * GIB)
    assert host.cores_logical == 8


@pytest.mark.parametrize(
    ("files", "source"),
    [
        ({f"{SUPPLY}/AC/type": "Mains", f"{SUPPLY}/AC/online": "1"}, PowerSource.AC),
        (
            {
                f"{SUPPLY}/AC/type": "Mains",
                f"{SUPPLY}/AC/online": "0",
                f"{SUPPLY}/BAT1/type": "Battery",
                f"{SUPPLY}/BAT1/status": "Discharging",
            },
            PowerSource.BATTERY,
        ),
        (
            {
                f"{SUPPLY}/mouse/type": "Battery",
                f"{SUPPLY}/mouse/scope": "Device",
                f"{SUPPLY}/mouse/status": "Discharging",
            },
            PowerSource.AC,
        ),
        ({f"{SUPPLY}/BAT0/type": "Battery", f"{SUPPLY}/BAT0/status": "odd"}, PowerSource.UNKNOWN),
        ({}, PowerSource.UNKNOWN),
    ],
)
def test_power_source(files: dict[str, str | Absence], source: PowerSource) -> None:
    """Mains wins, a mouse's battery is not the machine's, no list of supplies is no answer."""
    assert probe_of(files).identify().power_source is source


def test_power_source_of_other_systems() -> None:
    """Where there is no sysfs the operating system's own word counts."""
    facts = SystemFacts(os="windows", plugged=False, battery_pct=55.0)
    host = probe_of({}, facts).identify()
    assert host.power_source is PowerSource.BATTERY
    assert host.battery_pct == 55.0
    assert host.is_laptop is True


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"/proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2"}, "wsl2"),
        ({"/.dockerenv": ""}, "container"),
        ({"/proc/1/cgroup": "0::/kubepods/burstable/x"}, "container"),
        ({"/sys/class/dmi/id/sys_vendor": "QEMU"}, "vm"),
        ({"/sys/class/dmi/id/sys_vendor": "LENOVO"}, None),
    ],
)
def test_virtualization(files: dict[str, str | Absence], kind: str | None) -> None:
    """WSL2, container, virtual machine and bare metal are told apart."""
    assert probe_of(files).identify().virtualization == kind


@pytest.mark.parametrize(("chassis", "laptop"), [("10", True), ("3", False), ("1", None)])
def test_laptop_by_chassis(chassis: str, laptop: bool | None) -> None:
    """The chassis type decides; an unknown one without battery stays unknown."""
    assert probe_of({"/sys/class/dmi/id/chassis_type": chassis}).identify().is_laptop is laptop


def test_only_the_processors_sensor_is_read() -> None:
    """No other sensor folder than the CPU driver's is opened beyond its name."""
    tree = FakeTree(
        {
            "/sys/class/hwmon/hwmon0/name": "amdgpu",
            "/sys/class/hwmon/hwmon0/temp1_input": "90000",
            "/sys/class/hwmon/hwmon1/name": "k10temp",
            "/sys/class/hwmon/hwmon1/temp1_input": "45500",
        }
    )
    probe = HostProbe(tree, FakeSystem(EIGHT))
    assert probe.sample().cpu_temp_c == pytest.approx(45.5)
    assert "/sys/class/hwmon/hwmon0/temp1_input" not in tree.read


def test_power_source_is_read_anew_at_trial_edges() -> None:
    """Between readings it is kept for seconds, at the edges of a trial it is asked."""
    tree = FakeTree({f"{SUPPLY}/AC/type": "Mains", f"{SUPPLY}/AC/online": "1"})
    probe = HostProbe(tree, FakeSystem(EIGHT), clock_ns=lambda: 1)
    probe.sample()
    tree.files[f"{SUPPLY}/AC/online"] = "0"
    tree.files |= {f"{SUPPLY}/BAT0/type": "Battery", f"{SUPPLY}/BAT0/status": "Discharging"}
    assert probe.sample().power_source is PowerSource.AC
    probe.set_trial(active=True)
    assert probe.sample().power_source is PowerSource.BATTERY


def test_kernel_lists() -> None:
    """Ranges, single numbers and rubbish in a CPU list."""
    assert cpu_list("0-2,8") == {0, 1, 2, 8}
    assert cpu_list("") == set()
    assert cpu_list("0-x,3") == {3}
    assert len(cpu_list("0-99999999")) <= 4097


def test_this_machine_is_described() -> None:
    """On the real system the essentials are there and plausible."""
    host = HostProbe(FileTree(), LiveSystem()).identify()
    assert host.cores_logical is not None
    assert host.cores_physical is not None
    assert 1 <= host.cores_physical <= host.cores_logical
    assert host.ram_bytes is not None
    assert host.ram_available_bytes is not None
    assert 0 < host.ram_available_bytes <= host.ram_bytes
