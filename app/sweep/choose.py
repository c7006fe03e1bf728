"""From trials to the answer: recommendation, knee, cliff, baselines, curve, ties, reasons."""

from collections.abc import Callable

import msgspec

from app.domain.errors import ErrorInfo
from app.domain.memory import MemoryEstimate
from app.domain.outcome import OUTCOMES, Outcome
from app.domain.settings import Settings
from app.domain.sweep import (
    Cliff,
    ContextPoint,
    Recommended,
    SweepPlan,
    SweepResult,
    SweepStatus,
    Tie,
)
from app.domain.trial import Trial
from app.sweep.context import larger_contexts
from app.sweep.knee import cliff_between, find_knee, is_spilled
from app.sweep.layers import auto_fit_settings
from app.sweep.pick import family_heads, pick, resolve_ties
from app.sweep.points import Point
from app.sweep.reasons import explain
from app.sweep.search import Search
from app.sweep.speed_model import family_of
from app.sweep.start import base_settings, device_groups
from app.sweep.stats import rate


def choose(
    plan: SweepPlan,
    fits: Callable[[Settings], MemoryEstimate],
    trials: tuple[Trial, ...],
    status: SweepStatus,
    error: ErrorInfo | None = None,
) -> SweepResult:
    """Return the result that ``trials`` support, whatever their number.

    Args:
        plan: What was asked.
        fits: The dry run, for what was not measured.
        trials: Everything measured, in order.
        status: How the search ended.
        error: Cause, when it failed.
    """
    search = Search.of(plan, fits, trials)
    points = list(search.points().values())
    winner = pick(points)
    ties: tuple[Tie, ...] = ()
    if winner is not None:
        winner, ties = resolve_ties(winner, points)
    if winner is None and error is None and status is not SweepStatus.CANCELLED:
        status, error = SweepStatus.FAILED, _nothing_ran(trials)
    curve = () if winner is None else context_points(search, winner)
    cliff = None if winner is None else find_cliff(search, winner)
    reference = _auto_fit_point(search)
    result = SweepResult(
        status=status,
        recommended=_recommended(search, winner),
        knee=_recommended(search, _knee(points, winner)),
        cliff=cliff,
        baseline_auto_fit=_recommended(search, reference),
        baseline_cpu=_recommended(search, _cpu_point(points)),
        context_curve=curve,
        trials=_marked(trials, points),
        n_model_loads=search.n_loads,
        ties=ties,
        error=error,
    )
    if winner is None:
        return result
    return msgspec.structs.replace(result, reasons=explain(search, winner, result))


def find_cliff(search: Search, winner: Point) -> Cliff | None:
    """Return where more layers made it worse, next to the winner's placement."""
    family = family_of(winner.settings)
    every = [p for p in search.points().values() if family_of(p.settings) == family]
    same = sorted(every, key=lambda p: (p.total_bytes, p.settings.n_gpu_layers))
    above = [p for p in same if p.total_bytes > winner.total_bytes]
    above = above or _failed_above(search, winner)
    if not above:
        return None
    kind = cliff_between(winner, above[0])
    if kind is None:
        return None
    moe = winner.settings.n_cpu_moe != above[0].settings.n_cpu_moe
    knob = "n_cpu_moe" if moe else "n_gpu_layers"
    loss = None
    if above[0].request is not None:
        loss = 1 - winner.request_s / above[0].request_s
    return Cliff(
        knob=knob,
        last_good=getattr(winner.settings, knob),
        first_bad=getattr(above[0].settings, knob),
        kind=kind,
        loss_frac=loss,
    )


def context_points(search: Search, winner: Point) -> tuple[ContextPoint, ...]:
    """Return decode speed over depth on the winner's placement, and larger contexts that fit."""
    floor = search.plan.request.floor_tok_s
    found: dict[tuple[int, int], ContextPoint] = {}
    for trial in search.trials:
        asked = trial.request
        same = msgspec.structs.replace(asked.settings, n_ctx=winner.settings.n_ctx)
        is_curve = asked.stage == "context_curve" or asked.workload == search.workload
        if not is_curve or _with_flash(same, trial) != winner.settings:
            continue
        speed = rate(trial.decode)
        place = (asked.settings.n_ctx, asked.workload.depth)
        found[place] = ContextPoint(
            n_ctx=place[0],
            depth=place[1],
            decode_tok_s=speed,
            fits=speed is not None,
            meets_floor=None if floor is None or speed is None else speed.low >= floor,
        )
    for n_ctx in larger_contexts(search, winner.settings):
        bigger = msgspec.structs.replace(winner.settings, n_ctx=n_ctx)
        if not any(n == n_ctx for n, _ in found):
            fits = search.bounds.ok(bigger)
            found[n_ctx, n_ctx] = ContextPoint(
                n_ctx=n_ctx, depth=n_ctx, decode_tok_s=None, fits=fits
            )
            if not fits:
                break
    return tuple(found[k] for k in sorted(found))


