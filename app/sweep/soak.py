"""Stage 6, thorough searches only: does the speed last once everything is warm?

One long trial of the answer. A card that slows down says so in its own passes: the last quarter
against the first.
"""

from collections.abc import Iterator
from statistics import median

import msgspec

from app.domain.sweep import Reason, SweepResult
from app.domain.trial import Trial
from app.sweep.context import CURVE_PROMPT
from app.sweep.cost import timed_s
from app.sweep.points import Point, usable
from app.sweep.reasons_time import reason
from app.sweep.search import Asking, Search
from app.sweep.stats import seconds_per_token

SOAK_STAGE = "soak"
SOAK_S = 240.0  # coolers of desktops and laptops settle within a few minutes
LEAST_PASSES = 12
LOSS_FRAC = 0.05  # a smaller loss is nothing to speak of


def soak(s: Search) -> Asking[None]:
    """Run the answer for some minutes."""
    winner = s.answer()
    if winner is None or not s.is_thorough:
        return
    asked = s.as_asked(winner.settings)
    # another workload: these passes are warm ones and must not mix with what was compared
    work = msgspec.structs.replace(s.workload, n_prompt=CURVE_PROMPT)
    speed = s.speed_guess(asked)
    pass_s = 0.0 if speed is None else timed_s(work, speed, 2) - timed_s(work, speed, 1)
    left_s = min(SOAK_S, 0.5 * s.seconds_left)
    n = int(left_s / pass_s) if pass_s > 0 else 0
    if n >= LEAST_PASSES:
        yield from s.ask(SOAK_STAGE, asked, workload=work, reps=(n, n), max_s=left_s)


def explain_soak(search: Search, winner: Point, result: SweepResult) -> Iterator[Reason]:
    """Say how much of the speed lasts."""
    del winner, result
    trial = next((t for t in search.trials if t.request.stage == SOAK_STAGE and usable(t)), None)
    if trial is None or len(trial.decode) < LEAST_PASSES:
        return
    times = seconds_per_token(trial.decode)
    quarter = len(times) // 4
    first, last = median(times[:quarter]), median(times[-quarter:])
    minutes = round(sum(s.ns for s in (*trial.prefill, *trial.decode)) / 60e9, 1)
    loss = 1 - first / last
    figures = {"minutes": minutes, "tok_s": round(1 / last, 2)}
    if loss > LOSS_FRAC:
        yield reason("speed_fades", loss_pct=round(100 * loss), temp_c=_hottest(trial), **figures)
    else:
        yield reason("speed_lasts", **figures)


def _hottest(trial: Trial) -> float | None:
    window = trial.telemetry
    return max(window.temp_max_c.values(), default=None) if window is not None else None
