"""One record per GPU out of what several probes say."""

from collections.abc import Iterable, Sequence

import msgspec

from app.domain.machine import GpuInfo, GpuKind, GpuSample, PowerState
from app.machine.names import pci_of, words_of


def merge_infos(infos: Iterable[GpuInfo]) -> list[GpuInfo]:
    """Return one record per physical GPU; the first probe that knows a field wins."""
    merged: list[GpuInfo] = []
    found = list(infos)
    for info in found:
        same = next((i for i, other in enumerate(merged) if _same(info, other)), None)
        if same is None and info.pci_id is None and info.uuid is None:
            same = _only_namesake(info, found, merged)
        if same is None:
            merged.append(info)
        else:
            merged[same] = _merged(merged[same], info)
    return merged


def merge_samples(samples: Sequence[GpuSample]) -> GpuSample | None:
    """Return one reading of a GPU from several probes'; the first that knows a field wins."""
    if not samples:
        return None
    first, *others = samples
    changes: dict[str, object] = {}
    for name in first.__struct_fields__:
        if name in {"missing", "power_state"} or getattr(first, name) is not None:
            continue
        changes[name] = next((v for s in others if (v := getattr(s, name)) is not None), None)
    states = {s.power_state for s in samples}
    state = PowerState.ASLEEP if PowerState.ASLEEP in states else first.power_state
    missing = {n: reason for n, reason in first.missing.items() if changes.get(n) is None}
    return msgspec.structs.replace(first, power_state=state, missing=missing, **changes)


def _same(one: GpuInfo, other: GpuInfo) -> bool:
    if one.uuid and other.uuid:
        return one.uuid == other.uuid
    address = pci_of(one.pci_id)
    if address is not None and address == pci_of(other.pci_id):
        return True
    return one.vulkan_uuid is not None and one.vulkan_uuid == other.vulkan_uuid


def _only_namesake(info: GpuInfo, found: list[GpuInfo], merged: list[GpuInfo]) -> int | None:
    """Return the one card of the same model, for a probe that knows no address."""
    words = words_of(info.name or "")
    twins = [i for i in found if i.probe == info.probe and words_of(i.name or "") == words]
    fits = [
        n for n, m in enumerate(merged) if m.probe != info.probe and words_of(m.name or "") == words
    ]
    return fits[0] if words and len(twins) == len(fits) == 1 else None


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
