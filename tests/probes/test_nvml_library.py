"""The NVIDIA probe through the real binding, on a library in C: layouts, old drivers, failures.

The library takes structures only in the size and version that NVIDIA documents, and gives every
member a value of its own, so a call that is declared differently in the binding shows.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.machine import GpuProcess
from probes.reading import Absence
from tests.fakes.nvml_library import StandIn, compiled

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30
SAID: dict[str, object] = {
    "uuid": "GPU-5c1f0b7e-0000-0000-0000-000000000001", "name": "NVIDIA GeForce RTX 5070",
    "driver": "nvidia 580.95.05", "cuda_version": "13.0", "compute_capability": "12.1",
    "vram_total_bytes": 12 * GIB, "vram_free_bytes": 8 * GIB, "vram_used_bytes": 4 * GIB,
    "bar_bytes": 16 * GIB, "resizable_bar": True, "drives_display": True, "ecc": False,
    "pcie_gen_max": 4, "pcie_gen_device_max": 5, "pcie_width_max": 16, "pcie_gen": 3,
    "pcie_width": 8, "pcie_tx_bytes_s": 4_200_000.0, "pcie_rx_bytes_s": 4_201_000.0,
    "power_limit_min_w": 100.0, "power_limit_max_w": 300.0, "power_limit_default_w": 250.0,
    "power_limit_settable": True, "power_limit_w": 248.0, "power_w": 143.5,
    "temp_c": 58.0, "temp_memory_c": 66.0, "temp_margin_c": 29.0, "temp_slowdown_c": 93.0,
    "temp_shutdown_c": 98.0, "clock_mhz": 2410.0, "clock_memory_mhz": 14001.0,
    "clock_max_mhz": 3100.0, "busy_pct": 61.0, "mem_busy_pct": 27.0, "n_cores": 6144,
    "memory_bus_bits": 192, "memory_gb_s": 672.048, "n_fans": 2, "fan_pct": 35.0,
    "fan_rpm": 1250.0, "persistence": True, "n_nvlinks": 1, "memory_errors": 3,
    "adapter": "undersized", "power_mizer": "maximum",
    "energy_j": 1234.567, "throttle": ("sw_power_cap", "sw_thermal"), "driver_model": "wddm",
    "processes": (
        GpuProcess(pid=41, name="program41", vram_bytes=3 * GIB, busy_pct=50.0),
        GpuProcess(pid=42, name="program42", vram_bytes=GIB // 2, busy_pct=51.0),
    ),
}  # fmt: skip
OLDER: dict[str, object] = {
    # what the older names of the calls say
    "vram_free_bytes": 9 * GIB, "vram_used_bytes": 3 * GIB, "temp_c": 57.0,
    "throttle": ("sw_power_cap",), "driver": "nvidia 470.256.02",
    "processes": (
        GpuProcess(pid=41, name="program41", vram_bytes=GIB, busy_pct=50.0),
        GpuProcess(pid=42, name="program42", vram_bytes=2 * GIB, busy_pct=51.0),
    ),
    # what has no older name
    **dict.fromkeys(("temp_margin_c", "fan_rpm", "adapter", "power_mizer"), "symbol_missing"),
    **dict.fromkeys(("driver_model", "pcie_gen_device_max", "n_cores"), "symbol_missing"),
}  # fmt: skip
LIMITS = ("power_limit_min_w", "power_limit_max_w", "power_limit_settable")
AFFECTS: dict[str, tuple[str, ...]] = {
    "nvmlDeviceGetName": ("name",),
    "nvmlDeviceGetUUID": ("uuid", "key"),
    "nvmlDeviceGetPciInfo_v3": (),
    "nvmlDeviceGetBAR1MemoryInfo": ("bar_bytes", "resizable_bar"),
    "nvmlDeviceGetDisplayActive": ("drives_display",),
    "nvmlDeviceGetMaxPcieLinkGeneration": ("pcie_gen_max",),
    "nvmlDeviceGetMaxPcieLinkWidth": ("pcie_width_max",),
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": ("pcie_gen_device_max",),
    "nvmlDeviceGetPowerManagementDefaultLimit": ("power_limit_default_w",),
    "nvmlDeviceGetPowerManagementLimit": ("power_limit_settable",),
    "nvmlDeviceGetPowerManagementLimitConstraints": LIMITS,
    "nvmlDeviceGetMaxClockInfo": ("clock_max_mhz", "memory_gb_s"),
    "nvmlDeviceGetTemperatureThreshold": ("temp_slowdown_c", "temp_shutdown_c"),
    "nvmlDeviceGetCudaComputeCapability": ("compute_capability",),
    "nvmlDeviceGetMemoryBusWidth": ("memory_bus_bits", "memory_gb_s"),
    "nvmlDeviceGetNumGpuCores": ("n_cores",),
    "nvmlDeviceGetEccMode": ("ecc",),
    "nvmlDeviceGetMigMode": (),
    "nvmlDeviceGetDriverModel_v2": ("driver_model",),
    "nvmlSystemGetDriverVersion": ("driver", "limited_pct"),
    "nvmlSystemGetCudaDriverVersion_v2": ("cuda_version",),
    "nvmlDeviceGetUtilizationRates": ("busy_pct", "mem_busy_pct"),
    "nvmlDeviceGetMemoryInfo_v2": (
        "vram_total_bytes", "vram_used_bytes", "vram_free_bytes", "resizable_bar",
    ),
    "nvmlDeviceGetPowerUsage": ("power_w",),
    "nvmlDeviceGetEnforcedPowerLimit": ("power_limit_w",),
    "nvmlDeviceGetClockInfo": ("clock_mhz", "clock_memory_mhz"),
    "nvmlDeviceGetTemperatureV": ("temp_c",),
    "nvmlDeviceGetCurrentClocksEventReasons": ("throttle",),
    "nvmlDeviceGetMarginTemperature": ("temp_margin_c",),
    "nvmlDeviceGetFieldValues": ("temp_memory_c", "limited_pct"),
    "nvmlDeviceGetNumFans": ("n_fans", "fan_pct"),
    "nvmlDeviceGetFanSpeed_v2": ("fan_pct",),
    "nvmlDeviceGetFanSpeedRPM": ("fan_rpm",),
    "nvmlDeviceGetPowerMizerMode_v1": ("power_mizer",),
    "nvmlDeviceGetPowerSource": ("adapter",),
    "nvmlDeviceGetCurrPcieLinkGeneration": ("pcie_gen",),
    "nvmlDeviceGetCurrPcieLinkWidth": ("pcie_width",),
    "nvmlDeviceGetPersistenceMode": ("persistence",),
    "nvmlDeviceGetNvLinkState": ("n_nvlinks",),
    "nvmlDeviceGetTotalEnergyConsumption": ("energy_j",),
    "nvmlDeviceGetPcieThroughput": ("pcie_tx_bytes_s", "pcie_rx_bytes_s"),
    "nvmlDeviceGetTotalEccErrors": ("memory_errors",),
    "nvmlDeviceGetComputeRunningProcesses_v3": ("processes",),
    "nvmlDeviceGetGraphicsRunningProcesses_v3": ("processes",),
    "nvmlDeviceGetProcessUtilization": ("processes",),
}  # fmt: skip
"""Function of the library → the readings that may be others without it."""
SECOND_NAMES = {
    "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTemperatureV", "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetFanSpeed_v2", "nvmlDeviceGetNumFans",
}  # fmt: skip
"""Functions whose reading another call gives where they are not there."""
SEVERAL_SOURCES = {
    "nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlSystemGetDriverVersion",
    "nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetPowerManagementLimitConstraints",
    "nvmlDeviceGetFieldValues", "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetProcessUtilization",
}  # fmt: skip
"""Functions that give a part of a reading, or whose reading is known from elsewhere as well."""
POSSIBLE = (
    *("temp_margin_c", "n_nvlinks", "key", "processes", "limited_pct", "fan_pct"),
    *("power_limit_settable",),
)
"""Readings for which those bits stand for something, or that other calls give."""
SPLIT = {"nvmlDeviceGetMigMode": ("power_limit_settable",)}
"""A card that says it is split takes no limit."""
REASONS = {reason.value for reason in Absence}
CODES = {2: "error", 3: "not_supported", 10: "stale", 13: "symbol_missing", 17: "no_permission",
         25: "symbol_missing", 999: "error"}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Libraries of today and of 2021."""
    new, old = tmp_path_factory.mktemp("new"), tmp_path_factory.mktemp("old")
    return compiled(new), compiled(old, "-DOLD")


