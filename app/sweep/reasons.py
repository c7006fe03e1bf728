"""Why the answer is what it is: codes with data. ``assets/text`` has the words.

==================== =====================================================================
code                 data
==================== =====================================================================
everything_on_gpu    n_gpu_layers, left_mib
layers_bound         n_gpu_layers, everything, missing_mib, headroom_mib
experts_on_cpu       n_cpu_moe, n_layer
experts_beat_layers  gain_pct, trial
layers_beat_experts  gain_pct, trial
out_of_memory_seen   n_gpu_layers, n_cpu_moe, n_failed
spill_seen           n_gpu_layers, growth_mib, loss_pct, trial
cpu_leads            gain_pct, trial
prompt_on_gpu        gain_pct, trial
device_slower        device, tok_s, best_tok_s, trial
software_not_tried   device
device_too_full      device, free_mib
devices_worth        devices, gib, change_pct
split_chosen         tensor_split, gain_pct, trial
gpu_gain             factor
auto_fit_gain        gain_pct, n_gpu_layers, trial
auto_fit_close       gain_pct, n_gpu_layers, trial
auto_fit_equal       n_gpu_layers
auto_fit_barred      n_gpu_layers, gain_pct
threads_chosen       n_threads, instead, gain_pct, trial
ubatch_chosen        n_ubatch, instead, gain_pct, trial
flash_attn_off       gain_pct, trial
flash_attn_on        gain_pct, trial
kv_chosen            type_k, instead, gain_pct, trial
kv_kept              type_k, rejected, gain_pct, trial
load_mode_none       gain_pct, trial
load_mode_mmap       gain_pct, trial
token_time           total_ms, gpu_ms, ram_ms, context_ms, depth
token_time_ram       total_ms, ram_ms, context_ms, depth
ram_share            share_pct, n_ram_layers
next_gib             n_layers, gain_pct
kv_falls_to_cpu      type_k, slower_pct, trial
context_full         depth, tok_s, loss_pct
floor_met            floor_tok_s, low_tok_s, depth
floor_not_met        floor_tok_s, low_tok_s, depth
floor_nearest        floor_tok_s, depth, tok_s
floor_default        floor_tok_s
gpu_too_small        missing_mib, headroom_mib, n_ctx
larger_context       n_ctx
speed_fades          loss_pct, tok_s, minutes, temp_c
speed_lasts          tok_s, minutes
tie_resolved         n_tied, rule
not_separated        difference_pct, changes
measured_shallower   depth, goal_depth
disturbed            n_trials
budget_reached       max_loads, max_s
==================== =====================================================================

``gain_pct`` is how much longer the request took with the alternative: said only where measurement
tells the two apart, but for the codes that say otherwise. ``trial`` is the number, from 1, of the
trial that rejected it.
"""

from collections.abc import Callable, Iterator

from app.domain.outcome import OUTCOMES
from app.domain.sweep import GOAL_WORKLOADS, Reason, SweepResult, SweepStatus
from app.domain.trial import Trial
from app.domain.units import GIB, MIB
from app.sweep.context import floor_tok_s
from app.sweep.ladder import HOST, rung_of
from app.sweep.points import Point, is_disturbed
from app.sweep.reasons_knobs import against, behind, explain_knobs, gain_pct, told_apart
from app.sweep.reasons_rivals import explain_next_best, explain_references
from app.sweep.reasons_time import explain_time, reason
from app.sweep.search import Search
from app.sweep.soak import explain_soak
from app.sweep.start import base_settings, device_groups
from app.sweep.stats import rate

_GAINS = ("gain_pct", "loss_pct")

_Part = Callable[[Search, Point, SweepResult], Iterator[Reason]]


def explain(search: Search, winner: Point, result: SweepResult) -> tuple[Reason, ...]:
    """Return the reasons for ``winner``, most important first."""
    parts: tuple[_Part, ...] = (
        _placement, _surprises, explain_references, _devices, _worth, explain_knobs, explain_time,
        _context, explain_soak, _doubts,
    )  # fmt: skip
    every = (r for part in parts for r in part(search, winner, result))
    return tuple(r for r in every if _says_something(r))


def _says_something(reason: Reason) -> bool:
    """Whether the figure of ``reason`` supports its sentence: not "0 % longer", "-2 % less"."""
    figures = [round(float(v)) for n in _GAINS if (v := reason.data.get(n)) is not None]
    gap, factor = reason.data.get("difference_pct", 1), reason.data.get("factor", 2)
    return all(n > 0 for n in figures) and float(gap or 0) > 0 and float(factor or 0) > 1


