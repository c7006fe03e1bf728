"""How much memory there really is, found on loaded weights instead of by more loads.

After a launch ran out of memory the truth lies between what ran and what did not. A larger
context or batch on the weights that are there allocates what another layer would, costs a context
instead of a load, and comes in smaller steps. It ends with the one more failure that is allowed.
"""

from collections.abc import Iterable

import msgspec

from app.domain.settings import Settings
from app.sweep.cost import timed_s
from app.sweep.layers import probe_workload
from app.sweep.search import ROOM_STAGE, Asking, Search

STEPS = 24  # from what ran to what did not, at most
QUICK_STEPS = 8
LEAST_STEPS = 4
TIME_SHARE = 0.12  # of the budget's time, at most
BATCHES = (0.25, 0.5, 1, 2, 4)  # times the batch in use
CTX_STEP = 256


def find_room(s: Search, at: Settings, wanted: Iterable[int]) -> Asking[None]:
    """Grow the context on the loaded weights of ``at`` until it fails or all was proven.

    Args:
        s: The search; its ceiling follows from what runs and fails here.
        at: What ran.
        wanted: Bytes that would be worth knowing: what other configurations need.
    """
    good, bad = s.proven_bytes(at)
    workload = msgspec.structs.replace(probe_workload(s), n_gen=8)
    for target in _thinned(sorted(n for n in wanted if bad and good < n < bad), _n_steps(s, at)):
        settings = _needing(s, at, target) if target > s.proven_bytes(at)[0] else None
        if settings is None or s.is_dominated(settings):
            continue
        trial = yield from s.ask(ROOM_STAGE, settings, workload=workload, reps=(1, 1), max_s=1)
        if trial is None or not s.ran_clean(trial):
            return


def _n_steps(s: Search, at: Settings) -> int:
    """Return how many contexts may be tried: their time is bounded."""
    speed = s.speed_guess(at)
    step_s = 1.0 if speed is None else timed_s(probe_workload(s), speed, 1)
    most = QUICK_STEPS if s.is_quick else STEPS
    return max(LEAST_STEPS, min(most, int(TIME_SHARE * s.budget.max_s / max(step_s, 0.01))))


def _thinned(targets: list[int], n: int) -> list[int]:
    """Return at most ``n`` of ``targets``, evenly spread, the last one included."""
    if len(targets) <= n:
        return targets
    picked = {round((i + 1) * len(targets) / n) - 1 for i in range(n)}
    return [targets[i] for i in sorted(picked)]


def _needing(s: Search, at: Settings, wanted: int) -> Settings | None:
    """Return ``at`` with the context and batch that need the least, but ``wanted`` bytes."""
    found: list[tuple[int, Settings]] = []
    for factor in BATCHES:
        n_ubatch = int(at.n_ubatch * factor)
        if n_ubatch > at.n_batch:
            continue
        settings = _with_context(s, msgspec.structs.replace(at, n_ubatch=n_ubatch), wanted)
        if settings is not None:
            found.append((s.total_bytes(settings), settings))
    return min(found, key=lambda f: f[0], default=(0, None))[1]


def _with_context(s: Search, at: Settings, wanted: int) -> Settings | None:
    """Return ``at`` with the smallest context that needs at least ``wanted`` bytes."""
    trained = (s.plan.space.model.n_ctx_train or at.n_ctx) * at.n_seq_max
    largest = msgspec.structs.replace(at, n_ctx=max(at.n_ctx, trained // CTX_STEP * CTX_STEP))
    need = s.total_bytes(at)
    if not need or need >= wanted:
        return at if need else None
    most = 0 if s.bounds.refused(largest) else s.total_bytes(largest)
    if most < wanted:
        return None
    share = (wanted - need) / (most - need)
    n_ctx = at.n_ctx + -int(-share * (largest.n_ctx - at.n_ctx) // CTX_STEP) * CTX_STEP
    while n_ctx < largest.n_ctx:
        settings = msgspec.structs.replace(at, n_ctx=n_ctx)
        if s.total_bytes(settings) >= wanted:
            return settings
        n_ctx += CTX_STEP
    return largest
