"""Machines in a few words, played through the recorder's door: bus, NVML and engine together."""

from typing import Any

import msgspec

from app.advice.rule import Situation
from app.domain.machine import EngineDevice, EngineInfo, GpuInfo, GpuKind, GpuSample, HostInfo
from app.machine import aliases, join_machine
from probes import registry
from probes.record import RecordedMachine
from probes.replay import RecordedNvml, RecordedSystem, RecordedTree
from probes.system import SystemFacts
from probes.windows.recording import RecordedWindows, WindowsRecording

BUS = "/sys/bus/pci/devices"
GIB = 1 << 30
SYSTEM = SystemFacts(
    os="linux",
    os_version="6.14.0",
    cpu_name="x86_64",
    allowed_cpus=tuple(range(8)),
    cores_physical=4,
    ram_bytes=32 * GIB,
    ram_available_bytes=24 * GIB,
    swap_bytes=0,
    swap_used_bytes=0,
)


def on_bus(
    pci_id: str,
    vendor: str,
    driver: str | None,
    *,
    device: str = "0001",
    card: str | None = None,
    **files: str,
) -> dict[str, str]:
    """Files of one display device; ``files`` are further names below it (``__`` for ``/``)."""
    path = f"{BUS}/{pci_id}"
    bound = f"DRIVER={driver}\n" if driver else ""
    found = {
        f"{path}/class": "0x030000",
        f"{path}/vendor": f"0x{vendor}",
        f"{path}/uevent": f"{bound}PCI_ID={vendor.upper()}:{device.upper()}",
        f"{path}/power/runtime_status": "active",
    }
    if card is not None:
        found[f"{path}/drm/{card}/uevent"] = ""
    return found | {f"{path}/{name.replace('__', '/')}": text for name, text in files.items()}


def nvml_card(pci_id: str, **answers: Any) -> dict[str, Any]:
    """NVML's answers about one card: a healthy 8 GiB one, with ``answers`` by function changed."""
    device = f"pci:{pci_id:0>16}"
    values: dict[str, Any] = {
        "nvmlDeviceGetName()": "NVIDIA GeForce RTX 4060",
        "nvmlDeviceGetUUID()": f"GPU-{pci_id}",
        "nvmlDeviceGetUtilizationRates()": {"gpu": 5, "memory": 3},
        "nvmlDeviceGetMemoryInfo(33554472)": {
            "total": 8 * GIB, "free": 7 * GIB, "used": GIB, "reserved": 0,
        },
        "nvmlDeviceGetTemperatureV(0)": 45,
        "nvmlDeviceGetPowerUsage()": 30_000,
        "nvmlDeviceGetEnforcedPowerLimit()": 115_000,
        "nvmlDeviceGetPowerManagementLimit()": 115_000,
        "nvmlDeviceGetPowerManagementLimitConstraints()": [60_000, 130_000],
        "nvmlDeviceGetPowerManagementDefaultLimit()": 115_000,
        "nvmlDeviceGetComputeRunningProcesses_v3()": [],
        "nvmlDeviceGetCurrentClocksEventReasons()": 0,
    }  # fmt: skip
    values |= {name if "(" in name else f"{name}()": value for name, value in answers.items()}
    return {f"{name}@{device}": value for name, value in values.items()}


def recorded(
    files: dict[str, str] | None = None,
    nvml: dict[str, Any] | None = None,
    *,
    nvml_start: str | None = None,
    windows: WindowsRecording | None = None,
    **system: Any,
) -> RecordedMachine:
    """A recording of these files and answers; folders follow from the files."""
    known = files or {}
    folders: dict[str, set[str]] = {}
    for file in known:
        parts = file.strip("/").split("/")
        for depth in range(len(parts)):
            folders.setdefault("/" + "/".join(parts[:depth]), set()).add(parts[depth])
    start = nvml_start if nvml is not None else nvml_start or "lib_missing"
    versions = {
        "nvmlSystemGetDriverVersion()@system": "580.95.05",
        "nvmlSystemGetCudaDriverVersion_v2()@system": 13000,
    }
    return RecordedMachine(
        system=msgspec.structs.replace(SYSTEM, **system),
        files=known,
        folders={name: tuple(sorted(below)) for name, below in folders.items()},
        nvml_start=start,
        nvml=versions | (nvml or {}),
        windows=windows,
    )


def engine(*devices: EngineDevice, backends: tuple[str, ...] = ("CUDA", "Vulkan")) -> EngineInfo:
    """An engine with these devices."""
    return EngineInfo(
        version="1",
        llama_version="1",
        backends=("CPU", *backends),
        devices=devices,
        supports_offload=True,
    )


def device(
    name: str,
    description: str,
    *,
    kind: GpuKind = GpuKind.DISCRETE,
    pci_id: str | None = None,
    total: int | None = 8 * GIB,
    free: int | None = 7 * GIB,
) -> EngineDevice:
    """One device as an engine lists it."""
    backend = name.rstrip("0123456789")
    return EngineDevice(
        name=name,
        backend=backend,
        description=description,
        kind=kind,
        total_bytes=total,
        free_bytes=free,
        pci_id=pci_id,
    )


def seen(machine: RecordedMachine, build: EngineInfo | None = None) -> Situation:
    """What advice sees of it: every probe asked for identity and two readings."""
    doors = registry.Doors(
        RecordedTree(machine),
        RecordedNvml(machine),
        RecordedSystem(machine),
        RecordedWindows(machine.windows),
    )
    probes = registry.build(doors)
    host: HostInfo = probes.host.identify()
    infos: list[GpuInfo] = []
    read: list[GpuSample] = []
    for probe in probes.gpus:
        infos += probe.identify()
        probe.sample()
        read += probe.sample()
        probe.close()
    joined = join_machine(host, infos, build)
    joined = msgspec.structs.replace(joined, unavailable=probes.unavailable)
    names = aliases(joined)
    samples: dict[str, tuple[GpuSample, ...]] = {}
    for sample in read:
        key = names.get(sample.key, sample.key)
        samples[key] = (*samples.get(key, ()), sample)
    return Situation(machine=joined, samples=samples, host_sample=probes.host.sample())


def sixteen() -> RecordedMachine:
    """A server with sixteen equal cards on two memory nodes."""
    files: dict[str, str] = {}
    nvml: dict[str, Any] = {}
    for pci_id in SIXTEEN:
        files |= on_bus(pci_id, "10de", "nvidia", numa_node=str(int(pci_id[5:7], 16) // 0x80))
        nvml |= nvml_card(
            pci_id, nvmlDeviceGetDisplayActive=0, nvmlDeviceGetPersistenceMode=0,
            nvmlDeviceGetName="NVIDIA H100 80GB HBM3",
        )  # fmt: skip
    return recorded(files, nvml)


SIXTEEN = [f"0000:{bus:02x}:00.0" for bus in range(0x08, 0x108, 0x10)]
LISTED = engine(
    *(
        device(f"CUDA{n}", "NVIDIA H100 80GB HBM3", pci_id=pci_id)
        for n, pci_id in enumerate(SIXTEEN)
    )
)
