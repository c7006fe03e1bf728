"""Joins what probes and engine say of the same GPU, and judges the memory it has to give.

Pure. Orders differ between NVML, CUDA, Vulkan and the kernel, so devices are matched by
identity, never by index: PCI address first, then a name that fits one card only.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from app.domain.machine import (
    EngineDevice,
    EngineInfo,
    Gpu,
    GpuInfo,
    GpuKind,
    HostInfo,
    Machine,
)
from app.domain.sweep import SearchDevice

BACKEND_RANK = ("CUDA", "ROCm", "HIP", "SYCL", "Metal", "Vulkan", "OpenCL", "RPC")
"""Best first, for the same card."""
KIND_RANK = (
    GpuKind.DISCRETE,
    GpuKind.UNKNOWN,
    GpuKind.INTEGRATED,
    GpuKind.REMOTE,
    GpuKind.SOFTWARE,
)
RASTERISERS = ("llvmpipe", "lavapipe", "softpipe", "swiftshader", "basic render")
VENDOR_WORDS = {
    "nvidia": ("nvidia", "geforce", "quadro", "tesla", "rtx", "gtx"),
    "amd": ("amd", "radeon", "radv", "gfx"),
    "intel": ("intel", "arc", "iris", "uhd"),
}
PCI = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$")
NOISE = {"nvidia", "amd", "intel", "corporation", "graphics", "geforce", "radeon", "gpu", "series"}
"""Words that drivers add to or leave out of the same model's name."""
CARVE_OUT_FRAC = 0.5
"""Share of the largest backend's memory below which a backend sees only a carve-out."""
TOTAL_SLACK = 1.02
"""Two sources may differ by rounding and reserve; beyond that the larger one is wrong."""


def join_machine(
    host: HostInfo, infos: Iterable[GpuInfo], engine: EngineInfo | None = None
) -> Machine:
    """Return the machine with each physical GPU once.

    Args:
        host: What the host is.
        infos: What every probe says, the more precise probe first.
        engine: The llama.cpp build and its devices; ``None`` while it has not been asked.
    """
    devices = [flagged(device) for device in engine.devices] if engine is not None else []
    gpus = _join(merge_infos(infos), devices)
    if engine is not None:
        engine = msgspec.structs.replace(engine, devices=tuple(devices))
    ordered = sorted(gpus, key=lambda gpu: KIND_RANK.index(kind_of(gpu)))
    return Machine(host=host, gpus=tuple(ordered), engine=engine)


def aliases(machine: Machine) -> dict[str, str]:
    """Return every name a probe may use for a GPU → the GPU's key (for ``Telemetry``)."""
    names: dict[str, str] = {}
    for gpu in machine.gpus:
        info = gpu.info
        for name in (info.uuid, info.pci_id, info.vulkan_uuid) if info is not None else ():
            if name is not None:
                names[name] = gpu.key
        for device in gpu.engine:
            names[device.name] = gpu.key
    return names


def kind_of(gpu: Gpu) -> GpuKind:
    """Return what a GPU is: the kernel knows a card better than the engine's flag does."""
    kinds = [device.kind for device in gpu.engine]
    for telling in (GpuKind.SOFTWARE, GpuKind.REMOTE):
        if telling in kinds:
            return telling
    if gpu.info is not None and gpu.info.kind is not GpuKind.UNKNOWN:
        return gpu.info.kind
    return kinds[0] if kinds else GpuKind.UNKNOWN


def search_devices(machine: Machine) -> tuple[SearchDevice, ...]:
    """Return the devices a search may use, the best first, one engine name per GPU.

    A device that rasterises on the CPU is never offered beside a real one; alone, it is
    offered with its kind, so that the search can show why no layer belongs there.
    """
    found = [d for gpu in machine.gpus if (d := _search_device(gpu, machine.host)) is not None]
    real = tuple(d for d in found if d.kind != GpuKind.SOFTWARE.value)
    return real or tuple(found)


