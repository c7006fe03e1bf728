"""The engine's devices of a GPU: kind, order, and the memory that can be believed."""

from collections.abc import Mapping, Sequence

import msgspec

from app.domain.machine import MAX_MEMORY_BYTES, EngineDevice, Gpu, GpuKind, HostInfo, Machine
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
PLACED_BYTES = 64 << 20
"""Less than this may be any program's doing."""
NOTICED_BYTES = 256 << 20
"""A load of more than this shows on a card, whatever else gives memory back meanwhile."""
RASTERISERS = ("llvmpipe", "lavapipe", "softpipe", "swiftshader", "basic render")
CARVE_OUT_FRAC = 0.5
"""Share of the largest backend's memory below which a backend sees only a carve-out."""
TOTAL_SLACK = 1.02
"""Two sources may differ by rounding and reserve; beyond that the larger one is wrong."""


def kind_of(gpu: Gpu) -> GpuKind:
    """Return what a GPU is: the kernel knows a card better than the engine's flag does."""
    kinds = [device.kind for device in gpu.engine]
    for telling in (GpuKind.SOFTWARE, GpuKind.REMOTE):
        if telling in kinds:
            return telling
    if gpu.info is not None and gpu.info.kind is not GpuKind.UNKNOWN:
        return gpu.info.kind
    return kinds[0] if kinds else GpuKind.UNKNOWN


def rank_of(gpu: Gpu) -> tuple[int, int]:
    """Return the place of a GPU: cards before parts of processors, the larger first."""
    probed = gpu.info.vram_total_bytes if gpu.info is not None else None
    total = max([d.total_bytes or 0 for d in gpu.engine], default=probed or 0)
    return KIND_RANK.index(kind_of(gpu)), -total


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


def flagged(device: EngineDevice) -> EngineDevice:
    """Return an engine device with its true kind and memory figures that are possible."""
    kind = device.kind
    if any(word in device.description.lower() for word in RASTERISERS):
        kind = GpuKind.SOFTWARE
    elif device.endpoint is not None:
        kind = GpuKind.REMOTE
    free, total = _possible(device.free_bytes), _possible(device.total_bytes)
    if free is not None and total is not None:
        free = min(free, total)
    return msgspec.structs.replace(device, kind=kind, free_bytes=free, total_bytes=total)


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
    # Nothing free of nothing at all is an engine that does not know.
    told = device.free_bytes if device.total_bytes != 0 else None
    free = total if told is None else told
    if kind_of(gpu) is GpuKind.INTEGRATED:
        carve_out = probed or 0
        if host.ram_bytes is not None:
            total = min(total, host.ram_bytes + carve_out)
        if host.ram_available_bytes is not None:
            free = min(free, host.ram_available_bytes + carve_out)
    elif probed is not None and total > probed * TOTAL_SLACK:
        total = probed
    return total, max(0, min(free, total))


def placement(
    machine: Machine, devices: Sequence[str], growth: Mapping[str, int]
) -> tuple[Gpu | None, int]:
    """Return the GPU on which memory rose although it was not asked, and the rise in bytes.

    ``None`` when all is where it should be, or nothing can be said (no readings).

    Args:
        machine: The machine.
        devices: Engine devices that were asked to hold the model.
        growth: GPU key → growth of its memory while the model was loaded.
    """
    asked = _asked(machine, devices)
    on_asked = sum(growth.get(key, 0) for key in asked)
    for gpu in machine.gpus:
        rise = growth.get(gpu.key, 0)
        if gpu.key not in asked and asked & set(growth) and rise > max(on_asked, PLACED_BYTES):
            return gpu, rise
    return None, on_asked


def stayed_empty(
    machine: Machine,
    devices: Sequence[str],
    growth: Mapping[str, int],
    needed: Mapping[str, int],
) -> tuple[Gpu, int] | None:
    """Return a card whose memory did not rise by a load, and the bytes it should hold.

    Only cards with memory of their own: what a processor's GPU holds lies in RAM. ``None``
    where nothing can be said.

    Args:
        machine: The machine.
        devices: Engine devices that were asked to hold the model.
        growth: GPU key → growth of its memory while the model was loaded.
        needed: Engine device → bytes the engine put there by its own account.
    """
    for gpu in machine.gpus:
        names = [d.name for d in gpu.engine if d.name in devices]
        held = sum(needed.get(name, 0) for name in names)
        rise = growth.get(gpu.key)
        is_card = kind_of(gpu) is GpuKind.DISCRETE
        if is_card and rise is not None and held > NOTICED_BYTES and rise < PLACED_BYTES:
            return gpu, held
    return None


def _possible(n_bytes: int | None) -> int | None:
    return n_bytes if n_bytes is not None and 0 <= n_bytes <= MAX_MEMORY_BYTES else None


def _asked(machine: Machine, devices: Sequence[str]) -> set[str]:
    return {g.key for g in machine.gpus if any(d.name in devices for d in g.engine)}


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
