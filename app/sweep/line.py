"""Rungs of one ladder speak for each other: seconds per token are linear in layers.

Measured on cards: R² 0.987–0.994. Where three rungs or more were timed with the same cache and
threads (two, and the CPU alone as the rough beginning of the line over layers), each is taken
somewhat nearer to the line through all of them, the more the wider its own interval: noise would
otherwise choose among neighbours that differ by 2–3 %. A ladder on which one rung lies clearly off
(a spill that nobody sees) is left as it was measured, and nothing that was not measured is ever
filled in.
"""

from collections.abc import Mapping, Sequence

import msgspec

from app.domain.settings import Settings
from app.sweep.kin import kin_of
from app.sweep.points import SLIGHT_GROWTH_BYTES, Demand, Point
from app.sweep.stats import Estimate, estimate

LEAST_RUNGS = 3
MISFIT_FRAC = 0.01  # a rung lies this far from the line, noise apart
EXACT_FRAC = 0.003  # no passes are believed more exactly
OFF = 2.5  # standard deviations from the line that are no noise
CPU_FRAC = 0.1  # the CPU alone lies so far from where the line over layers begins
NORMAL_975 = 1.96

Ladder = tuple[Settings, str, int]  # kin without placement, the knob that varies, the other's value
Line = tuple[float, float, float, float]  # weighted centre, value there, slope, its precision


def straighten(
    points: Mapping[Settings, Point],
    need: Demand,
    n_blocks: int,
    cpu_decode_s: float | None = None,
) -> dict[Settings, Point]:
    """Return ``points`` with decode taken towards the line of their ladder.

    Args:
        points: Kin have shared their passes already.
        need: The goal's request.
        n_blocks: Blocks of the model: one layer more is the output, a step of its own.
        cpu_decode_s: Seconds per token of the CPU alone: roughly where layers begin.
    """
    ladders: dict[Ladder, list[Point]] = {}
    for point in points.values():
        is_whole = not (point.growth_bytes or 0) > SLIGHT_GROWTH_BYTES
        if point.is_clean and is_whole and not point.disturbed and len(point.decode) > 1:
            for ladder in _ladders_of(point.settings, n_blocks):
                ladders.setdefault(ladder, []).append(point)
    nearer = dict(points)
    for (_, knob, _), members in sorted(ladders.items(), key=lambda item: len(item[1])):
        rungs = _rungs(members, knob)
        timed = {x: estimate(d) for x, d in rungs.items()}
        if knob == "n_gpu_layers" and cpu_decode_s is not None and len(rungs) > 1:
            half = CPU_FRAC * NORMAL_975 * cpu_decode_s
            low, high = cpu_decode_s - half, cpu_decode_s + half
            timed[0] = Estimate(median=cpu_decode_s, low=low, high=high)
        if len(timed) < LEAST_RUNGS:
            continue
        for x, decode in _on_line(timed).items():
            for point in members:
                if getattr(point.settings, knob) == x and point.decode == rungs.get(x):
                    nearer[point.settings] = _with(point, decode, need)
    return nearer


def _rungs(members: Sequence[Point], knob: str) -> dict[int, tuple[float, ...]]:
    """Return each rung's decode passes: most of them, where its kin did not share theirs."""
    rungs: dict[int, tuple[float, ...]] = {}
    for point in members:
        x = getattr(point.settings, knob)
        rungs[x] = max(rungs.get(x, ()), point.decode, key=len)
    return rungs


def _ladders_of(settings: Settings, n_blocks: int) -> list[Ladder]:
    """Return the ladders ``settings`` is a rung of: over layers, and over experts in RAM."""
    if not settings.n_gpu_layers > 0:
        return []
    plain = msgspec.structs.replace(kin_of(settings), n_gpu_layers=0, n_cpu_moe=0)
    over_experts: Ladder = (plain, "n_cpu_moe", settings.n_gpu_layers)
    if settings.n_gpu_layers > n_blocks:
        return [over_experts]
    return [(plain, "n_gpu_layers", settings.n_cpu_moe), over_experts]


def _on_line(rungs: Mapping[int, Estimate]) -> dict[int, Estimate]:
    """Return each rung's decode, nearer to the line; empty where one lies clearly off it."""
    own = {x: max(e.half_width / NORMAL_975, EXACT_FRAC * e.median) ** 2 for x, e in rungs.items()}
    misfit = {x: (MISFIT_FRAC * e.median) ** 2 for x, e in rungs.items()}
    weights = [1 / (own[x] + misfit[x]) for x in rungs]
    total = sum(weights)
    centre, value, slope, precision = _fit(rungs, weights)
    nearer: dict[int, Estimate] = {}
    for x, e in rungs.items():
        expected = value + slope * (x - centre)
        if abs(e.median - expected) > OFF * (own[x] + misfit[x]) ** 0.5:
            return {}
        kept = misfit[x] / (misfit[x] + own[x])
        middle = expected + kept * (e.median - expected)
        of_line = 1 / total + (x - centre) ** 2 / precision
        half = NORMAL_975 * min(own[x], kept * own[x] + (1 - kept) ** 2 * of_line) ** 0.5
        nearer[x] = Estimate(median=middle, low=middle - half, high=middle + half)
    return nearer


def _fit(rungs: Mapping[int, Estimate], weights: Sequence[float]) -> Line:
    """Return the weighted least squares line."""
    total = sum(weights)
    centre = sum(w * x for w, x in zip(weights, rungs, strict=True)) / total
    value = sum(w * e.median for w, e in zip(weights, rungs.values(), strict=True)) / total
    precision = sum(w * (x - centre) ** 2 for w, x in zip(weights, rungs, strict=True))
    mixed = zip(weights, rungs.items(), strict=True)
    slope = sum(w * (x - centre) * (e.median - value) for w, (x, e) in mixed) / precision
    return centre, value, slope, precision


def _with(point: Point, decode: Estimate, need: Demand) -> Point:
    prompt = estimate(point.prefill)
    middle = need.n_prompt * prompt.median + need.n_gen * decode.median
    half = ((need.n_prompt * prompt.half_width) ** 2 + (need.n_gen * decode.half_width) ** 2) ** 0.5
    request = Estimate(median=middle, low=middle - half, high=middle + half)
    return msgspec.structs.replace(point, request=request)
