"""Stage 3: knobs that only need a new context.

Threads and batch are screened with an empty KV cache and a short answer (filling the cache is
most of a trial's time on a slow machine); what wins is timed at the goal's depth. Flash attention
and KV type act on the cache, so they are timed at depth at once.
"""

from collections.abc import Iterator

import msgspec

from app.domain.settings import KV_TYPES, FlashAttn, Settings
from app.sweep.compare import is_settled, seems_slower
from app.sweep.ladder import rung_of
from app.sweep.pick import KV_GAIN
from app.sweep.points import Point
from app.sweep.search import Asking, Search

KNOB_GAIN = 1.01  # a knob leaves its default only for more than this
LEAST_GAIN_FRAC = 0.01  # a knob that cannot gain this much is not tried
BLUR = 2.0  # scatters of a pass by which two looks may differ although nothing does
UBATCHES = (1024, 2048, 256, 128)
DEFAULT_UBATCH = 512


def default_type(kv_types: tuple[str, ...]) -> str:
    """Return the KV type to start from: f16 where allowed."""
    return "f16" if "f16" in kv_types or not kv_types else kv_types[0]


def tune(s: Search, at: Settings, *, has_cpu_part: bool) -> Asking[Settings]:
    """Return ``at`` with the fastest knobs of those that fit here, timed at depth."""
    start = at
    if has_cpu_part:
        at = yield from tune_threads(s, at)
    return (yield from tune_contexts(s, at, start))


def tune_contexts(s: Search, at: Settings, start: Settings | None = None) -> Asking[Settings]:
    """Return ``at`` with the fastest batch, flash attention and KV type; ``start`` is timed."""
    start = at if start is None else start
    at = yield from _tune_ubatch(s, at, start)
    if at != start:
        point, held = (yield from s.measure("knobs", at, reps=reps(s))), s.point(start)
        if point is not None and held is not None and held.is_clean and point.is_clean:
            at = start if seems_slower(point, held) else at  # a look in an empty context misled
    at = yield from _tune_flash_attn(s, at)
    return (yield from _tune_kv(s, at))


def reps(s: Search) -> tuple[int, int]:
    """Return repetitions of a first look."""
    return (3, 5) if s.is_quick else (3, 6)


def screen_reps(s: Search) -> tuple[int, int]:
    """Return repetitions of a look with an empty cache."""
    if s.is_crawling:
        return (1, 1)
    return (2, 3) if s.is_quick else (3, 5)


def ubatches(at: Settings) -> tuple[int, ...]:
    """Return physical batches worth comparing, the default aside."""
    return tuple(n for n in UBATCHES if n <= at.n_batch)


def kv_variants(s: Search, at: Settings) -> Iterator[Settings]:
    """Yield ``at`` with the other KV types the user allows, flash attention on for them."""
    pinned = s.plan.request.pinned
    is_off = at.flash_attn is FlashAttn.OFF
    if "type_k" in pinned or "type_v" in pinned or (is_off and "flash_attn" in pinned):
        return
    flash = FlashAttn.ON if is_off else at.flash_attn
    for kind in s.plan.request.kv_types:
        if kind != at.type_k and kind in KV_TYPES:
            yield msgspec.structs.replace(at, type_k=kind, type_v=kind, flash_attn=flash)


def prefill_share(s: Search, point: Point) -> float:
    """Return the share of the request time that is prefill: a bound of what a batch can gain."""
    return s.demand.n_prompt * point.prefill_s / point.request_s


