"""Display devices on the PCI bus, found without waking any of them.

Only files that the kernel answers from memory are read (class, ids, ``power/``, ``drm/``), so a
sleeping card stays asleep. Walking the bus instead of ``/sys/class/drm`` also finds cards whose
driver makes no DRM node (NVIDIA without ``nvidia-drm``, or no driver at all).
"""

import re
from dataclasses import dataclass

from app.domain.machine import PowerState
from probes.reading import Absence
from probes.tree import Tree

DEVICES = "/sys/bus/pci/devices"
DISPLAY_CLASS = "0x03"
VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
"""Others with a display class are server BMCs and virtual screens: nothing to compute on."""

ADDRESS = re.compile(r"^(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$")
CARD = re.compile(r"card\d+")
AMD_INTEGRATED_IDS = {
    *("1309", "130a", "130b", "130c", "130d", "130e", "130f", "1313", "1315", "9874", "98e4"),
    *("15d8", "15dd", "1636", "1638", "164c", "163f", "1435", "164d", "164e", "1681", "1506"),
    *("15bf", "15c8", "15e7", "13c0", "150e", "1586", "1900", "1901", "1114"),
}
"""PCI ids of GPUs inside processors, for drivers too old to say it through ``gpu_metrics``."""
GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""Link speed in GT/s → PCIe generation."""


@dataclass(frozen=True)
class PciGpu:
    """A display device of a vendor that computes.

    Attributes:
        pci_id: ``domain:bus:device.function``.
        vendor: ``nvidia``, ``amd`` or ``intel``.
        device_id: PCI device id, lower case hex without prefix.
        driver: Kernel driver bound to it, if any.
        card: DRM node such as ``card1``, if any.
    """

    pci_id: str
    vendor: str
    device_id: str
    driver: str | None
    card: str | None

    @property
    def path(self) -> str:
        """Folder of the device in sysfs."""
        return f"{DEVICES}/{self.pci_id}"


def normal_pci_id(text: str | None) -> str | None:
    """Return a PCI address with four-digit domain, lower case; ``None`` if it is not one.

    NVML writes eight-digit domains, some engines leave the domain out.
    """
    match = ADDRESS.match(text.strip()) if text else None
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{bus.lower()}:{device.lower()}.{function}"


def pci_gpus(tree: Tree) -> tuple[PciGpu, ...]:
    """Return the display devices of known vendors in bus order."""
    found = (_pci_gpu(tree, name) for name in tree.names(DEVICES))
    return tuple(gpu for gpu in found if gpu is not None)


def power_state(tree: Tree, gpu: PciGpu) -> PowerState:
    """Return whether the device is awake; always read this before anything else.

    A kernel or device without runtime power management cannot sleep. ``resuming`` still
    counts as asleep: someone else is waking it, the next reading will see it awake.
    """
    status = tree.text(f"{gpu.path}/power/runtime_status")
    if status in {"active", "unsupported", Absence.NOT_SUPPORTED}:
        return PowerState.AWAKE
    if status in {"suspended", "suspending", "resuming"}:
        return PowerState.ASLEEP
    return PowerState.UNKNOWN


def is_gone(tree: Tree, gpu: PciGpu) -> bool:
    """Return whether a device that was there has left the bus (unplugged, or fallen off it)."""
    return isinstance(tree.text(f"{gpu.path}/class"), Absence)


def unread(state: PowerState) -> Absence:
    """Return why a device that is not surely awake is not read."""
    return Absence.ASLEEP if state is PowerState.ASLEEP else Absence.ERROR


def may_sleep(tree: Tree, gpu: PciGpu) -> bool:
    """Return whether the kernel may suspend the device when nobody uses it."""
    return tree.text(f"{gpu.path}/power/control") == "auto"


def external(tree: Tree, gpu: PciGpu) -> bool | Absence:
    """Return whether the card, or a bridge above it, can be unplugged (an eGPU)."""
    chain = [part for part in tree.target(gpu.path).split("/") if ADDRESS.match(part)]
    said = [tree.text(f"{DEVICES}/{part}/removable") for part in {*chain, gpu.pci_id}]
    if "removable" in said:
        return True
    return False if "fixed" in said else Absence.NO_DATA


def bar_bytes(tree: Tree, gpu: PciGpu, index: int) -> int | Absence:
    """Return the size of one of the card's memory windows (kernel's table, wakes nothing)."""
    text = tree.text(f"{gpu.path}/resource")
    if isinstance(text, Absence):
        return text
    lines = text.splitlines()
    words = lines[index].split() if index < len(lines) else []
    try:
        start, end = (int(word, 16) for word in words[:2])
    except ValueError:
        return Absence.NO_DATA
    return end - start + 1 if end > start else Absence.NO_DATA


def link(tree: Tree, gpu: PciGpu, which: str) -> tuple[object, object]:
    """Return generation and width of the slowest hop between the card and the processor.

    AMD's and Intel's discrete cards carry a switch: behind it the endpoint shows a fictional
    fast link (AMD) or 2.5 GT/s x1 (Intel, where the switch's own lower port says the same). Of an
    external card nothing is said: Thunderbolt's bridges show 2.5 GT/s, whatever the cable carries.

    Args:
        tree: File system.
        gpu: The card.
        which: ``current`` or ``max``.
    """
    if external(tree, gpu) is True:
        return Absence.NO_DATA, Absence.NO_DATA
    chain = [part for part in tree.target(gpu.path).split("/") if ADDRESS.match(part)]
    if gpu.vendor == "intel":
        chain = chain[:-2]
    hops = [hop for hop in (_hop(tree, part, which) for part in chain) if hop is not None]
    if not hops:
        return Absence.NO_DATA, Absence.NO_DATA
    return min(gen for gen, _ in hops), min(width for _, width in hops)


def _hop(tree: Tree, address: str, which: str) -> tuple[int, int] | None:
    speed = tree.text(f"{DEVICES}/{address}/{which}_link_speed")
    width = tree.text(f"{DEVICES}/{address}/{which}_link_width")
    try:
        generation = GENERATIONS[float(speed.split(" ", maxsplit=1)[0])]
        lanes = int(width)
    except (KeyError, ValueError):
        return None
    return (generation, lanes) if lanes > 0 else None


def _pci_gpu(tree: Tree, name: str) -> PciGpu | None:
    path = f"{DEVICES}/{name}"
    if not str(tree.text(f"{path}/class")).startswith(DISPLAY_CLASS):
        return None
    vendor = VENDORS.get(str(tree.text(f"{path}/vendor")).lower())
    pci_id = normal_pci_id(name)
    # A virtual function (SR-IOV) belongs to the guest it is made for; the card itself is listed.
    is_virtual = not isinstance(tree.text(f"{path}/physfn/vendor"), Absence)
    if vendor is None or pci_id is None or is_virtual:
        return None
    uevent = _uevent(tree.text(f"{path}/uevent"))
    # ``device`` is absent in some recordings, PCI_ID says the same.
    device_id = uevent.get("PCI_ID", ":").partition(":")[2].lower()
    cards = [n for n in tree.names(f"{path}/drm") if CARD.fullmatch(n)]
    return PciGpu(
        pci_id=pci_id,
        vendor=vendor,
        device_id=device_id,
        driver=uevent.get("DRIVER"),
        card=cards[0] if cards else None,
    )


def _uevent(text: str | Absence) -> dict[str, str]:
    if isinstance(text, Absence):
        return {}
    return dict(line.partition("=")[::2] for line in text.splitlines())
