"""Machines of rare kinds, and files that no kernel should write: nothing breaks or is invented."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.advice.rule import Situation, name_of
from app.advice.rules import findings
from app.domain.machine import OWN_ENGINE, Gpu, GpuKind, PowerSource
from probes.reading import Absence
from probes.record import RecordedMachine
from probes.system import LiveSystem, SystemFacts
from probes.tree import FileTree
from probes.windows.facts import AdapterFacts, DeviceFacts
from probes.windows.recording import WindowsRecording
from tests.fakes.odd_machines import (
    BUS,
    GIB,
    LISTED,
    SIXTEEN,
    device,
    engine,
    nvml_card,
    on_bus,
    recorded,
    seen,
    sixteen,
)
from tests.fakes.windows import RADEON, RENDERER

FIRST, SECOND = "0000:01:00.0", "0000:02:00.0"
LAPTOP = "NVIDIA GeForce RTX 4080 Laptop GPU"


def ids(situation: Situation) -> set[str]:
    return {finding.id for finding in findings(situation)}


def the_gpu(situation: Situation) -> Gpu:
    (gpu,) = situation.machine.gpus
    return gpu


@pytest.mark.parametrize("pci_id", ["000f:01:00.0", "10000:01:00.0", "d2a1:00:00.0"])
def test_a_domain_of_any_length_is_one_address(pci_id: str) -> None:
    """Virtual and large machines use high PCI domains; NVML and engine write them otherwise."""
    files = on_bus(pci_id, "10de", "nvidia")
    listed = engine(device("CUDA0", "NVIDIA GeForce RTX 4060", pci_id=f"{pci_id:0>16}".upper()))
    situation = seen(recorded(files, nvml_card(pci_id)), listed)
    gpu = the_gpu(situation)
    assert [d.name for d in gpu.engine] == ["CUDA0"]
    assert situation.reading(gpu, "temp_c") == 45.0


def test_a_virtual_function_is_no_card() -> None:
    """Parts of a GPU made for virtual machines are not listed beside it."""
    files = on_bus("0000:00:02.0", "8086", "i915", card="card0")
    files |= on_bus("0000:00:02.1", "8086", "vfio-pci", physfn__vendor="0x8086")
    assert the_gpu(seen(recorded(files))).key == "0000:00:02.0"
    guest = seen(recorded(on_bus("0000:00:02.1", "8086", "i915", card="card0")))
    assert the_gpu(guest).info is not None
    assert [d.kind for d in (the_gpu(guest).info,) if d is not None] == [GpuKind.INTEGRATED]


def test_a_card_given_to_a_guest_needs_no_driver() -> None:
    """Bound to vfio-pci it is not broken: it belongs to a virtual machine."""
    found = ids(seen(recorded(on_bus(FIRST, "10de", "vfio-pci")), engine()))
    assert "given_to_guest" in found
    assert not found & {"no_nvidia_driver", "engine_sees_no_gpu", "cuda_without_card"}


def test_cuda_that_lists_no_card_is_no_matter_of_the_build() -> None:
    """The backend is there and the driver too: a restart or update helps, not another engine."""
    files = on_bus(FIRST, "10de", "nvidia")
    found = ids(seen(recorded(files, nvml_card(FIRST)), engine()))
    assert "cuda_without_card" in found
    assert "engine_sees_no_gpu" not in found
    vulkan = engine(backends=("Vulkan",))
    assert "engine_sees_no_gpu" in ids(seen(recorded(files, nvml_card(FIRST)), vulkan))


UHD = device("Vulkan0", "Intel(R) UHD Graphics", kind=GpuKind.INTEGRATED, pci_id="0000:00:02.0")


@pytest.mark.parametrize(
    ("driver", "answers", "start"),
    [
        ("nouveau", None, "lib_missing"),
        (None, {}, "driver_not_loaded"),
        ("nvidia", dict.fromkeys(nvml_card(FIRST), "!lost"), None),
        ("nvidia", dict.fromkeys(nvml_card(FIRST), "!no_power"), None),
    ],
)
def test_a_card_that_does_not_run_is_not_the_one_in_use(
    driver: str | None, answers: dict[str, Any] | None, start: str | None
) -> None:
    """Its driver is what is missing: neither is it used, nor would another engine help."""
    files = on_bus("0000:00:02.0", "8086", "i915", card="card1") | on_bus(FIRST, "10de", driver)
    found = ids(seen(recorded(files, answers, nvml_start=start), engine(UHD)))
    assert found & {"no_nvidia_driver", "gpu_lost", "no_power_plug"}
    assert not found & {"hybrid", "engine_sees_no_gpu", "cuda_without_card"}


@pytest.mark.parametrize(("vendor", "product"), [("1002", "744c"), ("8086", "56a0")])
def test_a_card_of_any_maker_without_driver_needs_a_driver(vendor: str, product: str) -> None:
    """Another engine build would not help where the kernel drives the card with nothing."""
    files = on_bus(SECOND, vendor, None, device=product)
    found = ids(seen(recorded(files), engine()))
    assert "no_driver" in found
    assert not found & {"engine_sees_no_gpu", "no_gpu"}


def test_a_processors_gpu_without_driver_beside_a_card_is_no_matter() -> None:
    """It would not be used anyway."""
    files = on_bus("0000:00:02.0", "8086", None) | on_bus(SECOND, "1002", "amdgpu", device="744c")
    listed = engine(device("Vulkan0", "AMD Radeon RX 7900 XTX", pci_id=SECOND))
    assert "no_driver" not in ids(seen(recorded(files), listed))


def test_a_tunnels_link_is_no_speed() -> None:
    """Thunderbolt's bridges call themselves Gen 1: nothing is said of an external card's link."""
    hop = "/sys/bus/pci/devices/0000:3c:01.0"
    files = on_bus("0000:3f:00.0", "1002", "amdgpu", device="744c", removable="removable")
    files |= {f"{hop}/max_link_speed": "2.5 GT/s PCIe", f"{hop}/max_link_width": "4"}
    links = {f"{BUS}/0000:3f:00.0": "/sys/devices/pci0000:00/0000:3c:01.0/0000:3f:00.0"}
    box = the_gpu(seen(msgspec.structs.replace(recorded(files), links=links))).info
    assert box is not None
    assert box.external is True
    assert (box.pcie_gen_max, box.pcie_width_max) == (None, None)


def test_of_two_cards_the_one_the_engine_lists_is_called_used() -> None:
    """A laptop's card without driver beside an external one that runs: the latter is named."""
    files = on_bus("0000:00:02.0", "8086", "i915", card="card1")
    files |= on_bus(FIRST, "10de", "nvidia") | on_bus(SECOND, "1002", "amdgpu", device="744c")
    radeon = device("Vulkan1", "AMD Radeon RX 7900 XTX", pci_id=SECOND)
    situation = seen(recorded(files, nvml_start="lib_missing"), engine(UHD, radeon))
    (hybrid,) = (f for f in findings(situation) if f.id == "hybrid")
    assert hybrid.evidence["device"] == "Vulkan1"


