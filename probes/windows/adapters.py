"""What a Windows adapter is: its PCI address, kind, memory, driver and link."""

import re

from app.domain.machine import GpuInfo, GpuKind
from probes.pci import AMD_INTEGRATED_IDS
from probes.reading import Absence, gpu_info
from probes.windows.facts import AdapterFacts, DeviceFacts

VENDORS = {0x10DE: "nvidia", 0x1002: "amd", 0x1022: "amd", 0x8086: "intel"}
REMOTE, SOFTWARE = 1, 2
SMALL_BYTES = 600 << 20
"""Dedicated memory up to here is a firmware's carve-out on adapters of unknown kind."""
WINDOWS_OWN = "10.0."
"""Versions of drivers that come with Windows are Windows' own."""
HARDWARE = re.compile(r"VEN_([0-9A-F]{4})&DEV_([0-9A-F]{4})", re.IGNORECASE)


def is_hardware(adapter: AdapterFacts) -> bool:
    """Whether an adapter is a GPU and not Windows' own renderer or a remote session's."""
    return not adapter.flags & (REMOTE | SOFTWARE) and adapter.vendor_id in VENDORS


def once(adapters: tuple[AdapterFacts, ...]) -> tuple[AdapterFacts, ...]:
    """Return each adapter once: remote sessions may list a card twice."""
    return tuple({a.luid or str(i): a for i, a in enumerate(adapters)}.values())


def kind_of(adapter: AdapterFacts) -> GpuKind:
    """Return card or part of the processor."""
    if adapter.hybrid in set(GpuKind):
        return GpuKind(adapter.hybrid)
    vendor = VENDORS.get(adapter.vendor_id)
    if vendor == "nvidia":
        return GpuKind.DISCRETE
    if vendor == "amd" and f"{adapter.device_id:04x}" in AMD_INTEGRATED_IDS:
        return GpuKind.INTEGRATED
    if vendor == "intel" and adapter.address is not None:
        return GpuKind.INTEGRATED if adapter.address[0] == 0 else GpuKind.DISCRETE
    small = adapter.dedicated_bytes <= SMALL_BYTES < adapter.shared_bytes
    return GpuKind.INTEGRATED if small else GpuKind.DISCRETE


def pci_id(adapter: AdapterFacts, device: DeviceFacts | None) -> str | None:
    """Return the PCI address as other probes and engines write it."""
    if adapter.address is not None:
        bus, slot, function = adapter.address
    elif device is not None and device.bus is not None and device.address is not None:
        bus, slot, function = device.bus, device.address >> 16, device.address & 0xFFFF
    else:
        return None
    fits = 0 <= bus < 256 and 0 <= slot < 32 and 0 <= function < 8
    return f"0000:{bus:02x}:{slot:02x}.{function}" if fits else None


def device_of(
    adapter: AdapterFacts,
    adapters: tuple[AdapterFacts, ...],
    devices: tuple[DeviceFacts, ...],
) -> DeviceFacts | None:
    """Return the plug-and-play device of an adapter: by address, else by ids if only one fits."""
    ids = (adapter.vendor_id, adapter.device_id)
    same = [d for d in devices if _ids(d) == ids]
    if adapter.address is not None:
        bus, slot, function = adapter.address
        where = (bus, slot << 16 | function)
        return next((d for d in same if (d.bus, d.address) == where), None)
    twins = sum(ids == (a.vendor_id, a.device_id) for a in adapters)
    return same[0] if len(same) == 1 and twins == 1 else None


def identity(adapter: AdapterFacts, device: DeviceFacts | None, probe: str) -> GpuInfo:
    """Return what Windows says an adapter is."""
    kind = kind_of(adapter)
    integrated = kind is GpuKind.INTEGRATED
    vendor = VENDORS.get(adapter.vendor_id)
    known = GpuInfo(
        probe=probe,
        pci_id=pci_id(adapter, device),
        name=adapter.description or None,
        vendor=vendor,
        kind=kind,
        luid=adapter.luid or None,
        node=None,
    )
    version = device.driver_version if device is not None else None
    outputs = adapter.n_outputs
    # Intel's cards carry a switch: behind it they show 2.5 GT/s x1, which is no real link.
    has_own_link = not integrated and vendor != "intel"
    known_link = device if has_own_link else None
    hops = (None, None) if known_link is None else (
        known_link.link_speed_max, known_link.link_width_max,
    )  # fmt: skip
    absent = Absence.NOT_APPLICABLE if integrated else Absence.NO_DATA
    return gpu_info(
        known,
        {
            "driver": f"{vendor} {version}" if version else Absence.NO_DATA,
            # In a processor this is only the part of RAM that firmware carved out.
            "vram_total_bytes": adapter.dedicated_bytes or Absence.NOT_APPLICABLE,
            "shared_total_bytes": adapter.shared_bytes or Absence.NO_DATA,
            "vram_budget_bytes": Absence.NO_DATA if not adapter.budget_bytes
            else adapter.budget_bytes,
            "unified_memory": integrated,
            "drives_display": Absence.NO_DATA if outputs is None else outputs > 0,
            "pcie_gen_max": hops[0] or absent,
            "pcie_width_max": hops[1] or absent,
            # Cards with displays, and all of these vendors' here, run the display model.
            "driver_model": "wddm",
        },
    )  # fmt: skip


def undriven(
    adapters: tuple[AdapterFacts, ...], devices: tuple[DeviceFacts, ...], probe: str
) -> tuple[GpuInfo, ...]:
    """Return the GPUs that have no working driver: DXGI lists none of them.

    Cards under TCC are not listed either; their driver works, and NVML knows them.
    """
    taken = {d for a in adapters if (d := device_of(a, adapters, devices)) is not None}
    nameless = {(a.vendor_id, a.device_id) for a in adapters if a.address is None}
    left = (d for d in devices if d not in taken and _ids(d) not in nameless)
    found = (_undriven(d, probe) for d in left if d.problem or _is_windows_own(d))
    return tuple(info for info in found if info is not None)


def _is_windows_own(device: DeviceFacts) -> bool:
    """Whether Windows' basic display driver runs a device, which computes nothing."""
    return (device.driver_version or "").startswith(WINDOWS_OWN)


def _undriven(device: DeviceFacts, probe: str) -> GpuInfo | None:
    vendor_id, device_id = _ids(device) or (0, 0)
    if vendor_id not in VENDORS or device.bus is None or device.address is None:
        return None
    slot, function = device.address >> 16, device.address & 0xFFFF
    shown = AdapterFacts(
        description="", vendor_id=vendor_id, device_id=device_id, luid="",
        address=(device.bus, slot, function),
    )  # fmt: skip
    known = GpuInfo(
        probe=probe, pci_id=pci_id(shown, device), vendor=VENDORS[vendor_id], kind=kind_of(shown)
    )
    return gpu_info(known, {}, Absence.DRIVER_NOT_LOADED)


def _ids(device: DeviceFacts) -> tuple[int, int] | None:
    match = HARDWARE.search(device.instance_id)
    return (int(match[1], 16), int(match[2], 16)) if match is not None else None
