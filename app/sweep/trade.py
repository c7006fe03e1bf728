"""Knobs that change how many layers fit, weighed against the layers; and pinned host weights."""

from collections.abc import Iterator, Mapping

import msgspec

from app.domain.settings import FlashAttn, LoadMode, Settings
from app.domain.units import GIB
from app.sweep.fitted import speed_model
from app.sweep.knobs import (
    DEFAULT_UBATCH,
    LEAST_GAIN_FRAC,
    kv_variants,
    prefill_share,
    reps,
    screen_reps,
    ubatches,
)
from app.sweep.ladder import Rung
from app.sweep.pick import FULL_TYPES, KV_GAIN
from app.sweep.points import Point
from app.sweep.search import Asking, Search
from app.sweep.speed_model import family_of

WORTH_A_LOAD = 1.01  # a predicted time within 1 % of the best may turn out better
WORTH_A_SPARE_LOAD = 1.03  # and within 3 % where many loads are left
MANY_LOADS = 4
CLEAR_GAIN = 1.03
PINNED_RAM_FRAC = 0.4  # of RAM may be pinned: the rest of the system needs some that moves
PINNED_SPARE_BYTES = 4 * GIB  # and so much of it stays free
PINNED_LEAST_FRAC = 0.02  # of the request: a load is spent for no less
PINNED_GAIN_FRAC = 0.75  # of the prefill time, at most (3.8–4.8× measured)


def variants(s: Search, at: Settings) -> Iterator[Settings]:
    """Yield ``at`` and the combinations of batch, KV type, flash that need other memory."""
    batches = [at.n_ubatch]
    if not s.request_is_pinned("n_ubatch"):
        batches += [*ubatches(at), DEFAULT_UBATCH]
    off = msgspec.structs.replace(at, flash_attn=FlashAttn.OFF)
    kinds = [at, *kv_variants(s, at)]
    kinds += [off] if may_turn_off_flash(s, at) and s.is_screened(off) else []
    if at.flash_attn is FlashAttn.OFF and not s.request_is_pinned("flash_attn"):
        kinds.append(msgspec.structs.replace(at, flash_attn=FlashAttn.AUTO))  # needs less memory
    for kind in kinds:
        for n in dict.fromkeys(batches):
            yield msgspec.structs.replace(kind, n_ubatch=n)


def learn_here(s: Search, here: Settings, at: Settings) -> Asking[None]:
    """Screen on the loaded placement of ``here`` what does not fit at ``at``'s.

    That is larger batches, and flash attention off, which needs memory for its scores.
    """
    point = s.point(here)
    if point is None or point.request is None or s.request_is_pinned("n_ubatch"):
        return
    local = _moved(at, here)
    for n in ubatches(at):
        bound = prefill_share(s, point) * (1 - at.n_ubatch / n)
        rival = msgspec.structs.replace(local, n_ubatch=n)
        too_big = not s.bounds.ok(msgspec.structs.replace(at, n_ubatch=n))
        if n <= at.n_ubatch or bound < 0.02 or not too_big or not s.bounds.ok(rival):
            continue
        if _is_looked_at(s, rival):
            continue
        yield from _screen_both(s, local, rival, "ubatch")
    off = msgspec.structs.replace(local, flash_attn=FlashAttn.OFF)
    too_big = not s.bounds.ok(msgspec.structs.replace(at, flash_attn=FlashAttn.OFF))
    may_learn = too_big and s.bounds.ok(off) and not _is_looked_at(s, off)
    if may_turn_off_flash(s, at) and may_learn:
        yield from _screen_both(s, local, off, "flash_attn")


def _is_looked_at(s: Search, settings: Settings) -> bool:
    """Whether these knobs had their look on another placement: the model carries it over.

    It does so on one ladder: experts in RAM say nothing of layers there.
    """
    has_experts = settings.n_cpu_moe > 0
    return any(
        family_of(k) == family_of(settings) and (k.n_cpu_moe > 0) == has_experts
        for k in s.screens()
    )


def may_turn_off_flash(s: Search, at: Settings) -> bool:
    """Whether flash attention is on by choice: a quantised cache needs it."""
    plain = at.type_v in FULL_TYPES and at.flash_attn is not FlashAttn.OFF
    return plain and not s.request_is_pinned("flash_attn")


def _screen_both(s: Search, held: Settings, rival: Settings, stage: str) -> Asking[None]:
    for settings in (held, rival):
        if s.screened(settings) is None and s.may_screen(settings):
            yield from s.ask(stage, settings, workload=s.screen, reps=screen_reps(s), max_s=8)


def trade(s: Search, at: Settings, ladder: tuple[Rung, ...], spare: int) -> Asking[None]:
    """Load the placements at which another batch or KV type is predicted to win."""
    tried: set[Settings] = set()
    for _ in range(1 if s.is_quick else 3):
        best = s.best()
        worth = WORTH_A_SPARE_LOAD if s.loads_left >= MANY_LOADS else WORTH_A_LOAD
        worth += s.noise_frac()  # as much may be luck
        found = None if best is None else _most_promising(s, at, ladder, tried)
        if found is None or best is None or found[1] > worth * best.request_s:
            return
        rival, time_s = found
        tried.add(rival)
        # a clear gain, or 5 % by the cache, is worth more than telling close finalists apart
        is_clear = best.request_s > CLEAR_GAIN * time_s or rival.type_k != best.settings.type_k
        yield from s.measure("layers", rival, reps=reps(s), spare=0 if is_clear else spare)