def test_several_cards_under_wsl_are_told_apart() -> None:
    """No bus is visible there: NVML counts, and its addresses join the engine's names."""
    files = {"/proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2"}
    answers: dict[str, Any] = {"nvmlDeviceGetCount()@system": 2}
    for index, pci_id in enumerate((FIRST, SECOND)):
        for name, value in nvml_card(pci_id).items():
            answers[f"{name.split('@')[0]}@index:{index}"] = value
        answers[f"nvmlDeviceGetPciInfo()@index:{index}"] = {"busId": f"0000{pci_id}"}
    listed = engine(
        device("CUDA0", "NVIDIA GeForce RTX 4060", pci_id=FIRST),
        device("CUDA1", "NVIDIA GeForce RTX 4060", pci_id=SECOND),
    )
    situation = seen(recorded(files, answers), listed)
    assert [[d.name for d in g.engine] for g in situation.machine.gpus] == [["CUDA0"], ["CUDA1"]]
    assert "in_wsl" in ids(situation)
    assert "driver_mismatch" not in ids(situation)


@pytest.mark.parametrize("status", ["Charging", "Full", "Not charging", "Unknown", ""])
def test_a_desktops_ups_is_no_battery_of_a_laptop(status: str) -> None:
    """A supply of type UPS neither makes a laptop of a desktop nor stops a search."""
    files = {
        "/sys/class/power_supply/hid-ups/type": "UPS",
        "/sys/class/power_supply/hid-ups/status": status,
        "/sys/class/dmi/id/chassis_type": "3",
    }
    host = seen(recorded(files)).machine.host
    assert (host.power_source, host.is_laptop) == (PowerSource.AC, False)


