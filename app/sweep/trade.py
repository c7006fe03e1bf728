"""Knobs that change how many layers fit, weighed against the layers; and pinned host weights."""

from collections.abc import Iterator

import msgspec

from app.domain.settings import LoadMode, Settings
from app.sweep.knobs import DEFAULT_UBATCH, kv_variants, prefill_share, reps, screen_reps, ubatches
from app.sweep.ladder import Rung
from app.sweep.pick import KV_GAIN
from app.sweep.points import Point
from app.sweep.search import Asking, Search

WORTH_A_LOAD = 1.01  # a predicted time within 1 % of the best may turn out better
CLEAR_GAIN = 1.03
PINNED_RAM_FRAC = 0.4
PINNED_GAIN_FRAC = 0.75  # of the prefill time, at most (3.8–4.8× measured)


def variants(s: Search, at: Settings) -> Iterator[Settings]:
    """Yield ``at`` and the combinations of batch and KV type that need other memory."""
    batches = [at.n_ubatch]
    if not s.request_is_pinned("n_ubatch"):
        batches += [*ubatches(at), DEFAULT_UBATCH]
    for kind in (at, *kv_variants(s, at)):
        for n in dict.fromkeys(batches):
            yield msgspec.structs.replace(kind, n_ubatch=n)


def learn_here(s: Search, here: Settings, at: Settings) -> Asking[None]:
    """Screen on the loaded placement of ``here`` the larger batches that do not fit at ``at``'s."""
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
        for settings in (local, rival):
            if s.screened(settings) is None and s.may_screen(settings):
                yield from s.ask(
                    "ubatch", settings, workload=s.screen, reps=screen_reps(s), max_s=8
                )


def trade(s: Search, at: Settings, ladder: tuple[Rung, ...], spare: int) -> Asking[None]:
    """Load the placements at which another batch or KV type is predicted to win."""
    tried: set[Settings] = set()
    for _ in range(1 if s.is_quick else 3):
        best = s.best()
        found = None if best is None else _most_promising(s, at, ladder, best, tried)
        if found is None or best is None:
            return
        rival, time_s = found
        tried.add(rival)
        # a clear gain is worth more than telling close finalists apart
        keep = min(spare, 1) if best.request_s > CLEAR_GAIN * time_s else spare
        yield from s.measure("layers", rival, reps=reps(s), spare=keep)


def pinned_weights(s: Search, at: Settings, spare: int) -> Asking[None]:
    """Try copied (pinned) host weights where prefill with layers in RAM is worth it."""
    point = s.point(at)
    if point is None or point.request is None or s.request_is_pinned("load_mode"):
        return
    if at.load_mode is LoadMode.NONE or not at.devices:
        return
    model, host = s.plan.space.model, s.plan.space.host
    in_ram = model.file_bytes - point.total_bytes
    if in_ram <= 0 or in_ram > PINNED_RAM_FRAC * host.ram_bytes:
        return
    if prefill_share(s, point) * PINNED_GAIN_FRAC < 0.02:
        return
    pinned = msgspec.structs.replace(at, load_mode=LoadMode.NONE)
    if s.bounds.ok(pinned):
        yield from s.measure("load_mode", pinned, reps=reps(s), spare=spare)


def _most_promising(
    s: Search, at: Settings, ladder: tuple[Rung, ...], best: Point, tried: set[Settings]
) -> tuple[Settings, float] | None:
    """Return the unmeasured combination with the least predicted time, if that may win.

    The time is close to linear in layers, so every combination goes with as many as fit.
    """
    model = s.model(ladder)
    found: list[tuple[float, int, Settings]] = []
    own_top = s.bounds.largest(ladder, at) or 0
    for order, variant in enumerate(variants(s, at)):
        top = s.bounds.largest(ladder, variant)
        if top is not None and variant.n_ubatch < at.n_ubatch and top <= own_top:
            continue  # a smaller batch is only worth the layers that it makes room for
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
    return (settings, time_s) if time_s <= WORTH_A_LOAD * best.request_s else None


def _moved(settings: Settings, to: Settings) -> Settings:
    return msgspec.structs.replace(
        settings, n_gpu_layers=to.n_gpu_layers, n_cpu_moe=to.n_cpu_moe, load_mode=to.load_mode
    )