def judged_memory(gpu: Gpu, device: EngineDevice, host: HostInfo) -> tuple[int, int] | None:
    """Return total and free bytes that can be believed; ``None`` when the total is unknown.

    Free never exceeds total. A card's total is the smaller of two sources that disagree (tools
    have added the BAR to it). A GPU inside the processor shares RAM: its own "VRAM" is only
    the firmware's carve-out, and what it can get is bounded by the RAM that is available.
    """
    probed = gpu.info.vram_total_bytes if gpu.info is not None else None
    total = device.total_bytes or probed
    if total is None:
        return None
    free = total if device.free_bytes is None else device.free_bytes
    if kind_of(gpu) is GpuKind.INTEGRATED:
        carve_out = probed or 0
        if host.ram_bytes is not None:
            total = min(total, host.ram_bytes + carve_out)
        if host.ram_available_bytes is not None:
            free = min(free, host.ram_available_bytes + carve_out)
    elif probed is not None and total > probed * TOTAL_SLACK:
        total = probed
    return total, max(0, min(free, total))


def merge_infos(infos: Iterable[GpuInfo]) -> list[GpuInfo]:
    """Return one record per physical GPU; the first probe that knows a field wins."""
    merged: list[GpuInfo] = []
    for info in infos:
        same = next((i for i, other in enumerate(merged) if _same(info, other)), None)
        if same is None:
            merged.append(info)
        else:
            merged[same] = _merged(merged[same], info)
    return merged


def flagged(device: EngineDevice) -> EngineDevice:
    """Return an engine device with its true kind and a free memory that is possible."""
    kind = device.kind
    if any(word in device.description.lower() for word in RASTERISERS):
        kind = GpuKind.SOFTWARE
    elif device.endpoint is not None:
        kind = GpuKind.REMOTE
    free, total = device.free_bytes, device.total_bytes
    if free is not None:
        free = None if free < 0 else min(free, total) if total is not None else free
    return msgspec.structs.replace(device, kind=kind, free_bytes=free)


def _join(infos: list[GpuInfo], devices: Sequence[EngineDevice]) -> list[Gpu]:
    matched: dict[int, list[EngineDevice]] = {i: [] for i in range(len(infos))}
    own: list[Gpu] = []
    for device in devices:
        where, reason = _match(device, infos, devices)
        if where is not None:
            matched[where].append(device)
        else:
            own.append(_own(device, reason, own))
    joined = [
        Gpu(key=info.key, info=info, engine=best_first(matched[i], info.kind))
        for i, info in enumerate(infos)
    ]
    return joined + _by_address(own)


def _match(
    device: EngineDevice, infos: list[GpuInfo], devices: Sequence[EngineDevice]
) -> tuple[int | None, str | None]:
    """Return which GPU a device is, or why none."""
    if device.kind in {GpuKind.SOFTWARE, GpuKind.REMOTE} or not infos:
        return None, None
    address = pci_of(device.pci_id)
    if address is not None:
        by_pci = [i for i, info in enumerate(infos) if pci_of(info.pci_id) == address]
        # An address that no probe knows is a card that the probes cannot see.
        known = by_pci or [i for i, info in enumerate(infos) if info.pci_id is None]
        if by_pci or not known:
            return (by_pci[0], None) if by_pci else (None, "no_probe_sees_it")
    fits = [i for i, info in enumerate(infos) if _names_fit(info, device)]
    twins = [d for d in devices if d.backend == device.backend and _fits_any(d, infos, fits)]
    if not fits:
        return None, "no_probe_sees_it"
    return (fits[0], None) if len(fits) == 1 and len(twins) == 1 else (None, "ambiguous_name")


def _own(device: EngineDevice, reason: str | None, others: list[Gpu]) -> Gpu:
    """Return a GPU that only the engine sees."""
    key = pci_of(device.pci_id) or f"{device.backend}:{device.endpoint or device.description}"
    taken = {gpu.key for gpu in others}
    if key in taken and pci_of(device.pci_id) is None:
        # One server may offer several devices under one address.
        key = f"{key}:{device.name}"
    return Gpu(key=key, engine=(device,), unmatched=reason)