@pytest.fixture
def today(folders: tuple[Path, Path]) -> Iterator[StandIn]:
    """The library of today behind the binding."""
    with pytest.MonkeyPatch.context() as patch:
        yield StandIn(folders[0], patch)


def differing(said: dict[str, object]) -> set[str]:
    """Names of what is otherwise than on a healthy card."""
    shares = {name for name in ("limited_pct",) if not isinstance(said[name], dict)}
    return {name for name, value in SAID.items() if said[name] != value} | shares


def test_every_reading_passes_through_the_binding(today: StandIn) -> None:
    """Structures, versions, numbers of fields and units: each reading is the library's own."""
    said = today.readings()
    assert {name: said[name] for name in SAID} == SAID
    shares = said["limited_pct"]
    assert isinstance(shares, dict)
    assert set(shares) == {"sw_power_cap", "sw_thermal", "hw_thermal", "hw_power_brake"}
    assert today.library.stand_in_open() == 0


def test_a_library_of_2021_gives_what_it_has(folders: tuple[Path, Path]) -> None:
    """Second names answer; what came later is missing with that reason; nothing else suffers."""
    with pytest.MonkeyPatch.context() as patch:
        said = StandIn(folders[1], patch).readings()
    assert {name: said[name] for name in SAID} == SAID | OLDER
    assert set(said["limited_pct"]) == {"sw_power_cap", "sw_thermal"}  # type: ignore[call-overload]


