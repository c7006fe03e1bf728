"""Turns trials into points of a plot and rows of its table. Pure: no Qt, no pyqtgraph."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from app.domain.outcome import OUTCOMES, Outcome
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.sweep import Recommended, SweepResult
from app.domain.trial import Rate, Trial
from app.sweep.stats import rate

Measure = Literal["decode", "prefill"]
Kind = Literal["measured", "spilled", "failed"]

KNOBS = ("n_gpu_layers", "n_cpu_moe", "n_threads", "n_ubatch")
TRIAL = "trial"


class PlotPoint(Record, frozen=True, kw_only=True):
    """One trial in the plot.

    Attributes:
        index: Position in the list of trials.
        x: Value of the knob.
        speed: Median with its interval, tok/s; ``None`` where there is no speed.
        kind: How it is drawn.
    """

    index: int
    x: float
    speed: Rate | None
    kind: Kind


def settings_of(trial: Trial) -> Settings:
    """Return what ran, or what was asked where nothing did."""
    return trial.effective or trial.request.settings


def knob_value(trial: Trial, knob: str, index: int) -> float:
    """Return where a trial lies on the axis of ``knob``."""
    return float(index + 1 if knob == TRIAL else getattr(settings_of(trial), knob))


def varied_knobs(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return the knobs that differ between trials, most values first, then the trial number."""
    values = {k: {knob_value(t, k, 0) for t in trials} for k in KNOBS}
    varied = sorted((k for k in KNOBS if len(values[k]) > 1), key=lambda k: -len(values[k]))
    return (*varied, TRIAL)


def usual_depth(trials: Sequence[Trial]) -> int | None:
    """Return the depth most trials were timed at: the goal's."""
    counts = Counter(t.request.workload.depth for t in trials)
    return counts.most_common(1)[0][0] if counts else None


def points(trials: Sequence[Trial], knob: str, measure: Measure) -> tuple[PlotPoint, ...]:
    """Return the trials at the usual depth as points over ``knob``."""
    depth = usual_depth(trials)
    found = []
    for index, trial in enumerate(trials):
        if trial.request.workload.depth != depth or trial.outcome is Outcome.CANCELLED:
            continue
        speed = speed_of(trial, measure)
        found.append(
            PlotPoint(
                index=index, x=knob_value(trial, knob, index), speed=speed,
                kind=_kind(trial, speed),
            )
        )  # fmt: skip
    return tuple(found)


def speed_of(trial: Trial, measure: Measure) -> Rate | None:
    """Return a trial's speed; ``None`` when it has none."""
    if not OUTCOMES[trial.outcome].has_speed:
        return None
    return rate(trial.decode if measure == "decode" else trial.prefill)


def best_line(found: Sequence[PlotPoint]) -> tuple[tuple[float, float], ...]:
    """Return the best measured speed at each place, from left to right."""
    best: dict[float, float] = {}
    for point in found:
        if point.speed is not None and point.kind == "measured":
            best[point.x] = max(best.get(point.x, 0.0), point.speed.median)
    return tuple(sorted(best.items()))


BAND_KNOBS = ("n_gpu_layers", "n_cpu_moe")
BAND_FRAC = 0.08
"""Median error of a curve predicted from its ends (``app.sweep.speed_model``)."""


def predicted_band(found: Sequence[PlotPoint]) -> tuple[tuple[float, float, float], ...]:
    """Return the expected speed per whole value between measured ones: (x, low, high).

    Seconds per token are close to linear in what left the GPU, so the line between two measured
    points bends upwards in tokens per second. Nothing is said beyond the measured points.
    """
    line = best_line(found)
    band: list[tuple[float, float, float]] = []
    for (x0, y0), (x1, y1) in pairwise(line):
        for x in range(int(x0), int(x1)):
            share = (x - x0) / (x1 - x0)
            speed = 1 / ((1 - share) / y0 + share / y1)
            spread = BAND_FRAC if x > x0 else 0.0
            band.append((float(x), speed * (1 - spread), speed * (1 + spread)))
    return (*band, *((x, y, y) for x, y in line[-1:]))


def best_index(trials: Sequence[Trial]) -> int | None:
    """Return the trial with the fastest decode at the usual depth that may win."""
    depth = usual_depth(trials)
    speeds = {
        i: speed.median
        for i, t in enumerate(trials)
        if t.request.workload.depth == depth
        and OUTCOMES[t.outcome].may_win
        and (speed := speed_of(t, "decode")) is not None
    }
    return max(speeds, key=lambda i: speeds[i]) if speeds else None


def distinct_knee(result: SweepResult) -> Recommended | None:
    """Return the knee, unless it is the recommendation itself."""
    return result.knee if result.knee is None or is_other(result.knee, result) else None


def is_other(point: Recommended, result: SweepResult) -> bool:
    """Whether ``point`` is another configuration than the recommended one."""
    best = result.recommended
    return best is None or (point.trial != best.trial and point.settings != best.settings)


def depth_of(result: SweepResult) -> int | None:
    """Return the tokens in context at which the recommended speeds were measured."""
    point = result.recommended
    if point is None or not 0 <= point.trial < len(result.trials):
        return None
    return result.trials[point.trial].request.workload.depth


def context_points(result: SweepResult) -> tuple[tuple[float, Rate], ...]:
    """Return decode speed by tokens in context."""
    found = [(float(p.depth), p.decode_tok_s) for p in result.context_curve]
    return tuple(sorted((x, r) for x, r in found if r is not None))


def _kind(trial: Trial, speed: Rate | None) -> Kind:
    if trial.outcome is Outcome.SPILLED:
        return "spilled"
    return "failed" if speed is None else "measured"