def _placement(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    del result
    at = winner.settings
    blocks = search.plan.space.model.n_layer
    if not at.n_gpu_layers:
        yield from _too_small(search)
        return
    need = search.bounds.need(at)
    gpus = [d for d in need.devices if d.device != HOST and d.free_bytes is not None]
    left = min(((d.free_bytes or 0) - d.total_bytes for d in gpus), default=None)
    if at.n_gpu_layers > blocks and not at.n_cpu_moe:
        yield reason("everything_on_gpu", n_gpu_layers=at.n_gpu_layers, left_mib=_mib(left))
        return
    if at.n_cpu_moe:
        yield reason("experts_on_cpu", n_cpu_moe=at.n_cpu_moe, n_layer=blocks)
    yield from _bound(search, winner)
    yield from _against_other_ladder(search, winner)


def _too_small(search: Search) -> Iterator[Reason]:
    """Say which bound keeps everything off the GPU, where not even one layer fits."""
    groups = device_groups(search.plan)
    if not groups or len(search.ladder) < 2:
        return
    least = search.ladder[1].of(base_settings(search.plan, groups[0]))
    need = search.bounds.need(least)
    parts = [d for d in need.devices if d.device != HOST and d.free_bytes is not None]
    if search.bounds.ok(least) or need.note is not None or not parts:
        return
    asked = search.plan.request.headroom_bytes
    tightest = min(parts, key=lambda d: (d.free_bytes or 0) - d.total_bytes)
    headroom = tightest.headroom_bytes if asked is None else asked
    missing = tightest.total_bytes + headroom - (tightest.free_bytes or 0)
    yield reason(
        "gpu_too_small", missing_mib=_mib(missing), headroom_mib=_mib(headroom), n_ctx=least.n_ctx
    )


def _bound(search: Search, winner: Point) -> Iterator[Reason]:
    """Say what one rung more would have needed, where the dry run forbade it."""
    ladder = search.experts if rung_of(winner.settings) in search.experts else search.layers
    index = ladder.index(rung_of(winner.settings)) if winner.rung in ladder else len(ladder)
    if index + 1 >= len(ladder):
        return
    above = ladder[index + 1].of(winner.settings)
    if search.bounds.ok(above):
        return
    gpus = [d for d in search.bounds.need(above).devices if d.device != HOST]
    missing = max(
        (d.total_bytes + d.headroom_bytes - d.free_bytes for d in gpus if d.free_bytes is not None),
        default=None,
    )
    is_whole = winner.settings.n_gpu_layers > search.plan.space.model.n_layer
    if missing is not None and missing > 0 and not is_whole:
        yield reason(
            "layers_bound",
            n_gpu_layers=winner.settings.n_gpu_layers,
            everything=search.plan.space.model.n_layer + 1,
            missing_mib=_mib(missing),
            headroom_mib=_mib(max(d.headroom_bytes for d in gpus)),
        )


def _against_other_ladder(search: Search, winner: Point) -> Iterator[Reason]:
    if not search.experts:
        return
    has_experts = bool(winner.settings.n_cpu_moe)
    others = [
        p
        for p in search.clean()
        if p.settings.n_gpu_layers and bool(p.settings.n_cpu_moe) is not has_experts
    ]
    if others and told_apart(winner, others[0]):
        code = "experts_beat_layers" if has_experts else "layers_beat_experts"
        yield reason(code, **behind(winner, others[0]))


def _surprises(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    failed = [
        t
        for t in search.trials
        if OUTCOMES[t.outcome].is_memory and not OUTCOMES[t.outcome].has_speed
    ]
    if failed:
        least = min(
            failed,
            key=lambda t: sum(search.bounds.need(t.request.settings).device_bytes().values()),
        )
        yield reason(
            "out_of_memory_seen",
            n_gpu_layers=least.request.settings.n_gpu_layers,
            n_cpu_moe=least.request.settings.n_cpu_moe,
            n_failed=len({t.load_id for t in failed}),
        )
    grown = [p for p in search.points().values() if p.grew and p.request is not None]
    if grown and result.cliff is not None:
        least_grown = min(grown, key=lambda p: p.growth_bytes or 0)
        yield reason(
            "spill_seen",
            n_gpu_layers=least_grown.settings.n_gpu_layers,
            growth_mib=_mib(least_grown.growth_bytes),
            loss_pct=gain_pct(winner, least_grown),
            trial=least_grown.indices[-1] + 1,
        )


def _devices(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    """Say what other devices measured, and which were not worth a look."""
    del result
    looked: dict[tuple[str, ...], Trial] = {}
    for trial in search.trials:
        if trial.request.stage == "devices" and OUTCOMES[trial.outcome].has_speed:
            looked.setdefault(trial.request.settings.devices, trial)
    for devices, trial in looked.items():
        own = [
            t
            for t in search.trials
            if t.request.settings.devices == winner.settings.devices
            and t.request.workload == trial.request.workload
            and OUTCOMES[t.outcome].has_speed
        ]
        if devices == winner.settings.devices or not own:
            continue
        here, there = _decode_tok_s(own[-1]), _decode_tok_s(trial)
        names = ", ".join(devices)
        number = search.trials.index(trial) + 1
        yield reason("device_slower", device=names, tok_s=there, best_tok_s=here, trial=number)
    for device in search.plan.space.devices:
        if device.kind == "software" and not any(device.id in group for group in looked):
            yield reason("software_not_tried", device=device.id)
        if device.id in search.plan.too_full:
            free = _mib(device.free_bytes)
            yield reason("device_too_full", device=device.id, free_mib=free)


def _worth(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    """Say what a further device is worth: its memory, and what the request does with it."""
    del result
    best: dict[frozenset[str], Point] = {}
    for point in search.clean():
        best.setdefault(frozenset(point.settings.devices), point)
    free = {d.id: d.free_bytes for d in search.plan.space.devices}
    for more, together in best.items():
        for fewer, alone in best.items():
            mine = frozenset(winner.settings.devices) in (more, fewer)
            if mine and fewer and fewer < more:
                added = sorted(more - fewer)
                change = round(100 * (alone.request_s / together.request_s - 1))
                yield reason(
                    "devices_worth",
                    devices=", ".join(added),
                    gib=round(sum(free[d] for d in added) / GIB, 1),
                    change_pct=f"{change:+d}",
                )
    split = winner.settings.tensor_split
    if split and (rejected := against(search, winner, tensor_split="")):
        yield reason("split_chosen", tensor_split=split, **rejected)


def _decode_tok_s(trial: Trial) -> float | None:
    measured = rate(trial.decode)
    return None if measured is None else round(measured.median, 2)


def _context(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    at = winner.settings
    here = [p for p in result.context_curve if p.n_ctx == at.n_ctx and p.decode_tok_s is not None]
    if len(here) > 1:
        first, full = here[0].decode_tok_s, here[-1].decode_tok_s
        assert first is not None
        assert full is not None
        yield reason(
            "context_full",
            depth=here[-1].depth,
            tok_s=round(full.median, 2),
            loss_pct=round(100 * (1 - full.median / first.median)),
        )
        floor = floor_tok_s(search)
        if floor is not None:
            yield reason(
                "floor_met" if full.low >= floor else "floor_not_met",
                floor_tok_s=floor,
                low_tok_s=round(full.low, 2),
                depth=here[-1].depth,
            )
        if floor is not None and full.low < floor:
            fast = [p for p in here if p.decode_tok_s and p.decode_tok_s.low >= floor]
            if fast:
                yield reason(
                    "floor_nearest",
                    floor_tok_s=floor,
                    depth=fast[-1].depth,
                    tok_s=round(fast[-1].decode_tok_s.median, 2),  # type: ignore[union-attr]
                )
    if search.plan.request.floor_tok_s is None and floor_tok_s(search) is not None:
        yield reason("floor_default", floor_tok_s=floor_tok_s(search))
    larger = [p.n_ctx for p in result.context_curve if p.fits and p.n_ctx > at.n_ctx]
    if larger:
        yield reason("larger_context", n_ctx=max(larger))


def _doubts(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    if result.ties:
        yield reason("tie_resolved", n_tied=len(result.ties), rule=result.ties[0].rule)
    else:
        yield from explain_next_best(search, winner)
    goal = GOAL_WORKLOADS[search.plan.request.goal]
    depth = search.trials[winner.indices[-1]].request.workload.depth
    if depth < goal.depth:
        yield reason("measured_shallower", depth=depth, goal_depth=goal.depth)
    disturbed = sum(is_disturbed(t) for t in search.trials)
    if disturbed:
        yield reason("disturbed", n_trials=disturbed)
    if result.status is SweepStatus.BUDGET_REACHED:
        budget = search.budget
        yield reason("budget_reached", max_loads=budget.max_loads, max_s=round(budget.max_s))


def _mib(n_bytes: int | None) -> int | None:
    return None if n_bytes is None else round(n_bytes / MIB)