@pytest.mark.parametrize("function", AFFECTS)
def test_a_call_that_fails_costs_its_own_reading(today: StandIn, function: str) -> None:
    """Whatever code it returns: its reading is that reason, the rest is as it was."""
    for code, reason in CODES.items():
        today.spoil(function, code)
        said = today.readings()
        assert differing(said) <= set(AFFECTS[function]), code
        if function not in SECOND_NAMES and function not in SEVERAL_SOURCES:
            assert {said[name] for name in AFFECTS[function]} <= {reason}, code


@pytest.mark.parametrize("function", AFFECTS)
def test_a_call_that_is_not_there_costs_its_own_reading(today: StandIn, function: str) -> None:
    """A driver without the function: a second name answers, or the reading is missing."""
    today.hide(function)
    said = today.readings()
    assert differing(said) <= set(AFFECTS[function])
    if function not in SECOND_NAMES and function not in SEVERAL_SOURCES:
        assert {said[name] for name in AFFECTS[function]} <= {"symbol_missing"}


@pytest.mark.parametrize("value", [2**64 - 1, 0x7FFFFFFF7FFFFFFF])
@pytest.mark.parametrize("function", AFFECTS)
def test_an_answer_of_rubbish_is_no_number(today: StandIn, function: str, value: int) -> None:
    """Sentinels in every member: the readings of this call are missing, and only they."""
    today.spoil(function, 0, value)
    said = today.readings()
    assert differing(said) <= {*AFFECTS[function], *SPLIT.get(function, ())}
    for name in set(AFFECTS[function]) - set(POSSIBLE):
        assert said[name] in REASONS, name
    programs = said["processes"]
    assert not isinstance(programs, tuple) or {p.pid for p in programs} <= {41, 42}


@pytest.mark.parametrize("code", [15, 16])
@pytest.mark.parametrize("function", ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetUtilizationRates"])
def test_a_card_that_leaves_is_lost_as_a_whole(today: StandIn, function: str, code: int) -> None:
    """No reading of a card that fell off its bus is believed."""
    today.spoil(function, code)
    said = today.readings()
    assert (said["busy_pct"], said["temp_c"], said["power_w"]) == ("lost", "lost", "lost")


def test_it_is_loaded_as_the_drivers_library_is(folders: tuple[Path, Path]) -> None:
    """In a program of its own, by the name the driver installs: started, asked and closed."""
    words = "import probes.nvml as n; d = n.LiveNvml(); print(d.start(), "
    words += "d.query('nvmlDeviceGetCount'), d.query('nvmlDeviceGetName', device='index:0'))"
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=True, cwd=ROOT,
        env=dict(os.environ, LD_LIBRARY_PATH=str(folders[0].parent)),
    )  # fmt: skip
    assert done.stdout.strip() == "None 1 NVIDIA GeForce RTX 5070"


@pytest.mark.skipif(sys.platform != "linux", reason="the loader of Linux")
def test_a_file_that_is_no_library_is_a_missing_one(tmp_path: Path) -> None:
    """A damaged installation of the driver is a reason, not a crash."""
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "import probes.nvml as n; print(n.LiveNvml().start())"],
        capture_output=True, text=True, check=True, cwd=ROOT,
        env=dict(os.environ, LD_LIBRARY_PATH=str(tmp_path)),
    )  # fmt: skip
    assert done.stdout.strip() == "lib_missing"
