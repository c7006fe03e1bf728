"""Other ways to search, restated on the same rigs: what rivals do, without their accidents.

``bisection`` finds the largest layer count that runs and stops (llama-optimus' first stage,
LM Studio's and hand tuning's habit). ``grid`` walks a coarse grid (llama-dyno's rungs × batches ×
threads). ``tpe`` is a tree-structured Parzen search of 45 trials (llama-optimus' second stage).
None asks a dry run; each takes the mean of three passes, as they do.
"""

import math
import random
from collections.abc import Callable
from itertools import product
from statistics import fmean

import msgspec

from app.domain.events import TrialFinished
from app.domain.outcome import OUTCOMES
from app.domain.settings import Settings
from app.domain.sweep import GOAL_WORKLOADS, SweepRequest
from app.domain.trial import Trial, TrialRequest
from app.rig.virtual import VirtualRig
from app.sweep.plan import make_plan
from app.sweep.stats import seconds_per_token

Answer = tuple[Settings | None, tuple[Trial, ...], str]

TPE_TRIALS = 45
TPE_FIRST = 10
TPE_GOOD_FRAC = 0.25
TPE_CANDIDATES = 24


class Bench:
    """Runs settings and remembers times; failures are infinitely slow."""

    def __init__(self, rig: VirtualRig, request: SweepRequest) -> None:
        """Start with nothing measured."""
        self._rig = rig
        plan = make_plan(request, rig.space(), rig.dry_run)
        self._work = plan.workload
        self._goal = GOAL_WORKLOADS[request.goal]
        self.base = Settings(
            n_gpu_layers=0, n_ctx=plan.n_ctx, n_threads=rig.space().host.cores_physical
        )
        self.everything = rig.space().model.n_layer + 1
        self.trials: list[Trial] = []
        self.times: dict[Settings, float] = {}

    def time_s(self, settings: Settings) -> float:
        """Return the request time of ``settings``, measured once."""
        if settings in self.times:
            return self.times[settings]
        request = TrialRequest(
            stage="rival", settings=settings, workload=self._work, min_reps=3, max_reps=3
        )
        for event in self._rig.run_trial(request):
            if isinstance(event, TrialFinished):
                self.trials.append(event.trial)
                self.times[settings] = self._request_s(event.trial)
        return self.times[settings]

    def answer(self) -> Answer:
        """Return the fastest settings."""
        good = {s: t for s, t in self.times.items() if math.isfinite(t)}
        best = min(good, key=lambda s: good[s], default=None)
        return best, tuple(self.trials), "complete"

    def at(self, **changes: int) -> Settings:
        """Return the base with ``changes``."""
        return msgspec.structs.replace(self.base, **changes)

    def _request_s(self, trial: Trial) -> float:
        if not OUTCOMES[trial.outcome].has_speed:
            return math.inf
        prefill = fmean(seconds_per_token(trial.prefill))
        decode = fmean(seconds_per_token(trial.decode))
        return self._goal.n_prompt * prefill + self._goal.n_gen * decode


def bisection(rig: VirtualRig, request: SweepRequest) -> Answer:
    """Return the largest layer count that runs."""
    bench = Bench(rig, request)
    low, high = 0, bench.everything + 1
    bench.time_s(bench.at(n_gpu_layers=0))
    while high - low > 1:
        middle = (low + high) // 2
        runs = math.isfinite(bench.time_s(bench.at(n_gpu_layers=middle)))
        low, high = (middle, high) if runs else (low, middle)
    settings = bench.at(n_gpu_layers=low)
    return settings, tuple(bench.trials), "complete"


def grid(rig: VirtualRig, request: SweepRequest) -> Answer:
    """Return the best of quarters of the layers × three batches × two thread counts."""
    bench = Bench(rig, request)
    cores = bench.base.n_threads
    quarters = [round(bench.everything * q / 4) for q in range(4, -1, -1)]
    for layers, batch, threads in product(quarters, (512, 1024, 2048), (cores, cores // 2 or 1)):
        bench.time_s(bench.at(n_gpu_layers=layers, n_ubatch=batch, n_threads=threads))
    return bench.answer()


def tpe(rig: VirtualRig, request: SweepRequest) -> Answer:
    """Return the best of 45 trials of a tree-structured Parzen estimator."""
    bench = Bench(rig, request)
    rng = random.Random(1)  # noqa: S311 - a benchmark, not a secret
    axes: dict[str, list[int]] = {
        "n_gpu_layers": list(range(bench.everything + 1)),
        "n_ubatch": [128, 256, 512, 1024, 2048],
        "n_threads": sorted({max(1, bench.base.n_threads // 2), bench.base.n_threads}),
    }
    seen: list[tuple[float, dict[str, int]]] = []
    for i in range(TPE_TRIALS):
        if i < TPE_FIRST:
            picked = {name: rng.choice(values) for name, values in axes.items()}
        else:
            picked = {name: _propose(rng, name, values, seen) for name, values in axes.items()}
        seen.append((bench.time_s(bench.at(**picked)), picked))
    return bench.answer()


def _propose(
    rng: random.Random, name: str, values: list[int], seen: list[tuple[float, dict[str, int]]]
) -> int:
    """Return the candidate with the best ratio of good to bad density on one axis."""
    ordered = [p[name] for _, p in sorted(seen, key=lambda s: s[0])]
    n_good = max(2, int(TPE_GOOD_FRAC * len(ordered)))
    good, bad = ordered[:n_good], ordered[n_good:]
    width = max(1.0, len(values) / 8)
    place = {v: i for i, v in enumerate(values)}

    def density(value: int, centres: list[int]) -> float:
        gaps = ((place[value] - place[c]) / width for c in centres)
        return 1e-3 + fmean(math.exp(-0.5 * g * g) for g in gaps)

    def draw() -> int:
        spot = round(rng.gauss(place[rng.choice(good)], width))
        return values[min(len(values) - 1, max(0, spot))]

    candidates = [draw() for _ in range(TPE_CANDIDATES)]
    return max(candidates, key=lambda v: density(v, good) / density(v, bad))


RIVALS: dict[str, Callable[[VirtualRig, SweepRequest], Answer]] = {
    "bisection": bisection,
    "grid": grid,
    "tpe": tpe,
}
