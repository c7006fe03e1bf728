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
    SweepRequest,
    SweepResult,
    SweepStatus,
    Tie,
)
from app.domain.trial import Trial
from app.sweep.context import (
    CURVE_STAGE,
    floor_tok_s,
    full_depth,
    larger_contexts,
    may_grow,
    meets,
)
from app.sweep.knee import cliff_between, find_knee, is_spilled
from app.sweep.ladder import layer_ladder
from app.sweep.layers import auto_fit_settings
from app.sweep.pick import family_heads, pick, resolve_ties
from app.sweep.points import SPILL_BYTES, Point, build_points, counted, usable
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
    winner = pick(points) or _shallower(search, points)
    ties: tuple[Tie, ...] = ()
    if winner is not None and winner in points:
        winner, ties = resolve_ties(winner, points)
    if winner is None and error is None and status is not SweepStatus.CANCELLED:
        status, error = SweepStatus.FAILED, _nothing_ran(search)
    curve = () if winner is None else context_points(search, winner)
    cliff = None if winner is None else find_cliff(search, winner)
    reference = _auto_fit_point(search)
    result = SweepResult(
        status=status,
        recommended=_with_longest(search, winner),
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
    """Return where more layers made it worse: on the winner's own curve, else on another.

    A curve is one set of knobs; the side before the first bad rung is the bound.
    """
    curves: dict[Settings, list[Point]] = {}
    for point in search.points().values():
        curves.setdefault(family_of(point.settings), []).append(point)
    own = family_of(winner.settings)
    for family in sorted(curves, key=lambda f: (f != own, -len(curves[f]))):
        if family.type_k == own.type_k:
            cliff = _cliff_on(search, curves[family])
            if cliff is not None:
                return cliff
    return None


def _cliff_on(search: Search, curve: list[Point]) -> Cliff | None:
    """Return the first cliff of one curve, by rising need."""
    needs = {p.settings: search.bounds.need(p.settings).device_bytes() for p in curve}
    ordered = sorted(curve, key=lambda p: sum(needs[p.settings].values()))
    for i, after in enumerate(ordered):
        smaller = (p for p in reversed(ordered[:i]) if _is_smaller(p.settings, after.settings))
        before = next((p for p in smaller if p.is_clean), None)
        kind = None if before is None else cliff_between(before, after)
        if before is None or kind is None:
            continue
        moe = before.settings.n_gpu_layers == after.settings.n_gpu_layers
        knob = "n_cpu_moe" if moe else "n_gpu_layers"
        slower = after.request is not None
        return Cliff(
            knob=knob,
            last_good=getattr(before.settings, knob),
            first_bad=getattr(after.settings, knob),
            kind=kind,
            loss_frac=1 - before.request_s / after.request_s if slower else None,
        )
    return None


def _is_smaller(one: Settings, other: Settings) -> bool:
    """Whether ``one`` has less on the GPU, by the knob a cliff is named for."""
    if one.n_gpu_layers == other.n_gpu_layers:
        return one.n_cpu_moe > other.n_cpu_moe
    return one.n_gpu_layers < other.n_gpu_layers


def _shallower(search: Search, points: list[Point]) -> Point | None:
    """Return the best of what ran at all, where nothing ran with the goal's workload.

    What ran out of memory with more tokens in the context is no answer.
    """
    full = [p.settings for p in points if p.is_memory or p.grew]
    works = {t.request.workload for t in search.trials if usable(t)}
    for work in sorted(works, key=lambda w: (w.depth, w.n_prompt, w.n_gen), reverse=True):
        found = build_points(search.trials, work, search.demand).values()
        winner = pick([p for p in found if p.settings not in full and search.may_win(p.settings)])
        if winner is not None:
            return winner
    return None


def context_points(search: Search, winner: Point) -> tuple[ContextPoint, ...]:
    """Return decode speed over depth on the winner's placement, and larger contexts that fit."""
    floor = floor_tok_s(search)
    found: dict[tuple[int, int], ContextPoint] = {}
    own = counted([search.trials[i] for i in winner.indices])
    here = (winner.settings.n_ctx, search.trials[winner.indices[-1]].request.workload.depth)
    for trial in search.trials:
        asked = trial.request
        same = msgspec.structs.replace(asked.settings, n_ctx=winner.settings.n_ctx)
        is_curve = asked.stage == CURVE_STAGE or asked.workload == search.workload
        if not is_curve or _with_flash(same, trial) != winner.settings:
            continue
        speed = rate(trial.decode)
        place = (asked.settings.n_ctx, asked.workload.depth)
        if place == here:
            speed = rate([s for t in own for s in t.decode])
        found[place] = ContextPoint(
            n_ctx=place[0],
            depth=place[1],
            decode_tok_s=speed,
            fits=speed is not None and (trial.shared_growth_bytes or 0) <= SPILL_BYTES,
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
    trials = counted([search.trials[i] for i in point.indices])
    last = trials[-1]
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


def _with_longest(search: Search, winner: Point | None) -> Recommended | None:
    """Return the winner; for ``long_context`` in the largest context that keeps the floor."""
    answer = _recommended(search, winner)
    floor = floor_tok_s(search)
    if answer is None or floor is None or not may_grow(search):
        return answer
    best = planned = answer.settings.n_ctx
    for index, trial in enumerate(search.trials):
        n_ctx = trial.request.settings.n_ctx
        is_full = trial.request.workload.depth == full_depth(search, n_ctx)
        if trial.request.stage != CURVE_STAGE or not is_full or n_ctx < best or n_ctx == planned:
            continue
        if trial.effective is not None and meets(trial, floor):
            best = n_ctx
            answer = Recommended(
                settings=trial.effective,
                prefill_tok_s=rate(trial.prefill),
                decode_tok_s=rate(trial.decode),
                request_s=None,
                device_bytes=trial.device_bytes,
                trial=index,
            )
    return answer


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


def _nothing_ran(search: Search) -> ErrorInfo:
    """Return why there is no answer; less memory is advice only where memory was the cause."""
    trials = search.trials
    if not trials and search.load_s() > search.seconds_left:
        return ErrorInfo(
            code="budget_too_small",
            message=f"One load of this model takes about {search.load_s():.0f} s (estimated), "
            f"which the budget of {search.budget.max_s:.0f} s does not hold: nothing was loaded.",
            hint="Use a larger --budget, or a smaller model.",
        )
    last = next((t.error for t in reversed(trials) if t.error is not None), None)
    why = f" The last trial said: {last.message}" if last is not None else ""
    what = "No configuration of this model ran to its end."
    hint = "Run rigtune doctor."
    if any(OUTCOMES[t.outcome].is_memory for t in trials):
        hint = "Run rigtune doctor; a smaller model or context may help."
    elif any(t.outcome is Outcome.CRASHED for t in trials):
        what = "The engine crashed before any configuration of this model ran to its end."
        hint = "Try again; if it repeats, run rigtune doctor."
    if any(usable(t) for t in trials) and search.plan.request.pinned:
        what = f"No configuration with {_pins(search)} ran to its end; others did."
        hint = _nearest(search)
    return ErrorInfo(code="nothing_ran", message=what + why, hint=hint)


def _pins(search: Search) -> str:
    return ", ".join(f"{k} = {v}" for k, v in search.plan.request.pinned.items())


def _nearest(search: Search) -> str:
    """Return what is possible instead of the pins that were not."""
    plan, groups = search.plan, device_groups(search.plan)
    if "n_gpu_layers" in plan.request.pinned and groups:
        ladder = layer_ladder(SweepRequest(), plan.space)
        index = search.bounds.largest(ladder, base_settings(plan, groups[0])) or 0
        return f"At most {ladder[index].n_gpu_layers} GPU layers seem to fit; leave the pin out."
    return "Leave a pin out."
