"""Where the time of a token goes, what more memory would buy, and a cache type that is too slow."""

from collections.abc import Iterator

import msgspec

from app.domain.sweep import Reason, SweepRequest, SweepResult
from app.domain.units import GIB
from app.sweep.fitted import speed_model
from app.sweep.ladder import expert_ladder, layer_ladder
from app.sweep.points import Point
from app.sweep.search import Search
from app.sweep.speed_model import SpeedModel, family_of

FALLS_TO_CPU = 1.4  # a cache type this much slower on one placement is not computed by the device
SHALLOW = 8192  # tokens: deeper, a quantised cache is slower on fast devices too


def explain_time(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    """Yield the reasons that are about time."""
    yield from _token(search, winner, result)
    yield from _curve(search, winner, result)
    yield from _slow_cache(search, winner)


def _token(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    """Split a token's time: the device, the layers in RAM, the context; as measured."""
    at = winner.settings
    curve = [p for p in result.context_curve if p.n_ctx == at.n_ctx and p.decode_tok_s is not None]
    if len(curve) < 2 or curve[0].depth:
        return
    first, deepest = curve[0].decode_tok_s, curve[-1].decode_tok_s
    assert first is not None
    assert deepest is not None
    share = _ram_share(search, winner)
    if share is None:
        return
    total_ms = 1000 / deepest.median
    empty_ms = min(1000 / first.median, total_ms)  # readings may scatter more than depth costs
    ram_ms = min(share, 1.0) * empty_ms
    data: dict[str, float] = {
        "total_ms": round(total_ms, 2),
        "ram_ms": round(ram_ms, 2),
        "context_ms": round(max(0.0, total_ms - empty_ms), 2),
        "depth": curve[-1].depth,
    }
    if winner.settings.n_gpu_layers:
        yield reason("token_time", gpu_ms=round(empty_ms - ram_ms, 2), **data)
    else:
        yield reason("token_time_ram", **data)


def _ram_share(search: Search, winner: Point) -> float | None:
    """Return the share of a token's time that goes to layers in RAM: from the measured curve.

    ``None`` where too little of the curve was seen to tell. What the user pinned does not matter.
    """
    if not winner.settings.n_gpu_layers:
        return 1.0
    free, space = SweepRequest(), search.plan.space
    experts = expert_ladder(free, space)
    ladder = experts if winner.rung in experts else layer_ladder(free, space)
    if winner.rung == ladder[-1]:
        return 0.0
    if winner.rung not in ladder:
        return None
    last = len(ladder) - 1
    return _share(speed_model(search, ladder), winner, ladder.index(winner.rung), last) or None


def _share(model: SpeedModel, winner: Point, index: int, last: int) -> float:
    family = family_of(winner.settings)
    here, everything = model.phases(family, index), model.phases(family, last)
    if here is None or everything is None:
        return 0.0
    return max(0.0, 1 - everything[1] / here[1])


def _curve(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    """Say where the time of a token goes and what another GiB would buy, from the curve."""
    del result
    ladder = search.experts if winner.rung in search.experts else search.layers
    if not winner.settings.n_gpu_layers or winner.rung not in ladder:
        return
    index = ladder.index(winner.rung)
    left = len(ladder) - 1 - index
    model = speed_model(search, ladder)
    family = family_of(winner.settings)
    here = model.phases(family, index)
    everything = model.phases(family, len(ladder) - 1)
    if not left or here is None or everything is None or len(search.clean()) < 2:
        return
    share = max(0.0, 1 - everything[1] / here[1])
    if round(100 * share) <= 0:
        return  # the model has seen too little of the curve to say
    yield reason("ram_share", share_pct=round(100 * share), n_ram_layers=left)
    need = search.bounds.need(winner.settings).device_bytes()
    limit = {d: n + GIB for d, n in need.items()}
    more = 0
    for step in range(1, left + 1):
        there = search.bounds.need(ladder[index + step].of(winner.settings))
        if there.note is not None or any(
            n > limit.get(d, n) for d, n in there.device_bytes().items()
        ):
            break
        more = step
    guess = model.predict(ladder[index + more].of(winner.settings))
    if more and guess is not None and guess.request_s < winner.request_s:
        gain = round(100 * (winner.request_s / guess.request_s - 1))
        yield reason("next_gib", n_layers=more, gain_pct=gain)


def _slow_cache(search: Search, winner: Point) -> Iterator[Reason]:
    """Name a cache type that the device does not compute with: recognised by its speed."""
    points = search.points()
    for point in points.values():
        at = point.settings
        if not point.is_clean or not at.devices or search.workload.depth > SHALLOW:
            continue
        plain = points.get(msgspec.structs.replace(at, type_k="f16", type_v="f16"))
        if at.type_k == "f16" or plain is None or not plain.is_clean:
            continue
        ratio = point.decode_s / plain.decode_s
        if ratio >= FALLS_TO_CPU and winner.settings.type_k != at.type_k:
            yield reason(
                "kv_falls_to_cpu",
                type_k=at.type_k,
                slower_pct=round(100 * (ratio - 1)),
                trial=point.indices[-1] + 1,
            )
            return


def reason(code: str, **data: str | float | None) -> Reason:
    """Return a reason with its figures."""
    return Reason(code=code, data=data)
