"""Stage 2: the largest placement that really fits."""

import msgspec

from app.domain.settings import Settings
from app.sweep import knobs, layers, trade
from app.sweep.ladder import Rung
from app.sweep.points import SPILL_BYTES, Point
from app.sweep.room import find_room
from app.sweep.search import Asking, Search

FIRST_STEP_FRAC = 0.8  # after out of memory: the next try needs this share of the bytes
SECOND_STEP_FRAC = 0.65  # and after the second one this share
CHECK_SPARE = 2  # loads that a check of what growth said leaves for the rest


def climb(
    s: Search, base: Settings, ladder: tuple[Rung, ...], top: int
) -> Asking[tuple[int, Settings] | None]:
    """Find the largest rung that fits, runs and does not spill, and its knobs; else ``None``.

    The dry run's largest goes first. Free memory that turns out smaller than reported shows as
    out of memory (step well down, find out there how much there is, go there: at most one more
    failure) or as growth of shared memory, whose size says where to go. Knobs are tuned on the
    first rung that runs, while its weights are there; on the way up only the thread count is
    taken along. What growth says is checked by one rung more; where it misleads, the rungs
    between are halved.
    """
    low: int | None = None
    tuned: Settings | None = None
    high, index, at = top + 1, top, base
    seen_bad, has_spilled = high, False
    while True:
        point: Point | None = None
        if low is None and s.n_memory_failures == 1:
            index = yield from _with_room(s, at, ladder, index)
        settings = ladder[index].of(at)
        if not s.is_dominated(settings):
            check = low is not None and has_spilled
            point = _seen_to_grow(s, settings)
            if point is None:
                point = yield from s.measure(
                    "layers", settings, spare=CHECK_SPARE if check else 0, essential=not check
                )
            if point is None or not (point.is_clean or point.grew or point.is_memory):
                break  # no budget, or not a matter of memory: the next would fail alike
        if point is not None and point.is_clean:
            low = index
            if tuned is None:
                tuned = yield from knobs.tune(s, settings, has_cpu_part=s.has_cpu_part(settings))
                at = _with_threads(base, tuned)
        else:
            seen_bad, has_spilled = index, point is not None and point.grew
            high = _first_bad(s, at, ladder, index, point)
        following = _next_rung(s, at, ladder, (low, high), point)
        if following is None and low is not None and high < seen_bad:
            following, high = high, seen_bad
        if following is None:
            break
        index = following
    if low is None or tuned is None:
        return None
    return low, (yield from _with_knobs(s, ladder[low], at, tuned))


def _seen_to_grow(s: Search, settings: Settings) -> Point | None:
    """Return what a few tokens said, if that is enough where time is short: it does not fit."""
    look = s.looked_at(settings, layers.probe_workload(s)) if s.is_quick else None
    return look if look is not None and look.grew and s.trusts_growth else None


def _with_threads(base: Settings, tuned: Settings) -> Settings:
    threads, batch = tuned.n_threads, tuned.n_threads_batch
    return msgspec.structs.replace(base, n_threads=threads, n_threads_batch=batch)


def _with_room(s: Search, at: Settings, ladder: tuple[Rung, ...], index: int) -> Asking[int]:
    """Return the largest rung that the memory found on ``index`` holds; ``index`` if unknown."""
    settings = ladder[index].of(at)
    if index + 1 >= len(ladder) or s.is_dominated(settings):
        return index
    yield from layers.probe(s, settings)
    if not s.is_loaded(settings):
        return index
    yield from find_room(s, settings, _worth_knowing(s, at, ladder, index))
    largest = index
    while largest + 1 < len(ladder) and s.is_proven(ladder[largest + 1].of(at)):
        largest += 1
    return largest


def _worth_knowing(s: Search, at: Settings, ladder: tuple[Rung, ...], index: int) -> set[int]:
    """Return what the rungs above ``index`` need, with every batch and KV type that may pay."""
    _, bad = s.proven_bytes(ladder[index].of(at))
    needs = set[int]()
    for variant in trade.variants(s, at):
        for rung in ladder[index:]:
            need = s.total_bytes(rung.of(variant))
            if bad is None or need >= bad:
                break
            needs.add(need)
    return needs


def _with_knobs(s: Search, rung: Rung, at: Settings, tuned: Settings) -> Asking[Settings]:
    """Return the knobs found lower down if they fit on ``rung`` too, timed there."""
    settings = rung.of(tuned)
    if not s.bounds.ok(settings):
        return rung.of(at)
    yield from s.measure("layers", settings, reps=knobs.reps(s), spare=3)
    return settings


def _first_bad(
    s: Search, base: Settings, ladder: tuple[Rung, ...], index: int, point: Point | None
) -> int:
    """Return the smallest rung known to be too large now that ``index`` is.

    Growth of shared memory says exactly how much there is.
    """
    if point is None or not point.grew or not point.growth_bytes or not s.trusts_growth:
        return index
    room = {
        d: n - point.growth_bytes + SPILL_BYTES
        for d, n in s.bounds.need(ladder[index].of(base)).device_bytes().items()
    }
    while index > 0:
        below = s.bounds.need(ladder[index - 1].of(base)).device_bytes()
        if all(below.get(d, 0) <= n for d, n in room.items()):
            break
        index -= 1
    return index


def _next_rung(
    s: Search,
    base: Settings,
    ladder: tuple[Rung, ...],
    bracket: tuple[int | None, int],
    point: Point | None,
) -> int | None:
    """Return the next rung to try between the largest good and the smallest bad one."""
    low, high = bracket
    floor = -1 if low is None else low
    if high - floor <= 1:
        return None
    if point is not None and point.is_clean:
        step = max(1, (high - floor) // 4) if s.n_memory_failures else (high - floor) // 2
        return floor + step
    if point is not None and point.grew:
        return high - 1 if s.trusts_growth else (high + floor) // 2
    need = s.bounds.need(ladder[high].of(base)).device_bytes()
    share = FIRST_STEP_FRAC if s.n_memory_failures < 2 else SECOND_STEP_FRAC
    wanted = {d: int(n * share) for d, n in need.items()}
    for index in range(high - 1, floor, -1):
        there = s.bounds.need(ladder[index].of(base)).device_bytes()
        if all(there.get(d, 0) <= n for d, n in wanted.items()):
            return index
    return floor + 1