def _with_flash(settings: Settings, trial: Trial) -> Settings:
    if trial.effective is None:
        return settings
    return msgspec.structs.replace(settings, flash_attn=trial.effective.flash_attn)


def _recommended(search: Search, point: Point | None) -> Recommended | None:
    if point is None or point.request is None:
        return None
    trials = [search.trials[i] for i in point.indices]
    last = next((t for t in reversed(trials) if t.decode), trials[-1])
    return Recommended(
        settings=last.effective or point.settings,
        prefill_tok_s=rate([s for t in trials for s in t.prefill]),
        decode_tok_s=rate([s for t in trials for s in t.decode]),
        request_s=point.request_s,
        device_bytes=point.device_bytes,
        trial=point.indices[-1],
    )


def _knee(points: list[Point], winner: Point | None) -> Point | None:
    """Return the saver alternative; the winner itself where nothing needs less."""
    knee = find_knee(points)
    if knee is None or winner is None or knee.total_bytes < winner.total_bytes:
        return knee
    return winner


def _auto_fit_point(search: Search) -> Point | None:
    groups = device_groups(search.plan)
    if not groups:
        return None
    settings = auto_fit_settings(search, base_settings(search.plan, groups[0]))
    point = None if settings is None else search.point(settings)
    return point if point is not None and point.request is not None else None


def _cpu_point(points: list[Point]) -> Point | None:
    cpu = [p for p in points if p.request is not None and not p.settings.n_gpu_layers]
    alone = [p for p in cpu if not p.settings.devices] or cpu
    return min(alone, key=lambda p: p.request_s, default=None)


def _failed_above(search: Search, winner: Point) -> list[Point]:
    """Return placements of the winner's knobs that ran out of memory, smallest first."""
    found = []
    for trial in search.trials:
        settings = trial.request.settings
        same = msgspec.structs.replace(family_of(settings), n_ubatch=winner.settings.n_ubatch)
        failed = OUTCOMES[trial.outcome].is_memory and not OUTCOMES[trial.outcome].has_speed
        more = (settings.n_gpu_layers, -settings.n_cpu_moe) > (
            winner.settings.n_gpu_layers,
            -winner.settings.n_cpu_moe,
        )
        if failed and more and same.type_k == winner.settings.type_k:
            found.append(Point(settings=settings, indices=(), load_ids=(), outcome=trial.outcome))
    return sorted(found, key=lambda p: (p.settings.n_gpu_layers, -p.settings.n_cpu_moe))


def _marked(trials: tuple[Trial, ...], points: list[Point]) -> tuple[Trial, ...]:
    """Return the trials with spilled ones marked: slower than the smaller neighbour."""
    heads = family_heads(points)
    marked = list(trials)
    for point in points:
        family = family_of(point.settings)
        smaller = [h for h in heads if family_of(h.settings) == family] or heads
        neighbour = min(smaller, key=lambda p: p.request_s, default=None)
        if is_spilled(point, neighbour):
            for i in point.indices:
                if marked[i].outcome is Outcome.OK:
                    marked[i] = msgspec.structs.replace(marked[i], outcome=Outcome.SPILLED)
    return tuple(marked)


def _nothing_ran(trials: tuple[Trial, ...]) -> ErrorInfo:
    """Return why there is no answer."""
    last = next((t.error for t in reversed(trials) if t.error is not None), None)
    why = f" The last trial said: {last.message}" if last is not None else ""
    return ErrorInfo(
        code="nothing_ran",
        message=f"No configuration of this model ran to its end.{why}",
        hint="Run rigtune doctor; a smaller model or context may help.",
    )