def test_a_laptop_without_its_battery_runs_on_the_mains() -> None:
    """A removed battery leaves the adapter; the chassis still says laptop."""
    files = {
        "/sys/class/power_supply/AC/type": "Mains",
        "/sys/class/power_supply/AC/online": "1",
        "/sys/class/dmi/id/chassis_type": "10",
    }
    host = seen(recorded(files)).machine.host
    assert (host.power_source, host.is_laptop) == (PowerSource.AC, True)


def test_windows_without_a_battery_runs_on_the_mains() -> None:
    """A desktop's power source is known there, and a UPS does not make it a laptop."""
    chassis = bytes([3, 9, 0, 0, 1, 0x80 | 3, 0, 0, 0]) + b"\0\0"
    windows = WindowsRecording(
        adapters="not_supported",
        devices="not_supported",
        counters="not_supported",
        resets="not_supported",
        cores="not_supported",
        features="not_supported",
        firmware=chassis.hex(),
    )
    plain = seen(recorded(windows=windows, os="windows")).machine.host
    assert plain.power_source is PowerSource.AC
    ups = seen(recorded(windows=windows, os="windows", plugged=True, battery_pct=100.0))
    assert ups.machine.host.is_laptop is False


def test_windows_twins_without_addresses_are_not_called_undriven() -> None:
    """Two adapters of one name that cannot be told apart: that is said, and nothing false."""
    answers: dict[str, Any] = {"nvmlDeviceGetCount()@system": 2}
    for index, pci_id in enumerate((FIRST, SECOND)):
        card = nvml_card(pci_id, nvmlDeviceGetPciInfo={"busId": f"0000{pci_id}"})
        answers |= {f"{name.split('@')[0]}@index:{index}": v for name, v in card.items()}
    twins = tuple(
        AdapterFacts(
            description="NVIDIA GeForce RTX 4060", vendor_id=0x10DE, device_id=0x2882,
            luid=f"00000000:0000000{n}", dedicated_bytes=8 * GIB,
        )
        for n in (1, 2)
    )  # fmt: skip
    listed = engine(
        device("CUDA0", "NVIDIA GeForce RTX 4060", pci_id=FIRST),
        device("CUDA1", "NVIDIA GeForce RTX 4060", pci_id=SECOND),
    )
    windows = WindowsRecording(adapters=twins)
    situation = seen(recorded(nvml=answers, windows=windows, os="windows"), listed)
    told = [(len(gpu.engine), gpu.unmatched) for gpu in situation.machine.gpus]
    assert sorted(told, key=str) == [(0, "ambiguous_name")] * 2 + [(1, None)] * 2
    assert not ids(situation) & {"no_nvidia_driver", "engine_sees_no_gpu", "cuda_without_card"}


@pytest.mark.parametrize(
    ("problem", "version"), [(28, None), (43, "32.0.15.6636"), (0, "10.0.22621.1")]
)
def test_a_card_that_windows_has_no_driver_for_is_shown(problem: int, version: str | None) -> None:
    """Graphics interfaces list driven cards only; the device manager knows the other ones."""
    undriven = DeviceFacts(
        instance_id=r"PCI\VEN_10DE&DEV_2882&SUBSYS_1&REV_A1\X", bus=1, address=0,
        problem=problem, driver_version=version,
    )  # fmt: skip
    for adapters in ((RENDERER,), (RENDERER, RADEON)):
        windows = WindowsRecording(adapters=adapters, devices=(undriven,))
        situation = seen(recorded(windows=windows, os="windows"), engine())
        (reading,) = situation.samples[FIRST]
        assert reading.missing["busy_pct"] == "driver_not_loaded"
        assert "no_nvidia_driver" in ids(situation)
        assert "no_gpu" not in ids(situation)


