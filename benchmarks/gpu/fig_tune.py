"""The search on a card with little memory left, against a wider sweep of the same situation."""

import threading
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import msgspec
from lab import GIB, MIB, Lab, brief, run, say, speed

from app.cli.tune_document import document_of
from app.domain.errors import EnvironmentProblem
from app.domain.events import SweepFinished, SweepPlanned, TrialFinished
from app.domain.memory import Verdict
from app.domain.outcome import OUTCOMES
from app.domain.settings import LoadMode, Settings
from app.domain.sweep import GOAL_WORKLOADS, SweepPlan, SweepRequest, SweepResult
from app.domain.trial import Trial, Workload
from app.rig.interface import Rig
from app.rig.replay_file import write_replay
from app.sweep.record import recorded

# what the holder leaves free, and how much a stand-in of the tiny model says it has
_FREE = {
    ("a", "all"): (None, None),
    ("a", "most"): (5 * GIB, 362 * MIB),
    ("a", "half"): (4 * GIB, 353 * MIB),
    ("a", "little"): (5 * GIB // 2, 344 * MIB),
    ("b", "half"): (6 * GIB, 360 * MIB),
    ("c", "half"): (8 * GIB, 352 * MIB),
}
_PAIRS = 3


def tune_all(lab: Lab) -> None:
    """Search where everything fits."""
    situation(lab, "a", "all")


def tune_most(lab: Lab) -> None:
    """Search where all but a few layers fit."""
    situation(lab, "a", "most")


def tune_half(lab: Lab) -> None:
    """Search where about half fits."""
    situation(lab, "a", "half")


def tune_little(lab: Lab) -> None:
    """Search where almost nothing fits."""
    situation(lab, "a", "little")


def tune_q8(lab: Lab) -> None:
    """Search for a dense model in eight bits of which about two thirds fit."""
    situation(lab, "b", "half")


def tune_experts(lab: Lab) -> None:
    """Search for a mixture of experts of which less than half fits."""
    situation(lab, "c", "half")


def situation(lab: Lab, letter: str, name: str) -> None:
    """Search, sweep the same situation, and run the two best in turns."""
    real, tiny = _FREE[letter, name]
    with lab.capped(lab.pick(real, tiny)):
        plan, result = search(lab, letter, name)
        if plan is None or result is None or result.recommended is None:
            return
        with lab.rig(letter) as rig:
            wide = Wide(lab, rig, plan, result)
            wide.run(grid(lab, letter, plan, result.recommended.settings))
            write_replay(
                recorded(plan, [*result.trials, *wide.trials], wide.dry_runs),
                lab.out / f"replay-{letter}-{name}.json.gz",
            )
            duel(lab, rig, plan, result.recommended.settings, wide.best())


def search(lab: Lab, letter: str, name: str) -> tuple[SweepPlan | None, SweepResult | None]:
    """Run ``tune`` as the command line does; a timer stops it where the budget ends."""
    cancel = threading.Event()
    timer = threading.Timer(max(20.0, 0.65 * lab.left_s), cancel.set)
    timer.start()
    began_s = time.monotonic()
    plan, result = None, None
    try:
        with lab.session() as session:
            events = session.tune(
                str(lab.path(letter)), SweepRequest(), cancel=cancel,
                record=str(lab.out / f"tune-{letter}-{name}.json.gz"),
            )  # fmt: skip
            for event in events:
                if isinstance(event, SweepPlanned):
                    plan = event.plan
                elif isinstance(event, TrialFinished):
                    say(event.trial)
                elif isinstance(event, SweepFinished):
                    result = event.result
    except EnvironmentProblem as problem:
        lab.result.put("problem", problem.info)
    finally:
        timer.cancel()
    lab.result.put("tune_s", round(time.monotonic() - began_s, 1))
    lab.result.put("tune_was_stopped", cancel.is_set())
    lab.result.put("plan", plan)
    if result is not None:
        lab.result.put("tune", document_of(result))
        lab.result.put("n_oom", sum(OUTCOMES[t.outcome].is_memory for t in result.trials))
    return plan, result


def grid(lab: Lab, letter: str, plan: SweepPlan, base: Settings) -> Iterator[Settings]:
    """Yield the configurations of the sweep, those near the bound first, by load.

    Every layer near the bound, two far from it, the largest and the usual batch, mapped and
    copied weights: what the search may choose from, at steps no search could jump over.
    """
    full = lab.spec(letter).max_gpu_layers
    bound = plan.max_n_gpu_layers
    # the search may have ended on the CPU alone
    base = msgspec.structs.replace(base, devices=base.devices or (lab.device,))
    near = [n for n in range(bound, bound - 4, -1) if n >= 0]
    far = [n for n in (bound + 1, bound + 2) if n <= full]
    far += sorted({0, bound // 2} - set(near))

    def at(layers: int, ubatch: int, mode: LoadMode, n_cpu_moe: int = 0) -> Settings:
        return msgspec.structs.replace(
            base, n_gpu_layers=layers, n_cpu_moe=n_cpu_moe, n_ubatch=ubatch, load_mode=mode,
            n_batch=max(base.n_batch, ubatch),
        )  # fmt: skip

    if letter == "c":
        n_layer = lab.spec(letter).n_layer
        best = base.n_cpu_moe or n_layer
        for n_cpu_moe in dict.fromkeys((best, best + 1, best - 1, best - 2, best + 4, n_layer)):
            if 0 <= n_cpu_moe <= n_layer:
                for ubatch in (512, 2048):
                    yield at(full, ubatch, base.load_mode, n_cpu_moe)
        near, far = near[:1], [0]
    for layers in near:
        for ubatch in (512, 2048):
            yield at(layers, ubatch, LoadMode.MMAP)
    for layers in near[:3]:
        if layers < full:
            for ubatch in (512, 2048):
                yield at(layers, ubatch, LoadMode.NONE)
    for layers in far:
        yield at(layers, 512, LoadMode.MMAP)


class Wide:
    """The sweep: every configuration once, failures included."""

    def __init__(self, lab: Lab, rig: Rig, plan: SweepPlan, result: SweepResult) -> None:
        """Prepare; loads are numbered on from the search's."""
        self._lab = lab
        self._rig = rig
        self._work = GOAL_WORKLOADS[plan.request.goal]
        self._known_decode: dict[object, Trial] = {}
        self._first_load = max((t.load_id for t in result.trials), default=0)
        self.trials: list[Trial] = []
        self.dry_runs: dict[Settings, Any] = {}

    def run(self, configurations: Iterator[Settings]) -> None:
        """Measure as many as the budget allows; keep a third of it for the comparison."""
        keep_s = 0.25 * self._lab.budget_s
        for settings in configurations:
            self.dry_runs[settings] = self._rig.dry_run(settings)
            if self._lab.left_s < keep_s:
                self._lab.result.add("left_out", settings)
                continue
            # a batch changes prefill only: time decode briefly where the placement is known
            again = settings.load_key in self._known_decode
            work = msgspec.structs.replace(self._work, n_gen=16 if again else 64)
            trial = run(self._rig, settings, work, 2, stage="exhaustive")
            trial = msgspec.structs.replace(trial, load_id=trial.load_id + self._first_load)
            if trial.decode:
                self._known_decode[settings.load_key] = trial
            self.trials.append(trial)
            verdict = self.dry_runs[settings].verdict
            row = {"verdict": str(verdict), "request_s": request_s(trial, self._work)}
            self._lab.result.add("sweep", {**brief(trial), **row})

    def best(self) -> Settings | None:
        """Return the fastest configuration that leaves the headroom the search must leave."""
        timed = [
            (seconds, t.request.settings)
            for t in self.trials
            if (seconds := request_s(t, self._work)) is not None
            and self.dry_runs[t.request.settings].verdict is Verdict.FITS
        ]
        return min(timed, key=lambda t: t[0])[1] if timed else None


def duel(lab: Lab, rig: Rig, plan: SweepPlan, ours: Settings, best: Settings | None) -> None:
    """Run recommendation and the sweep's best in turns: one run against another proves little."""
    work = GOAL_WORKLOADS[plan.request.goal]
    lab.result.put("recommended", ours)
    lab.result.put("sweep_best", best)
    if best is None or best == ours:
        lab.result.put("regret", {"same": best == ours})
        return
    pairs: list[dict[str, float | None]] = []
    for number in range(lab.pick(_PAIRS, 1)):
        if lab.left_s < lab.pick(20, 1):
            break
        both = {"ours": ours, "best": best}
        order = both if number % 2 == 0 else dict(reversed(both.items()))
        pair = {}
        for who, settings in order.items():
            trial = run(rig, settings, msgspec.structs.replace(work, n_gen=64), 3, stage="duel")
            lab.result.add("duel", {"who": who, **brief(trial)})
            pair[who] = request_s(trial, work)
        pairs.append(pair)
    ratios = [p["ours"] / p["best"] - 1 for p in pairs if p["ours"] and p["best"]]
    if ratios:
        regret = {"each": [round(r, 4) for r in ratios], "median": round(median(ratios), 4)}
        for who in ("ours", "best"):
            times = [t for p in pairs if (t := p[who])]
            regret[f"spread_{who}"] = round((max(times) - min(times)) / median(times), 4)
        lab.result.put("regret", regret)


def request_s(trial: Trial, work: Workload) -> float | None:
    """Return the seconds of the goal's request, ``None`` without a speed."""
    prefill, decode = speed(trial.prefill), speed(trial.decode)
    if not prefill or not decode or not OUTCOMES[trial.outcome].has_speed:
        return None
    return round(work.n_prompt / prefill + work.n_gen / decode, 4)
