"""Stage 4: speed as the context fills, and the largest context that is still useful."""

import msgspec

from app.domain.settings import Settings
from app.domain.sweep import GOAL_WORKLOADS, Goal
from app.domain.trial import Trial, Workload
from app.sweep.points import SPILL_BYTES
from app.sweep.search import Asking, Search
from app.sweep.stats import rate

CURVE_STAGE = "context_curve"
CURVE_PROMPT = 64
LARGER_CONTEXTS = 2  # beyond the plan's context, where the goal does not ask for more
READING_TOK_S = 6.0  # about as fast as one reads: the floor where the user named none


def floor_tok_s(s: Search) -> float | None:
    """Return the slowest decode that counts as useful; only long contexts need a default."""
    floor = s.plan.request.floor_tok_s
    if floor is None and s.plan.request.goal is Goal.LONG_CONTEXT:
        return READING_TOK_S
    return floor


def context_curve(s: Search) -> Asking[None]:
    """Time the winner's decode at other depths of its context, then in larger contexts."""
    winner = s.answer()
    if winner is None:
        return
    asked = s.as_asked(winner.settings)
    for settings, depth in curve_plan(s, asked):
        work = curve_workload(s, depth)
        share = 0.5 if s.is_quick else 0.7
        if s.is_dominated(settings):
            continue
        if s.expected_s(settings, work, 2) <= share * s.seconds_left:
            yield from s.ask(CURVE_STAGE, settings, workload=work, reps=(2, 4), max_s=10)


def curve_workload(s: Search, depth: int) -> Workload:
    """Return a short look at decode with ``depth`` tokens in the context."""
    return Workload(
        n_prompt=CURVE_PROMPT, n_gen=s.workload.n_gen, depth=depth, n_seq=s.workload.n_seq
    )


def may_grow(s: Search) -> bool:
    """Whether the answer may have a larger context than the plan: the goal's point, no pin."""
    return s.plan.request.goal is Goal.LONG_CONTEXT and not s.request_is_pinned("n_ctx")


def longest_context(s: Search) -> Asking[None]:
    """For the goal ``long_context``: grow the context until decode falls below the floor.

    Each context gets the placement that is the largest for it.
    """
    winner, floor = s.answer(), floor_tok_s(s)
    if winner is None or floor is None or not may_grow(s):
        return
    asked = s.as_asked(winner.settings)
    ladder = s.experts if winner.rung in s.experts else s.layers
    for n_ctx in larger_contexts(s, asked):
        bigger = msgspec.structs.replace(asked, n_ctx=n_ctx)
        index = s.bounds.largest(ladder, bigger) if asked.devices else None
        settings = bigger if index is None else ladder[index].of(bigger)
        work = curve_workload(s, full_depth(s, n_ctx))
        if not s.bounds.ok(settings) or s.is_dominated(settings):
            return
        trial = s.answered(settings, work)
        if trial is None:
            trial = yield from s.ask(
                CURVE_STAGE, settings, workload=work, reps=(3, 6), max_s=20, essential=True
            )
        if trial is None or not meets(trial, floor):
            return


def meets(trial: Trial, floor: float) -> bool:
    """Whether the lower bound of the trial's decode speed reaches ``floor``, tok/s, unspilled."""
    speed, growth = rate(trial.decode), trial.shared_growth_bytes or 0
    return speed is not None and speed.low >= floor and growth <= SPILL_BYTES


def full_depth(s: Search, n_ctx: int) -> int:
    """Return the depth at which the answer fills a context of ``n_ctx`` tokens, per slot."""
    return n_ctx // s.plan.workload.n_seq - GOAL_WORKLOADS[s.plan.request.goal].n_gen


def curve_plan(s: Search, asked: Settings) -> list[tuple[Settings, int]]:
    """Return (settings, depth) worth a look: full context first, because the floor needs it."""
    full = full_depth(s, asked.n_ctx)
    depths = [full] if s.is_quick else [full, 0]
    plan = [(asked, d) for d in depths if d != s.workload.depth and d >= 0]
    if s.is_quick or s.request_is_pinned("n_ctx"):
        return plan
    for n_ctx in larger_contexts(s, asked)[:LARGER_CONTEXTS]:
        bigger = msgspec.structs.replace(asked, n_ctx=n_ctx)
        if s.bounds.ok(bigger):
            plan.append((bigger, full_depth(s, n_ctx)))
    return plan


def larger_contexts(s: Search, asked: Settings) -> list[int]:
    """Return powers of two above the plan's context that the model was trained for."""
    limit = (s.plan.space.model.n_ctx_train or asked.n_ctx) * s.plan.workload.n_seq
    sizes = [1 << n for n in range(8, 25)]
    return [
        n
        for n in sizes
        if asked.n_ctx < n <= limit
        and not s.bounds.refused(msgspec.structs.replace(asked, n_ctx=n))
    ]