def test_a_card_that_windows_drives_is_no_second_one() -> None:
    """An adapter and its device are one, with and without an address."""
    driven = DeviceFacts(
        instance_id=r"PCI\VEN_1002&DEV_7480&SUBSYS_1&REV_A1\X", bus=3, address=0, problem=0
    )
    for adapter in (RADEON, msgspec.structs.replace(RADEON, address=None)):
        windows = WindowsRecording(adapters=(adapter,), devices=(driven,))
        (gpu,) = seen(recorded(windows=windows, os="windows")).machine.gpus
        assert gpu.key == "0000:03:00.0"


def test_a_system_that_is_none_of_ours_is_shown() -> None:
    """Neither Linux nor Windows: no card is seen, no reading invented, the engine's word counts."""
    listed = engine(
        device("Metal0", "Apple M3", kind=GpuKind.INTEGRATED, total=12 * GIB), backends=("Metal",)
    )
    situation = seen(recorded(os="darwin", os_version="24.1"), listed)
    assert [g.engine[0].name for g in situation.machine.gpus] == ["Metal0"]
    assert situation.machine.host.power_source is PowerSource.UNKNOWN


# --- files of a real folder ---------------------------------------------------------------------


def test_files_that_are_cut_off_or_no_text_break_nothing(tmp_path: Path) -> None:
    """Truncated, empty, binary, endless and circular files give a reason, never an exception."""
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00\x80 12")
    (tmp_path / "long").write_bytes(b"9" * (1 << 20))
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    tree = FileTree(tmp_path)
    assert tree.text("/empty") == ""
    assert isinstance(tree.text("/bytes"), str)
    assert len(str(tree.text("/long"))) <= 256 * 1024
    assert isinstance(tree.text("/circle"), Absence)
    assert isinstance(tree.text("/gone"), Absence)
    assert tree.names("/long") == ()
    assert tree.target("/circle").startswith("/")


def test_a_programs_name_that_is_no_text_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of programs are bytes on Linux: any byte is allowed."""

    class Program:
        def __init__(self, pid: int) -> None:
            self.pid = pid

        def ppid(self) -> int:
            return 1

        def name(self) -> str:
            return b"llama-\xff\xfe".decode("utf-8", "surrogateescape")

    monkeypatch.setattr("probes.system.psutil.Process", Program)
    name = LiveSystem().process_name(2**22)
    assert name is not None
    assert name.encode("utf-8").startswith(b"llama-")


def test_the_system_facts_of_a_bare_machine_are_enough() -> None:
    """Nothing but the system's name: every field is absent with a reason, none is wrong."""
    bare = RecordedMachine(system=SystemFacts(os="linux"), nvml_start="lib_missing")
    host = seen(bare).machine.host
    assert host.cores_logical is None
    assert host.missing["cores_logical"] == "no_data"


def test_what_rigtune_started_is_called_by_its_purpose() -> None:
    """A worker is no "python" that somebody might be told to close."""
    assert LiveSystem().process_name(os.getpid()) == OWN_ENGINE
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        name = LiveSystem().process_name(child.pid)
        child.communicate(b"\n")
    assert name == OWN_ENGINE


def test_two_cards_that_say_nothing_of_themselves_stay_two() -> None:
    """Neither name nor identity nor address: the driver's own numbers keep them apart."""
    answers: dict[str, Any] = {"nvmlDeviceGetCount()@system": 2}
    for index in (0, 1):
        answers[f"nvmlDeviceGetTemperatureV(0)@index:{index}"] = 40 + index
    situation = seen(recorded({}, answers))
    temperatures = [situation.reading(gpu, "temp_c") for gpu in situation.machine.gpus]
    assert temperatures == [40.0, 41.0]
    assert "None" not in " ".join(name_of(gpu) for gpu in situation.machine.gpus)


def test_sixteen_cards_are_sixteen_cards() -> None:
    """Each has one name of the engine and its own reading; advice names equal ones once."""
    situation = seen(sixteen(), LISTED)
    names = {gpu.info.pci_id: gpu.engine[0].name for gpu in situation.machine.gpus if gpu.info}
    assert names == {pci_id: f"CUDA{n}" for n, pci_id in enumerate(SIXTEEN)}
    assert all(situation.reading(gpu, "temp_c") == 45.0 for gpu in situation.machine.gpus)
    found = findings(situation)
    assert len(found) == len({finding.id for finding in found}) <= 4
    assert "equal_cards" in {finding.id for finding in found}
