"""What configurations must have in common, so that one's passes speak for the other's.

A token is decoded alone: neither the physical batch, nor the threads for it, nor how weights in
RAM are read changes its time (measured: no difference on CUDA, while prefill changes 3–5 ×).
Configurations that differ in nothing else are kin and share their decode passes, so that the
noise of decode, nearly all of a request on a slow machine, does not hide what the batch gains.
Kin whose decode differs beyond noise (a spill that nobody sees) do not share.
"""

import math
from collections.abc import Mapping

import msgspec

from app.domain.settings import LoadMode, Settings
from app.sweep.points import Demand, Point
from app.sweep.stats import Estimate, estimate

ALIKE_FRAC = 0.1  # decode that differs by more is not the same, whatever the noise


def kin_of(settings: Settings) -> Settings:
    """Return ``settings`` without what does not act on decode."""
    return msgspec.structs.replace(
        settings, n_ubatch=1, n_batch=1, n_threads_batch=0, load_mode=LoadMode.MMAP
    )


def share_decode(points: Mapping[Settings, Point], need: Demand) -> dict[Settings, Point]:
    """Return ``points``, those with kin timed by the passes of all of them."""
    groups: dict[Settings, list[Point]] = {}
    for point in points.values():
        if point.is_clean and len(point.decode) > 1:
            groups.setdefault(kin_of(point.settings), []).append(point)
    shared = dict(points)
    for members in groups.values():
        alike = _alike(members) if len(members) > 1 else []
        decode = [t for p in alike for t in p.decode]
        for point in alike:
            shared[point.settings] = _with_decode(point, decode, need)
    return shared


def _alike(members: list[Point]) -> list[Point]:
    """Return the kin whose decode agrees with the one that has the most passes."""
    first = max(members, key=lambda p: len(p.decode))
    base = estimate(first.decode)
    return [p for p in members if _agree(base, estimate(p.decode))]


def _agree(first: Estimate, second: Estimate) -> bool:
    gap = abs(first.median - second.median)
    noise = math.hypot(first.half_width, second.half_width)
    return gap <= min(noise, ALIKE_FRAC * first.median)


def _with_decode(point: Point, decode: list[float], need: Demand) -> Point:
    prefill = estimate(point.prefill)
    shared = estimate(decode)
    middle = need.n_prompt * point.prefill_s + need.n_gen * shared.median
    own = need.n_prompt * prefill.half_width
    half = (own**2 + (need.n_gen * shared.half_width) ** 2) ** 0.5
    return msgspec.structs.replace(
        point,
        decode=tuple(decode),
        request=Estimate(median=middle, low=middle - half, high=middle + half),
        own_half_width=own,
    )
