"""How much memory there really is, found on loaded weights instead of by more loads.

After a launch ran out of memory the truth lies between what ran and what did not. A larger
context or batch on the weights that are there allocates what another layer would, costs a context
instead of a load, and comes in smaller steps. It ends with the one more failure that is allowed.
"""

import msgspec

from app.domain.settings import Settings
from app.sweep.layers import probe_workload
from app.sweep.search import ROOM_STAGE, Asking, Search, timed_s

STEPS = 12  # from what ran to what did not
QUICK_STEPS = 5
TIME_SHARE = 0.12  # of the budget's time, at most
BATCHES = (1, 2, 4)  # times the batch in use
MARGIN = 0.5  # a step this much smaller than wanted still tells something
CTX_STEP = 256


def find_room(s: Search, at: Settings, rung_bytes: int) -> Asking[None]:
    """Grow the context on the loaded weights of ``at`` until it fails or all was proven.

    Args:
        s: The search; its ceiling follows from what runs and fails here.
        at: What ran.
        rung_bytes: What one rung more takes: smaller steps would decide nothing.
    """
    good, bad = s.proven_bytes(at)
    if bad is None or bad - good < rung_bytes:
        return
    workload = msgspec.structs.replace(probe_workload(s), n_gen=8)
    speed = s.speed_guess(at)
    step_s = 1.0 if speed is None else timed_s(workload, speed, 1)
    steps = QUICK_STEPS if s.is_quick else STEPS
    steps = max(2, min(steps, int(TIME_SHARE * s.budget.max_s / max(step_s, 0.01))))
    least = rung_bytes // 2
    step = max(least, -(-(bad - good) // steps))
    for _ in range(2 * steps):
        step = min(step, (bad - good) // 2)
        settings = None if step < least else _needing(s, at, good + step)
        if settings is None or s.total_bytes(settings) < good + MARGIN * step:
            return
        trial = yield from s.ask(ROOM_STAGE, settings, workload=workload, reps=(1, 1), max_s=1)
        if trial is None or not s.ran_clean(trial):
            return
        good = s.total_bytes(settings)


def _needing(s: Search, at: Settings, wanted: int) -> Settings | None:
    """Return ``at`` with the context and batch that need the most below ``wanted`` bytes."""
    found: list[tuple[int, Settings]] = []
    for factor in BATCHES:
        n_ubatch = at.n_ubatch * factor
        if n_ubatch > at.n_batch:
            continue
        settings = _with_context(s, msgspec.structs.replace(at, n_ubatch=n_ubatch), wanted)
        if settings is not None:
            found.append((s.total_bytes(settings), settings))
    return max(found, key=lambda f: f[0], default=(0, None))[1]


def _with_context(s: Search, at: Settings, wanted: int) -> Settings | None:
    """Return ``at`` with the largest context that needs at most ``wanted`` bytes."""
    trained = (s.plan.space.model.n_ctx_train or at.n_ctx) * at.n_seq_max
    largest = msgspec.structs.replace(at, n_ctx=max(at.n_ctx, trained // CTX_STEP * CTX_STEP))
    need = s.total_bytes(at)
    if not need or need > wanted:
        return None
    if s.bounds.refused(largest):
        return at
    most = s.total_bytes(largest)
    if most <= wanted:
        return largest
    share = (wanted - need) / (most - need)
    n_ctx = at.n_ctx + int(share * (largest.n_ctx - at.n_ctx)) // CTX_STEP * CTX_STEP
    while n_ctx > at.n_ctx:
        settings = msgspec.structs.replace(at, n_ctx=n_ctx)
        if s.total_bytes(settings) <= wanted:
            return settings
        n_ctx -= CTX_STEP
    return at
