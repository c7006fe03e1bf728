"""Why these knobs: what the others that were timed gave."""

from collections.abc import Iterator

import msgspec

from app.domain.settings import FlashAttn, LoadMode, Settings
from app.domain.sweep import Reason, SweepResult
from app.sweep.compare import difference
from app.sweep.points import Point
from app.sweep.reasons_time import reason
from app.sweep.search import Search


def explain_knobs(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    """Yield the reasons that are about knobs."""
    del result
    at, cores = winner.settings, search.plan.space.host.cores_physical
    for name, code, usual in (
        ("n_threads", "threads_chosen", cores),
        ("n_ubatch", "ubatch_chosen", Settings(n_gpu_layers=0).n_ubatch),
    ):
        chosen = getattr(at, name)
        rejected = against(search, winner, **{name: usual})
        if chosen != usual and rejected:
            yield reason(code, **{name: chosen, "instead": usual, **rejected})
    other = FlashAttn.OFF if at.flash_attn is FlashAttn.ON else FlashAttn.ON
    if rejected := against(search, winner, flash_attn=other):
        yield reason(f"flash_attn_{at.flash_attn}", **rejected)
    yield from _kv(search, winner)
    other_mode = LoadMode.NONE if at.load_mode is LoadMode.MMAP else LoadMode.MMAP
    if rejected := against(search, winner, load_mode=other_mode):
        yield reason(f"load_mode_{at.load_mode}", **rejected)


def _kv(search: Search, winner: Point) -> Iterator[Reason]:
    kind, request = winner.settings.type_k, search.plan.request
    allowed = () if "type_k" in request.pinned else request.kv_types
    others = [p for p in search.clean() if p.settings.type_k != kind]
    # of a type that was not allowed only the references were timed: it was no choice
    others = [p for p in others if p.settings.type_k in allowed]
    if not others:
        return
    rival, gain = others[0], gain_pct(winner, others[0])
    if kind == "f16":
        # a decision by rule: whether the two are told apart does not matter
        yield reason(
            "kv_kept",
            type_k=kind,
            rejected=rival.settings.type_k,
            gain_pct=-gain,
            trial=rival.indices[-1] + 1,
        )
    elif told_apart(winner, rival):
        instead = rival.settings.type_k
        yield reason("kv_chosen", type_k=kind, instead=instead, **behind(winner, rival))


def against(search: Search, winner: Point, **changes: object) -> dict[str, float]:
    """Return how much slower the winner is with ``changes``, and the trial that says so.

    Empty where that was not timed, or where measurement does not tell the two apart.
    """
    other = search.points().get(msgspec.structs.replace(winner.settings, **changes))
    if other is not None and other.request is not None:
        return behind(winner, other) if told_apart(winner, other) else {}
    own = search.screened(winner.settings)
    other = search.screened(msgspec.structs.replace(winner.settings, **changes))
    if own is None or other is None or other.request is None or own.request is None:
        return {}
    return behind(own, other)


def told_apart(winner: Point, other: Point) -> bool:
    """Whether ``other`` is slower than ``winner`` beyond what measurement can blur."""
    return difference(winner, other).low > 0


def behind(winner: Point, other: Point) -> dict[str, float]:
    """Return the data that every rejection has: ``gain_pct`` and ``trial``."""
    return {"gain_pct": gain_pct(winner, other), "trial": other.indices[-1] + 1}


def gain_pct(winner: Point, other: Point) -> float:
    """Return how much longer the request takes with ``other``, per cent."""
    return round(100 * (other.request_s / winner.request_s - 1), 1)
