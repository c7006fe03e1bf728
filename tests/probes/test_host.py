"""The host probe: what this process may use, where the power comes from, what it runs in."""

from pathlib import Path

import pytest

from app.domain.machine import PowerSource
from probes.bandwidth import disk_read_mb_s, read_gb_s
from probes.cpu import cpu_list
from probes.host import HostProbe
from probes.reading import Absence
from probes.system import LiveSystem, SystemFacts
from probes.tree import FileTree
from probes.windows.facts import CacheFacts, CoreFacts
from tests.fakes.probe import FakeSystem, FakeTree
from tests.fakes.windows import dword, windows

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


FLAGS = "processor\t: 0\nflags\t\t: fpu avx avx2 f16c avx512_vnni lm\nbugs\t\t: none\n"


def test_instruction_sets_that_matter() -> None:
    """Only those the engine has kernels for; no list is not an empty list."""
    wanted = ("avx", "avx2", "f16c", "avx512_vnni")
    assert probe_of({"/proc/cpuinfo": FLAGS}).identify().cpu_features == wanted
    arm = "processor: 0\nFeatures\t: fp asimd asimddp i8mm sve\n"
    assert set(probe_of({"/proc/cpuinfo": arm}).identify().cpu_features or ()) == {
        *("neon", "dotprod", "i8mm", "sve"),
    }
    assert probe_of({}).identify().cpu_features is None


def test_instruction_sets_of_a_cut_list_are_unknown() -> None:
    """A list that was cut short must not claim that something is missing."""
    cut = "flags\t\t: " + "x" * (16 * 1024)
    assert probe_of({"/proc/cpuinfo": cut}).identify().cpu_features is None


def test_fast_and_slow_cores_of_arm() -> None:
    """On ARM the cores of the highest capacity are the fast ones."""
    files = topology(8, 1)
    for number in range(8):
        files[f"{CPU}/cpu{number}/cpu_capacity"] = "1024" if number < 2 else "400"
    host = probe_of(files).identify()
    assert (host.cores_performance, host.cores_efficiency) == (2, 6)


def test_caches_are_added_once_per_part() -> None:
    """Processors that share a cache count it once."""
    files = topology(8, 1)
    for number in range(8):
        folder = f"{CPU}/cpu{number}/cache/index3"
        files[f"{folder}/size"] = "32768K"
        files[f"{folder}/shared_cpu_list"] = "0-3" if number < 4 else "4-7"
    assert probe_of(files).identify().l3_bytes == 64 << 20


@pytest.mark.parametrize(
    ("files", "mode"),
    [
        ({"/etc/prime-discrete": "on-demand"}, "hybrid"),
        ({"/etc/prime-discrete": "intel"}, "integrated"),
        ({"/etc/supergfxd.conf": '{"mode": "AsusMuxDgpu"}'}, "discrete"),
        ({"/etc/supergfxd.conf": "{broken"}, None),
        ({"/etc/supergfxd.conf": "[1]"}, None),
        ({"/sys/devices/platform/asus-nb-wmi/gpu_mux_mode": "0"}, "discrete"),
        ({"/sys/devices/platform/asus-nb-wmi/dgpu_disable": "1"}, "integrated"),
        ({"/lib/udev/rules.d/50-remove-nvidia.rules": "x"}, "integrated"),
        ({}, None),
    ],
)
def test_switching_tools(files: dict[str, str | Absence], mode: str | None) -> None:
    """What a switch or tool set, in one vocabulary; nothing without one."""
    assert probe_of(files).identify().gpu_mode == mode


@pytest.mark.parametrize(
    ("profile", "mode"),
    [("low-power", "saver"), ("quiet", "saver"), ("performance", "performance"), ("max", "max")],
)
def test_platform_profiles(profile: str, mode: str) -> None:
    """Known names become ours, a maker's own word is kept."""
    files: dict[str, str | Absence] = {"/sys/firmware/acpi/platform_profile": profile}
    assert probe_of(files).identify().power_mode == mode


def test_page_cache_and_nodes() -> None:
    """Files in RAM, and the memory nodes of the machine."""
    files: dict[str, str | Absence] = {
        "/proc/meminfo": "MemTotal: 9 kB\nCached:          2048 kB\nSwapCached: 1 kB",
        "/sys/devices/system/node/node0/x": "",
        "/sys/devices/system/node/node1/x": "",
        "/sys/devices/system/node/online": "0-1",
    }
    host = probe_of(files).identify()
    assert (host.page_cache_bytes, host.numa_nodes) == (2 << 20, 2)


