"""Stage 1: other devices than those that were tried first, and how layers split over several.

Layers on several devices run one after the other, so seconds per token are linear in the shares:
the best split gives the fastest device as much as it holds. Which one that is, two loads tell;
the split by free memory, the engine's own, is the third candidate. (The engine's main GPU matters
for other split modes only, which are taken when pinned and never tried.)
"""

import msgspec

from app.domain.settings import Settings, SplitMode
from app.sweep import knobs, layers
from app.sweep.cost import fastest
from app.sweep.points import usable
from app.sweep.search import Asking, Search
from app.sweep.start import base_settings

IN_REACH = 1.2  # another set of devices is timed when its first look is within this factor
MOST_SPLITS = 3


def parts(s: Search, group: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the single devices of ``group`` that hold everything; else the one that holds most.

    What they do says what the others are worth.
    """
    if len(group) < 2:
        return []
    ladder = s.ladder
    tops = {d: s.bounds.largest(ladder, base_settings(s.plan, (d,))) or 0 for d in group}
    alone = [d for d in group if tops[d] == len(ladder) - 1]
    best = max(group, key=lambda d: tops[d])
    return [(d,) for d in alone or ([best] if tops[best] else [])]


def other_devices(s: Search, group: tuple[str, ...], *, is_part: bool = False) -> Asking[None]:
    """One short trial on another set of devices; timed like the rest if it is in reach.

    ``is_part``: also where it is not, because the difference is what the other devices are worth.
    """
    best, base = s.best(), base_settings(s.plan, group)
    top = s.bounds.largest(s.ladder, base)
    if not top:
        return
    settings = s.ladder[top].of(base)
    trial = yield from s.ask(
        "devices", settings, workload=layers.probe_workload(s), reps=(1, 1), max_s=1, spare=1
    )
    if trial is None or not usable(trial):
        return
    prefill_s, decode_s = fastest(trial)
    expected_s = s.demand.n_prompt * prefill_s + s.demand.n_gen * decode_s
    if not is_part and best is not None and expected_s > IN_REACH * best.request_s:
        return
    yield from s.measure("devices", settings, reps=knobs.reps(s), spare=1)


def splits(s: Search) -> Asking[None]:
    """Try the splits that favour one device each, where the leader leaves a choice."""
    leader = s.best()
    everything = s.plan.space.model.n_layer + 1
    if s.plan.request.pinned.get("split_mode", SplitMode.LAYER) != SplitMode.LAYER:
        return  # whole layers are what is divided here
    if leader is None or len(leader.settings.devices) < 2 or s.is_quick:
        return
    if leader.settings.n_gpu_layers < everything or s.request_is_pinned("tensor_split"):
        return  # every device is full: memory decides
    at = leader.settings
    for index in _by_free_memory(s, at.devices)[:MOST_SPLITS]:
        shares = favouring(s, at, index, everything)
        if shares is None:
            continue
        split = msgspec.structs.replace(at, tensor_split=shares)
        point = yield from s.measure("devices", split, reps=knobs.reps(s), spare=1)
        if point is not None and point.is_clean and point.request_s < leader.request_s:
            return  # linear: the other way can only be slower


def favouring(s: Search, at: Settings, index: int, everything: int) -> str | None:
    """Return the split that gives the device ``index`` as many layers as it holds.

    The others share the rest by free memory. ``None`` where that is no other split than any.
    """
    low, high = 0, everything
    while low < high:
        middle = (low + high + 1) // 2
        split = msgspec.structs.replace(at, tensor_split=_shares(s, at, index, middle, everything))
        low, high = (middle, high) if s.bounds.ok(split) else (low, middle - 1)
    return _shares(s, at, index, low, everything) if low else None


def _shares(s: Search, at: Settings, index: int, n: int, everything: int) -> str:
    free = {d.id: d.free_bytes for d in s.plan.space.devices}
    rest = sum(free[d] for i, d in enumerate(at.devices) if i != index) or 1
    counts, left = [], everything - n
    others = [i for i in range(len(at.devices)) if i != index]
    for i, device in enumerate(at.devices):
        share = left if i == others[-1] else round((everything - n) * free[device] / rest)
        counts.append(n if i == index else min(share, left))
        left -= 0 if i == index else counts[-1]
    return ",".join(str(c) for c in counts)


def _by_free_memory(s: Search, devices: tuple[str, ...]) -> list[int]:
    free = {d.id: d.free_bytes for d in s.plan.space.devices}
    return sorted(range(len(devices)), key=lambda i: -free[devices[i]])
