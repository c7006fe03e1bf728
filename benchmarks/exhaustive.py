"""The search against every configuration measured once, on this machine; kept as a replay.

    python benchmarks/exhaustive.py MODEL REPLAY [--minutes 8] [--json FILE]

Runs ``tune`` (quick), then a sweep of what it may choose from with the same workload: threads,
batches, flash attention and load modes on the CPU; on each device the engine sees layers, and with
experts also expert layers in RAM, with the largest placement that fits and the next one, which does
not (a software device gets a short workload: it is many times slower). The two best are then
measured in turns; the regret is how much longer a request takes with the search's answer. REPLAY
(ending in .json or .json.gz) lets ``tune --replay`` run against the sweep.
"""

import argparse
import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from app.domain.events import SweepFinished, SweepPlanned, TrialFinished
from app.domain.outcome import OUTCOMES
from app.domain.settings import FlashAttn, LoadMode, Settings
from app.domain.sweep import BudgetName, SweepPlan, SweepRequest, SweepResult
from app.domain.trial import Trial, TrialRequest, Workload
from app.rig.interface import Rig
from app.rig.process import Launch
from app.rig.replay_file import write_replay
from app.session import Session
from app.session.opening import open_rig
from app.sweep.ladder import Bounds, Rung, expert_ladder, layer_ladder
from app.sweep.points import Point, build_points, demand
from app.sweep.record import recorded
from app.sweep.stats import paired_difference
from probes import registry

SHORT = Workload(n_prompt=8, n_gen=4)
PAIRS, DUEL_REPS = 3, 3
ROUNDS = 3  # of the whole grid, one pass each: what the host does meanwhile meets every one alike