def clear_gain(s: Search, at: Settings, ladder: tuple[Rung, ...]) -> Asking[None]:
    """Load the combination that is predicted to be clearly faster, before time runs out."""
    best = s.best()
    found = None if best is None else _most_promising(s, at, ladder, set())
    if best is None or found is None or best.request_s <= CLEAR_GAIN * found[1]:
        return
    yield from s.measure("layers", found[0], reps=reps(s), spare=2)


def may_pin(s: Search, at: Settings) -> bool:
    """Whether the weights that ``at`` leaves in RAM may be copied and pinned there."""
    model, host = s.plan.space.model, s.plan.space.host
    in_ram = model.file_bytes - s.total_bytes(at)  # at most: caches and buffers are in it
    allowed = s.has_cpu_part(at) and not s.request_is_pinned("load_mode")
    most = min(PINNED_RAM_FRAC * host.ram_bytes, host.ram_bytes - PINNED_SPARE_BYTES)
    return allowed and in_ram <= most


def pinned_weights(s: Search, at: Settings, spare: int) -> Asking[None]:
    """Try copied (pinned) host weights where prefill with layers in RAM is worth it."""
    point = s.point(at)
    if point is None or point.request is None or s.request_is_pinned("load_mode"):
        return
    if at.load_mode is LoadMode.NONE or not at.devices or not may_pin(s, at):
        return
    gain = prefill_share(s, point) * PINNED_GAIN_FRAC
    if gain < PINNED_LEAST_FRAC:
        return
    spare = min(spare, 1) if gain > CLEAR_GAIN - 1 else spare
    # as it was asked for: other questions about copied weights then know this answer
    pinned = msgspec.structs.replace(s.as_asked(at), load_mode=LoadMode.NONE)
    if s.bounds.ok(pinned) and not _is_known_to_gain_nothing(s, pinned, point):
        yield from s.measure("load_mode", pinned, reps=reps(s), spare=spare)


def _is_known_to_gain_nothing(s: Search, pinned: Settings, mapped: Point) -> bool:
    """Whether copied weights were timed elsewhere and promise nothing here."""
    if not s.knows_copied():
        return False
    ladder = s.experts if mapped.rung in s.experts else s.layers
    guess = speed_model(s, ladder).predict(pinned)
    return guess is None or guess.request_s > (1 - LEAST_GAIN_FRAC) * mapped.request_s


def _most_promising(
    s: Search, at: Settings, ladder: tuple[Rung, ...], tried: set[Settings]
) -> tuple[Settings, float] | None:
    """Return the unmeasured combination with the least predicted time, on either ladder."""
    ladders = [ladder, *(other for other in (s.experts, s.layers) if other not in ((), ladder))]
    found = [f for f in (_most_promising_on(s, at, rungs, tried) for rungs in ladders) if f]
    return min(found, key=lambda f: f[1], default=None)


def _most_promising_on(
    s: Search, at: Settings, ladder: tuple[Rung, ...], tried: set[Settings]
) -> tuple[Settings, float] | None:
    """Return the unmeasured combination with the least predicted time on ``ladder``.

    The time is close to linear in layers, so every combination goes with as many as fit.
    """
    model = speed_model(s, ladder)
    found: list[tuple[float, int, Settings]] = []
    tops: dict[Settings, int | None] = {v: s.bounds.largest(ladder, v) for v in variants(s, at)}
    for order, (variant, top) in enumerate(tops.items()):
        if _is_only_smaller(variant, at.n_ubatch, tops):
            continue
        settings = None if top is None else ladder[top].of(variant)
        guess = None if settings is None else model.predict(settings)
        if settings is None or guess is None or settings in tried:
            continue
        if s.point(settings) is None and not s.is_dominated(settings):
            needed = KV_GAIN if variant.type_k != at.type_k else 1.0
            found.append((guess.request_s * needed, order, settings))
    if not found:
        return None
    time_s, _, settings = min(found, key=lambda f: f[:2])
    return settings, time_s


def _is_only_smaller(variant: Settings, n_ubatch: int, tops: Mapping[Settings, int | None]) -> bool:
    """Whether a larger batch, up to ``n_ubatch``, leaves room for as many layers."""
    wider = (
        msgspec.structs.replace(variant, n_ubatch=n)
        for n in {v.n_ubatch for v in tops}
        if variant.n_ubatch < n <= n_ubatch
    )
    return any((tops.get(w) or 0) >= (tops[variant] or 0) for w in wider)


def _moved(settings: Settings, to: Settings) -> Settings:
    return msgspec.structs.replace(
        settings, n_gpu_layers=to.n_gpu_layers, n_cpu_moe=to.n_cpu_moe, load_mode=to.load_mode
    )
