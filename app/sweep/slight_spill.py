"""A leader that lacks a little memory: no spill by its growth, or one that nobody sees.

A token is decoded alone, so that a larger physical batch slows it down by its memory only. Less of
it costs a context, and a little time for the prompt.
"""

from itertools import combinations

import msgspec

from app.sweep import layers
from app.sweep.kin import kin_of
from app.sweep.knobs import DEFAULT_UBATCH, UBATCHES, reps
from app.sweep.points import SLIGHT_GROWTH_BYTES, Point
from app.sweep.search import Asking, Search
from app.sweep.stats import estimate

SLOWER_DECODE = 1.03


def smaller_batches(s: Search) -> Asking[None]:
    """Time smaller batches with the leader for as long as it seems to lack a little memory."""
    while True:
        best = s.best()
        if best is None or s.request_is_pinned("n_ubatch") or not _lacks_memory(s, best):
            return
        at = s.as_asked(best.settings)
        smaller = max((n for n in (*UBATCHES, DEFAULT_UBATCH) if n < at.n_ubatch), default=None)
        if smaller is None:
            return
        rival = msgspec.structs.replace(at, n_ubatch=smaller)
        yield from s.measure("ubatch", rival, reps=reps(s))
        leader = s.best()
        if leader is None or leader.settings.n_ubatch != smaller:
            return


def _lacks_memory(s: Search, best: Point) -> bool:
    """Whether some of its memory seems to lie elsewhere: seen, or by what a batch does."""
    if not best.settings.devices:
        return False
    if (best.growth_bytes or 0) > SLIGHT_GROWTH_BYTES:
        return True
    if _is_above_its_line(s, best):
        return True
    kin = kin_of(best.settings)
    for known in (s.points(), s.screens()):
        alike = [p for k, p in known.items() if kin_of(k) == kin and not p.disturbed and p.decode]
        ordered = sorted(alike, key=lambda p: p.settings.n_ubatch)
        if any(_decodes_slower(b, a) for a, b in combinations(ordered, 2)):
            return True
    return False


def _is_above_its_line(s: Search, best: Point) -> bool:
    """Whether it is the largest of its curve and slower than the smaller ones promised."""
    for ladder in filter(None, (s.experts, s.layers)):
        curve = layers.curve_of(s, s.as_asked(best.settings), ladder)
        on_device = [(i, p) for i, p in curve if p.settings.devices]
        if on_device and on_device[-1][1].settings == best.settings and layers.bends(on_device):
            return True
    return False


def _decodes_slower(a: Point, b: Point) -> bool:
    slow, fast = estimate(a.decode), estimate(b.decode)
    return slow.low > fast.high and slow.median > SLOWER_DECODE * fast.median