def _by_address(gpus: list[Gpu]) -> list[Gpu]:
    """Join the names that several backends give to a card no probe sees."""
    joined: dict[str, Gpu] = {}
    for gpu in gpus:
        first = joined.get(gpu.key)
        if first is not None:
            engine = best_first([*first.engine, *gpu.engine], gpu.engine[0].kind)
            joined[gpu.key] = msgspec.structs.replace(first, engine=engine)
        else:
            joined[gpu.key] = gpu
    return list(joined.values())


def best_first(devices: Sequence[EngineDevice], kind: GpuKind) -> tuple[EngineDevice, ...]:
    """Return the engine's names for one card, the one to use first.

    Inside a processor ROCm may see only the firmware's carve-out where Vulkan sees all of the
    shared memory; such a name goes last.
    """
    largest = max((d.total_bytes or 0 for d in devices), default=0)

    def rank(device: EngineDevice) -> tuple[bool, int, str]:
        carve_out = (device.total_bytes or 0) < largest * CARVE_OUT_FRAC
        place = (
            BACKEND_RANK.index(device.backend)
            if device.backend in BACKEND_RANK
            else len(BACKEND_RANK)
        )
        return kind is GpuKind.INTEGRATED and carve_out, place, device.name

    return tuple(sorted(devices, key=rank))


def pci_of(text: str | None) -> str | None:
    """Return a PCI address with four-digit domain, lower case; ``None`` if it is not one."""
    match = PCI.match(text.strip().lower()) if text else None
    return f"{int(match[1] or '0', 16):04x}:{match[2]}" if match else None


def _search_device(gpu: Gpu, host: HostInfo) -> SearchDevice | None:
    if not gpu.engine:
        return None
    device = gpu.engine[0]
    memory = judged_memory(gpu, device, host)
    if memory is None:
        return None
    return SearchDevice(
        id=device.name,
        kind=kind_of(gpu).value,
        backend=device.backend,
        total_bytes=memory[0],
        free_bytes=memory[1],
    )


def _same(one: GpuInfo, other: GpuInfo) -> bool:
    if one.uuid and other.uuid:
        return one.uuid == other.uuid
    address = pci_of(one.pci_id)
    if address is not None and address == pci_of(other.pci_id):
        return True
    return one.vulkan_uuid is not None and one.vulkan_uuid == other.vulkan_uuid


def _merged(first: GpuInfo, second: GpuInfo) -> GpuInfo:
    changes: dict[str, object] = {}
    for name in first.__struct_fields__:
        known = getattr(first, name)
        if name not in {"probe", "missing"} and known in {None, GpuKind.UNKNOWN}:
            changes[name] = getattr(second, name)
    # One source that sees a display is enough: a probe may not see every connector.
    changes["drives_display"] = _either(first.drives_display, second.drives_display)
    missing = {
        name: reason
        for name, reason in first.missing.items()
        if changes.get(name, getattr(first, name, None)) is None
    }
    return msgspec.structs.replace(first, missing=missing, **changes)


def _either(one: bool | None, other: bool | None) -> bool | None:  # noqa: FBT001 - two readings
    return None if one is None and other is None else bool(one) or bool(other)


def _names_fit(info: GpuInfo, device: EngineDevice) -> bool:
    if info.name is not None:
        return bool(_words(info.name)) and _words(info.name) == _words(device.description)
    # The kernel has no marketing names: only the vendor is known.
    said = set(re.findall(r"[a-z]+", device.description.lower()))
    return bool(said.intersection(VENDOR_WORDS.get(info.vendor or "", ())))


def _fits_any(device: EngineDevice, infos: list[GpuInfo], which: list[int]) -> bool:
    return any(_names_fit(infos[i], device) for i in which)


def _words(name: str) -> frozenset[str]:
    # "(RADV NAVI31)", "(TM)" and "(nvgpu)" do not name the model; "Ti" and "Laptop" do.
    plain = re.sub(r"\([^)]*\)", " ", name.lower())
    return frozenset(re.findall(r"[a-z0-9]+", plain)) - NOISE
