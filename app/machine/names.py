"""Names and addresses of a GPU as different sources write them."""

import re

from app.domain.machine import EngineDevice, GpuInfo

VENDOR_WORDS = {
    "nvidia": ("nvidia", "geforce", "quadro", "tesla", "rtx", "gtx"),
    "amd": ("amd", "radeon", "radv", "gfx"),
    "intel": ("intel", "arc", "iris", "uhd"),
}
PCI = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$")
NOISE = {"nvidia", "amd", "intel", "corporation", "graphics", "geforce", "radeon", "gpu", "series"}
"""Words that drivers add to or leave out of the same model's name."""


def pci_of(text: str | None) -> str | None:
    """Return a PCI address with four-digit domain, lower case; ``None`` if it is not one."""
    match = PCI.match(text.strip().lower()) if text else None
    return f"{int(match[1] or '0', 16):04x}:{match[2]}" if match else None


def names_fit(info: GpuInfo, device: EngineDevice) -> bool:
    """Return whether a probe's name and the engine's mean the same model."""
    if info.name is not None:
        return bool(words_of(info.name)) and words_of(info.name) == words_of(device.description)
    # The kernel has no marketing names: only the vendor is known.
    said = set(re.findall(r"[a-z]+", device.description.lower()))
    return bool(said.intersection(VENDOR_WORDS.get(info.vendor or "", ())))


def words_of(name: str) -> frozenset[str]:
    """Return the words that tell one model from another."""
    # "(RADV NAVI31)", "(TM)" and "(nvgpu)" do not name the model; "Ti" and "Laptop" do.
    plain = re.sub(r"\([^)]*\)", " ", name.lower())
    return frozenset(re.findall(r"[a-z0-9]+", plain)) - NOISE