def test_windows_hardware_comes_from_windows() -> None:
    """Efficiency classes, features, power mode and settings are those of the door."""
    cores = tuple(CoreFacts(efficiency=1, cpus=(2 * i, 2 * i + 1)) for i in range(2))
    door = windows(
        cores=(*cores, CoreFacts(efficiency=0, cpus=(4,))),
        caches=(
            CacheFacts(level=2, n_bytes=1 << 20, cpus=(0, 1)),
            CacheFacts(level=3, n_bytes=16 << 20, cpus=(0, 1, 2, 3)),
            CacheFacts(level=3, n_bytes=4 << 20, cpus=(4,)),
            CacheFacts(level=3, n_bytes=16 << 20, cpus=(5, 6)),
        ),
        n_nodes=2,
        features=("avx", "avx2"),
        graphics={"TdrDelay": dword(8)},
    )
    facts = SystemFacts(os="windows", allowed_cpus=tuple(range(5)), plugged=True)
    host = HostProbe(FakeTree({}), FakeSystem(facts), door).identify()
    assert (host.cores_performance, host.cores_efficiency, host.threads_per_core) == (2, 1, 2)
    assert host.cpu_features == ("avx", "avx2")
    # The last cache belongs to processors that this program may not use.
    assert (host.l3_bytes, host.numa_nodes) == (20 << 20, 2)
    assert host.windows is not None
    assert host.windows.timeout("TdrDelay") == 8


def test_windows_that_says_nothing_leaves_fields_absent() -> None:
    """Every answer of the door may be missing."""
    facts = SystemFacts(os="windows", allowed_cpus=(0,))
    host = HostProbe(FakeTree({}), FakeSystem(facts)).identify()
    assert host.cpu_features is None
    assert host.windows is not None
    assert host.windows.resets is None
    assert host.windows.timeout("TdrLevel") == 3


@pytest.mark.parametrize("size", [0, 1 << 40])
def test_absurd_cache_is_not_shown(size: int) -> None:
    """No cache of nothing, none larger than any processor's."""
    door = windows(caches=(CacheFacts(level=3, n_bytes=size, cpus=(0,)),), n_nodes=0)
    facts = SystemFacts(os="windows", allowed_cpus=(0,))
    host = HostProbe(FakeTree({}), FakeSystem(facts), door).identify()
    assert (host.l3_bytes, host.numa_nodes) == (None, None)
    assert "l3_bytes" in host.missing


def test_memory_modules_that_only_root_may_read() -> None:
    """Who may not read the firmware's table is told so; the kind of memory may be known."""
    edac = "/sys/devices/system/edac/mc/mc0/dimm0/dimm_mem_type"
    table: dict[str, bytes | Absence] = {"/sys/firmware/dmi/tables/DMI": Absence.NO_PERMISSION}
    tree = FakeTree({edac: "Unbuffered-DDR5"}, binary=table)
    host = HostProbe(tree, FakeSystem(EIGHT)).identify()
    assert (host.ram_type, host.ram_speed_mt_s) == ("DDR5", None)
    assert host.missing["ram_speed_mt_s"] == "no_permission"


def test_memory_speed_is_measured_on_request() -> None:
    """A plausible speed of this machine's RAM, and of a file's disk."""
    assert 0.1 < (read_gb_s(1, 1 << 20, seconds=0.0) or 0.0) < 10_000
    assert disk_read_mb_s(Path("/no/such/file")) is None
    assert (disk_read_mb_s(Path(__file__)) or 0.0) > 0


@pytest.mark.parametrize("n", [-1, 10**18])
def test_impossible_sizes_are_not_shown(n: int) -> None:
    """Negative or absurd figures of the system are absent with the reason, never a number."""
    facts = SystemFacts(
        os="linux", cores_physical=n, ram_bytes=n, ram_available_bytes=n, swap_bytes=n
    )
    host = probe_of({}, facts).identify()
    for name in ("cores_physical", "ram_bytes", "ram_available_bytes", "swap_bytes"):
        assert getattr(host, name) is None
        assert host.missing[name] == Absence.IMPLAUSIBLE


def test_more_ram_available_than_there_is_is_no_reading() -> None:
    """A part larger than the whole cannot be true."""
    facts = SystemFacts(os="linux", ram_bytes=8 * GIB, ram_available_bytes=9 * GIB)
    host = probe_of({}, facts).identify()
    assert (host.ram_bytes, host.ram_available_bytes) == (8 * GIB, None)


def test_impossible_load_is_not_shown() -> None:
    """Nor in the readings that come every second."""
    facts = SystemFacts(os="linux", ram_available_bytes=-5)
    assert probe_of({}, facts).sample().ram_available_bytes is None
