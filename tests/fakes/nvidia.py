"""A scripted laptop card on a bus, and the NVIDIA probe on it."""

from collections.abc import Callable
from typing import Any

from app.domain.machine import GpuSample
from probes.nvidia import NvidiaProbe
from tests.fakes.probe import FakeNvml, FakeTree

BUS = "/sys/bus/pci/devices"
SECOND = 1_000_000_000
ANSWERS: dict[str, Any] = {
    "nvmlDeviceGetName": "NVIDIA GeForce RTX 4060 Laptop GPU",
    "nvmlDeviceGetUUID": "GPU-12345678-0000-0000-0000-000000000000",
    "nvmlDeviceGetUtilizationRates": {"gpu": 0, "memory": 0},
    "nvmlDeviceGetPowerUsage": 3500,
    "nvmlDeviceGetPcieThroughput": lambda counter, device: 250 + counter,
    "nvmlDeviceGetComputeRunningProcesses_v3": [{"pid": 7, "usedGpuMemory": 1 << 30}],
    "nvmlDeviceGetCount": 1,
}


def card(status: str = "active", control: str = "auto", bus_id: str = "0000:01:00.0") -> FakeTree:
    return FakeTree(
        {
            f"{BUS}/{bus_id}/class": "0x030200",
            f"{BUS}/{bus_id}/vendor": "0x10de",
            f"{BUS}/{bus_id}/uevent": "DRIVER=nvidia\nPCI_ID=10DE:28E0",
            f"{BUS}/{bus_id}/power/runtime_status": status,
            f"{BUS}/{bus_id}/power/control": control,
        }
    )


class Clock:
    """A clock that only moves when told."""

    def __init__(self) -> None:
        self.now_ns = SECOND

    def __call__(self) -> int:
        return self.now_ns


def probe_of(tree: FakeTree, nvml: FakeNvml, clock: Callable[[], int] | None = None) -> NvidiaProbe:
    return NvidiaProbe(tree, nvml, lambda pid: f"program{pid}", clock or Clock())


def only(samples: tuple[GpuSample, ...]) -> GpuSample:
    assert len(samples) == 1
    return samples[0]