def main() -> None:
    """Search, sweep, compare, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("replay", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0, help="for the sweep")
    parser.add_argument("--n-ubatch", default="128,512,2048", help="batches to sweep on the CPU")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    args = parser.parse_args()
    with closing(Session(registry)) as session:
        began_s = time.monotonic()
        plan, result = search(session, args.model)
        tune_s = time.monotonic() - began_s
        best = result.recommended
        assert best is not None, result.error
        workload = result.trials[best.trial].request.workload
        spec = session.inspect(str(args.model))
        rig, _ = open_rig(spec, session.machine(wake=True), Launch())
        with closing(rig):
            sweep = Sweep(rig, time.monotonic() + 60 * args.minutes)
            bounds = Bounds(rig.dry_run, None)
            sizes = tuple(int(n) for n in args.n_ubatch.split(","))
            sweep.run(tuple(grid(plan, best.settings, bounds, sizes)), workload)
            rival = sweep.best(plan, workload)
            figures = duel(sweep, plan, workload, best.settings, rival)
    # what was only looked at in an empty context would seem faster there than what was swept
    deep = [t for t in result.trials if t.request.workload == workload]
    write_replay(recorded(plan, [*deep, *sweep.trials], sweep.dry_runs), args.replay)
    figures |= {
        "model": spec.name,
        "file_bytes": spec.file_bytes,
        "tune_s": round(tune_s, 1),
        "n_model_loads": result.n_model_loads,
        "n_configurations": sweep.n_configurations,
        "left_out": sweep.left_out,
        "recommended": msgspec.to_builtins(best.settings),
        "sweep_best": msgspec.to_builtins(rival.settings if rival else None),
    }
    print(json.dumps(figures, indent=1))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def search(session: Session, model: Path) -> tuple[SweepPlan, SweepResult]:
    """Run ``tune`` with its defaults and the small budget."""
    plan, result = None, None
    request = SweepRequest(budget=BudgetName.QUICK)
    for event in session.tune(str(model), request, cancel=threading.Event()):
        if isinstance(event, SweepPlanned):
            plan = event.plan
        elif isinstance(event, TrialFinished):
            say(event.trial)
        elif isinstance(event, SweepFinished):
            result = event.result
    assert plan is not None
    assert result is not None
    return plan, result


def grid(
    plan: SweepPlan, base: Settings, bounds: Bounds, sizes: tuple[int, ...]
) -> Iterator[Settings]:
    """Yield everything worth measuring, by load."""
    cpu = msgspec.structs.replace(base, n_gpu_layers=0, n_cpu_moe=0, devices=())
    yield from on_the_cpu(plan, msgspec.structs.replace(cpu, load_mode=LoadMode.MMAP), sizes)
    for device in plan.space.devices:
        there = msgspec.structs.replace(cpu, devices=(device.id,))
        for ladder in (
            expert_ladder(SweepRequest(), plan.space),
            layer_ladder(SweepRequest(), plan.space),
        ):
            yield from (rung.of(there) for rung in around_the_bound(ladder, there, bounds))
    yield from on_the_cpu(plan, msgspec.structs.replace(cpu, load_mode=LoadMode.NONE), sizes)


def around_the_bound(ladder: tuple[Rung, ...], base: Settings, bounds: Bounds) -> tuple[Rung, ...]:
    """Return the largest rung that fits, the next one, and the quarters below."""
    top = bounds.largest(ladder, base)
    if top is None:
        return ()
    indices = [top, min(top + 1, len(ladder) - 1), *(top * part // 4 for part in (3, 2, 1, 0))]
    return tuple(ladder[i] for i in dict.fromkeys(indices))


def on_the_cpu(plan: SweepPlan, base: Settings, sizes: tuple[int, ...]) -> Iterator[Settings]:
    """Yield every combination of threads, flash attention and batch."""
    host = plan.space.host
    for n_threads in sorted({1, host.cores_physical, host.cores_logical}):
        for flash_attn in (FlashAttn.ON, FlashAttn.OFF):
            for n_ubatch in sizes:
                yield msgspec.structs.replace(
                    base, n_threads=n_threads, n_threads_batch=n_threads,
                    flash_attn=flash_attn, n_ubatch=n_ubatch,
                )  # fmt: skip


class Sweep:
    """Measures configurations one after the other and keeps everything."""

    def __init__(self, rig: Rig, deadline_s: float) -> None:
        """Measure on ``rig`` until ``deadline_s`` of the monotonic clock."""
        self._rig = rig
        self._deadline_s = deadline_s
        self.trials: list[Trial] = []
        self.dry_runs: dict[Settings, Any] = {}
        self.n_configurations = 0
        self.left_out: list[str] = []

    def run(self, configurations: tuple[Settings, ...], workload: Workload) -> None:
        """Measure each, in rounds; on a software device once, with a short workload."""
        devices = {d.id: d.kind for d in self._rig.space().devices}
        slow = [s for s in configurations if any(devices[d] == "software" for d in s.devices)]
        now_s = time.monotonic()
        self._round(slow, SHORT, now_s + (self._deadline_s - now_s) / 2)
        for _ in range(ROUNDS):
            rest = [s for s in configurations if s not in slow]
            self._round(rest, workload, self._deadline_s)
        self.n_configurations = len({t.request.settings for t in self.trials})

    def _round(self, configurations: list[Settings], work: Workload, until_s: float) -> None:
        for settings in configurations:
            need = self.dry_runs[settings] = self._rig.dry_run(settings)
            if need.note is not None:
                self.left_out.append(f"refused: {settings.n_gpu_layers} layers")
                continue
            if time.monotonic() > until_s:
                self.left_out.append(f"no time: {settings.n_gpu_layers} layers")
                continue
            self.measure(settings, work)

    def measure(self, settings: Settings, workload: Workload, reps: int = 1) -> Trial:
        """Run one trial of ``reps`` passes."""
        request = TrialRequest(
            stage="exhaustive", settings=settings, workload=workload,
            min_reps=reps, max_reps=reps, max_s=20,
        )  # fmt: skip
        *_, last = self._rig.run_trial(request)
        assert isinstance(last, TrialFinished)
        say(last.trial)
        self.trials.append(last.trial)
        return last.trial

    def best(self, plan: SweepPlan, workload: Workload) -> Point | None:
        """Return the fastest configuration."""
        points = build_points(self.trials, workload, demand(plan)).values()
        timed = [p for p in points if p.request is not None]
        return min(timed, key=lambda p: p.request_s, default=None)


def duel(
    sweep: Sweep, plan: SweepPlan, workload: Workload, ours: Settings, rival: Point | None
) -> dict[str, Any]:
    """Measure the answer and the sweep's best in turns."""
    if rival is None:
        return {"regret": None, "why": "nothing was swept with the search's workload"}
    if rival.settings == ours:
        return {"regret": 0.0, "same": True}
    theirs = rival.settings
    seconds: dict[str, list[float]] = {"ours": [], "best": []}
    for number in range(PAIRS):
        order = [("ours", ours), ("best", theirs)]
        for who, settings in order if number % 2 == 0 else reversed(order):
            trial = sweep.measure(settings, workload, DUEL_REPS)
            point = build_points([trial], workload, demand(plan))
            seconds[who].append(next(iter(point.values())).request_s)
    if not all(math.isfinite(v) for found in seconds.values() for v in found):
        return {"regret": None, "why": "a trial of the comparison failed", "request_s": seconds}
    gap = paired_difference(seconds["best"], seconds["ours"])
    spread = {w: round((max(s) - min(s)) / min(s), 4) for w, s in seconds.items()}
    return {
        "regret": round(gap.median, 4),
        "interval": [round(gap.low, 4), round(gap.high, 4)],
        "spread": spread,
        "request_s": {w: [round(v, 3) for v in s] for w, s in seconds.items()},
    }


def say(trial: Trial) -> None:
    """Print one trial."""
    s, work = trial.request.settings, trial.request.workload
    speeds = [
        f"{sum(x.n_tok for x in p) / sum(x.ns for x in p) * 1e9:.2f}" if p else "-"
        for p in (trial.prefill, trial.decode)
    ]
    label = OUTCOMES[trial.outcome].label
    print(
        f"{trial.request.stage}: {s.n_gpu_layers} layers ({s.n_cpu_moe} expert layers in RAM) "
        f"{','.join(s.devices) or 'CPU'} {trial.device_bytes}, "
        f"{s.n_threads} threads, ub {s.n_ubatch}, fa {s.flash_attn}, {s.load_mode}, "
        f"pp{work.n_prompt} tg{work.n_gen} @ d{work.depth}: {label}, tok/s {speeds}",
        flush=True,
    )


if __name__ == "__main__":
    main()