def _thread_choices(s: Search) -> tuple[int, ...]:
    host = s.plan.space.host
    cores, logical = host.cores_physical, host.cores_logical
    extra = {cores * 3 // 4, cores // 4} if s.is_thorough else set()
    wanted = [max(1, cores // 2), logical, *sorted(extra)]
    return tuple(dict.fromkeys(n for n in wanted if 1 <= n <= logical))


def tune_threads(s: Search, at: Settings) -> Asking[Settings]:
    """Return ``at`` with the thread count that is fastest there."""
    if s.request_is_pinned("n_threads"):
        return at
    best = at
    for n in _thread_choices(s):
        if n != at.n_threads:
            rival = msgspec.structs.replace(at, n_threads=n)
            best = yield from _screen(s, best, rival, "threads")
    return (yield from _tune_batch_threads(s, best))


def threads_again(s: Search) -> Asking[None]:
    """Time the leader with thread counts that its look, noisy as it was, did not rule out."""
    best = s.best()
    if best is None or s.is_quick or s.request_is_pinned("n_threads"):
        return
    at = s.as_asked(best.settings)
    if not s.has_cpu_part(at) or at.n_threads_batch not in (0, at.n_threads):
        return
    bound = 1 + BLUR * s.noise_frac()
    for n in (s.plan.space.host.cores_physical, *_thread_choices(s)):
        ratios = [
            p.request_s / held.request_s
            for asked, p in s.screens().items()
            if asked.n_threads == n != at.n_threads
            and (held := s.screened(msgspec.structs.replace(asked, n_threads=at.n_threads)))
        ]
        if ratios and min(ratios) < bound:
            rival = msgspec.structs.replace(at, n_threads=n)
            yield from s.measure("threads", rival, reps=reps(s), spare=1)


def _tune_batch_threads(s: Search, at: Settings) -> Asking[Settings]:
    """Return ``at`` with threads of its own for the prompt where that is faster.

    The counts were all screened, and every pass says what each does for prompt and for decode.
    """
    held = s.screened(at)
    if held is None or held.request is None or s.request_is_pinned("n_threads_batch"):
        return at
    counts = [at.n_threads, *_thread_choices(s), s.plan.space.host.cores_physical]
    known = {n: s.screened(msgspec.structs.replace(at, n_threads=n)) for n in counts}
    timed = {n: p for n, p in known.items() if p is not None and p.is_clean}
    if not timed or s.request_is_pinned("n_threads"):
        return at
    decode = min(timed, key=lambda n: timed[n].decode_s)
    prompt = min(timed, key=lambda n: timed[n].prefill_s)
    time_s = s.demand.n_prompt * timed[prompt].prefill_s + s.demand.n_gen * timed[decode].decode_s
    if decode == prompt or time_s > (1 - LEAST_GAIN_FRAC) * held.request_s:
        return at
    rival = msgspec.structs.replace(at, n_threads=decode, n_threads_batch=prompt)
    return (yield from _screen(s, at, rival, "threads"))


def _tune_ubatch(s: Search, at: Settings, known: Settings) -> Asking[Settings]:
    """Return ``at`` with its best batch; ``known`` is what is timed at depth already."""
    point = s.point(known)
    if s.request_is_pinned("n_ubatch") or point is None or point.request is None:
        return at
    if s.is_crawling:
        return at  # a prompt as short as its looks have is one batch anyway
    best = at
    for n in ubatches(at):
        bound = prefill_share(s, point) * (1 - at.n_ubatch / n)
        if n > at.n_ubatch and bound >= LEAST_GAIN_FRAC:
            rival = msgspec.structs.replace(at, n_ubatch=n)
            best = yield from _screen(s, best, rival, "ubatch")
    yield from _screen_smaller(s, best)
    return best


def _screen_smaller(s: Search, at: Settings) -> Asking[None]:
    """Screen the smaller batches that would make room for more layers."""
    here = rung_of(at)
    for n in ubatches(at):
        rival = msgspec.structs.replace(at, n_ubatch=n)
        top = s.bounds.largest(s.ladder, rival) if n < at.n_ubatch else None
        if top is None or s.ladder[top] == here or here not in s.ladder:
            continue
        left = len(s.ladder) - 1 - s.ladder.index(here)
        more = top - s.ladder.index(here)
        # at most all of the time goes to what is left in RAM, a share of it to each rung
        if more <= 0 or not s.is_worth_looking(rival, more / left):
            continue
        for settings in (at, rival):
            if s.screened(settings) is None and s.may_screen(settings):
                yield from s.ask(
                    "ubatch", settings, workload=s.screen, reps=screen_reps(s), max_s=8
                )


def _tune_flash_attn(s: Search, at: Settings) -> Asking[Settings]:
    """Compare with flash attention off; the engine's own choice stays on a tie."""
    point = s.point(at)
    if s.request_is_pinned("flash_attn") or at.type_v not in ("f16", "f32", "bf16"):
        return at
    if point is None or point.settings.flash_attn is not FlashAttn.ON:
        return at
    rival = msgspec.structs.replace(at, flash_attn=FlashAttn.OFF)
    return (yield from better(s, at, rival, stage="flash_attn"))


def _tune_kv(s: Search, at: Settings) -> Asking[Settings]:
    best = at
    for rival in kv_variants(s, at):
        best = yield from better(s, best, rival, stage="kv", gain=KV_GAIN)
    return best


def _screen(s: Search, held: Settings, rival: Settings, stage: str) -> Asking[Settings]:
    """Return the one that is faster with an empty cache; ``held`` unless the gain is clear."""
    if not s.bounds.ok(rival) or s.is_dominated(rival) or not s.may_screen(rival):
        return held
    for settings in (held, rival):
        if s.screened(settings) is None:
            yield from s.ask(stage, settings, workload=s.screen, reps=screen_reps(s), max_s=8)
    first, second = s.screened(held), s.screened(rival)
    if first is None or second is None or not (first.is_clean and second.is_clean):
        return held
    gain = first.request_s / second.request_s
    if 1 < gain < 1.05 and not is_settled(first, second) and not s.is_quick:
        for settings in (held, rival):
            yield from s.ask(stage, settings, workload=s.screen, reps=(3, 8), max_s=10)
        first, second = s.screened(held), s.screened(rival)
        if first is None or second is None:
            return held
    return rival if first.request_s >= KNOB_GAIN * second.request_s else held


def better(
    s: Search, held: Settings, rival: Settings, *, stage: str, gain: float = KNOB_GAIN
) -> Asking[Settings]:
    """Return the faster of two contexts on one load at depth; ``held`` unless it is clear.

    Where one look does not separate them both are timed again in turns.
    """
    if not s.bounds.ok(rival) or s.is_dominated(rival) or not s.may_screen(rival):
        return held
    first = yield from s.measure(stage, held, reps=reps(s))
    if first is not None and first.disturbed and not (s.is_quick or s.stays_hot()):
        yield from s.ask(stage, held, reps=reps(s))  # or whatever comes next seems faster
        first = s.point(held)
    second = yield from s.measure(stage, rival, reps=reps(s))
    if first is None or second is None or not (first.is_clean and second.is_clean):
        return held
    ratio = first.request_s / second.request_s
    if 0.99 < ratio / gain < 1.04 and not is_settled(first, second) and not s.is_quick:
        for settings in (held, rival):
            yield from s.ask(stage, settings, reps=(3, 8))
        first, second = s.point(held), s.point(rival)
        if first is None or second is None or first.request is None or second.request is None:
            return held
    return rival if first.request_s >= gain * second.request_s else held
