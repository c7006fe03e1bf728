"""How good and how short the search is: regret against the exhaustive best, loads, time.

    python benchmarks/search.py [REPLAY.json | FOLDER]… [--known] [--machines N] [--budget quick]
    python benchmarks/search.py --policy bisection --policy grid --policy tpe --policy rigtune

Every replay given and N random simulated machines (a quarter with experts, a quarter with free
memory that is not there, noise 0–6 %, disturbances, spills). Regret is the true request time of
the answer over the true best among everything that fits with its headroom and does not spill; a
second line counts a quantised cache 5 % longer, as the rule that it has to win 5 % does.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, median

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.domain.errors import UsageProblem
from app.domain.events import SweepFinished
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import GOAL_WORKLOADS, BudgetName, Goal, SweepRequest
from app.domain.trial import Trial
from app.rig.replay import ReplayRig
from app.rig.replay_check import read_replay
from app.rig.replay_file import Replay
from app.rig.simulated import KV_GAIN, SPILL_BYTES, SimulatedRig
from app.rig.simulated_machine import random_machine
from app.rig.virtual import VirtualRig
from app.sweep.plan import make_plan
from app.sweep.run import run_sweep

sys.path.insert(0, str(Path(__file__).resolve().parent))

from search_rivals import RIVALS

from tests.fakes.known_curves import KNOWN

GOOD, LIMIT = 0.02, 0.05


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One search on one rig."""

    name: str
    kind: str
    regret_frac: float
    n_loads: int
    n_oom: int
    virtual_s: float
    status: str
    answer: Settings | None
    best: Settings


def by_rule(run: Run) -> float:
    """Return the regret as the search has to count: a quantised cache is kept for 5 % only.

    Without the rule an f16 answer is at least 5 % off wherever q8_0 gains a little more than that,
    and a q8_0 answer that gains less is better than the best.
    """
    if run.answer is None:
        return run.regret_frac
    weight = [1.0 if s.type_k == "f16" else KV_GAIN for s in (run.answer, run.best)]
    return (1 + run.regret_frac) * weight[0] / weight[1] - 1


Answer = tuple[Settings | None, tuple[Trial, ...], str]
Policy = Callable[[VirtualRig, SweepRequest], Answer]


def rigtune(rig: VirtualRig, request: SweepRequest) -> Answer:
    """Run our own search."""
    plan = make_plan(request, rig.space(), rig.dry_run)
    for event in run_sweep(plan, rig):
        if isinstance(event, SweepFinished):
            result = event.result
            settings = None if result.recommended is None else result.recommended.settings
            return settings, result.trials, str(result.status)
    return None, (), "failed"


def replay_runs(name: str, replay: Replay, policy: Policy, request: SweepRequest) -> Iterator[Run]:
    """Yield a search on a replay for three seeds; none where it does not know the goal."""
    for seed in (replay.seed, 101, 102):
        rig = ReplayRig(replay, seed)
        try:
            n_ctx = make_plan(request, rig.space(), rig.dry_run).n_ctx
        except UsageProblem as problem:
            print(f"  {name} left out: {problem}")
            return
        times = ReplayTimes(rig, replay, request, n_ctx)
        best = best_of(times)
        if best is None:
            print(f"  {name} left out: nothing recorded fits at {n_ctx} tokens")
            return
        label = (f"{name}/{seed}", "replay")
        yield finish(label, rig, policy, request, (times, best))


def simulated_run(seed: int, policy: Policy, request: SweepRequest) -> Run:
    """Return a search on the random machine number ``seed``."""
    machine = random_machine(seed)
    rig = SimulatedRig(machine)
    n_ctx = make_plan(request, rig.space(), rig.dry_run).n_ctx
    best = rig.exhaustive_best(request, n_ctx)
    kind = "experts" if machine.expert_frac else "dense"
    kind += " lies" if machine.lie_frac else ""

    def true_s(settings: Settings) -> float:
        return rig.true_request_s(settings, request) or float("inf")

    name = f"machine {seed}"
    return finish((name, kind), rig, policy, request, (true_s, (best.settings, best.request_s)))


def finish(
    label: tuple[str, str],
    rig: VirtualRig,
    policy: Policy,
    request: SweepRequest,
    truth: tuple[Callable[[Settings], float], tuple[Settings, float]],
) -> Run:
    """Run ``policy`` and compare with the truth."""
    true_s, (best, best_s) = truth
    answer, trials, status = policy(rig, request)
    failed = {t.load_id for t in trials if t.outcome is Outcome.OUT_OF_MEMORY}
    return Run(
        name=label[0],
        kind=label[1],
        regret_frac=float("inf") if answer is None else true_s(answer) / best_s - 1,
        n_loads=len({t.load_id for t in trials}),
        n_oom=len(failed),
        virtual_s=rig.now_s(),
        status=status,
        answer=answer,
        best=best,
    )


class ReplayTimes:
    """True request seconds in a recording; infinite where it fails, spills or lacks headroom."""

    def __init__(self, rig: ReplayRig, replay: Replay, request: SweepRequest, n_ctx: int) -> None:
        """Work on ``rig`` without touching its clock."""
        self._rig = rig
        self._work = GOAL_WORKLOADS[request.goal]
        self.settings = list(self._every(replay, request, n_ctx))

    def __call__(self, settings: Settings) -> float:
        """Return the seconds of ``settings``."""
        truth = self._rig.truth(settings, self._work.depth)
        if truth is None or truth.prefill_tok_s is None or truth.decode_tok_s is None:
            return float("inf")
        if truth.shared_growth_bytes > SPILL_BYTES:
            return float("inf")
        prefill_s = self._work.n_prompt / truth.prefill_tok_s
        return prefill_s + self._work.n_gen / truth.decode_tok_s

    def _every(self, replay: Replay, request: SweepRequest, n_ctx: int) -> Iterator[Settings]:
        for point in replay.points:
            stated = dict(point.settings)
            if stated.get("n_ctx", n_ctx) != n_ctx:
                continue
            if stated.get("type_k", "f16") not in request.kv_types:
                continue
            yield msgspec.convert({"n_gpu_layers": 0, "n_ctx": n_ctx, **stated}, Settings)

    def fits(self, settings: Settings) -> bool:
        """Whether the headroom stays free."""
        return self._rig.dry_run(settings).verdict == "fits"


def best_of(times: ReplayTimes) -> tuple[Settings, float] | None:
    """Return the best recorded configuration; a quantised cache must win by 5 %."""
    timed = [(times(s), s) for s in times.settings if times.fits(s)]
    full = min((t for t in timed if t[1].type_k == "f16"), key=lambda t: t[0], default=None)
    if full is None:
        return None
    every = min(timed, key=lambda t: t[0])
    chosen = every if every[0] * KV_GAIN <= full[0] else full
    return chosen[1], chosen[0]


def report(policy: str, runs: list[Run], worst: int) -> None:
    """Print one policy's table."""
    regrets = [r.regret_frac for r in runs]
    good = sum(r <= GOOD for r in regrets) / len(runs)
    limit = sum(r <= LIMIT for r in regrets) / len(runs)
    print(f"\n{policy}: {len(runs)} searches")
    print(f"  regret ≤ 2 %: {good:.1%}   ≤ 5 %: {limit:.1%}   median {median(regrets):.2%}")
    ruled = [by_rule(r) for r in runs]
    shares = [sum(r <= most for r in ruled) / len(runs) for most in (GOOD, LIMIT)]
    print(f"  with a quantised cache counted 5 % longer: {shares[0]:.1%}   {shares[1]:.1%}")
    loads = [r.n_loads for r in runs]
    print(
        f"  loads: mean {fmean(loads):.1f}, most {max(loads)}   "
        f"out-of-memory launches: most {max(r.n_oom for r in runs)}   "
        f"virtual time: median {median(r.virtual_s for r in runs):.0f} s, "
        f"most {max(r.virtual_s for r in runs):.0f} s"
    )
    for kind in sorted({r.kind for r in runs}):
        of_kind = [r.regret_frac for r in runs if r.kind == kind]
        share = sum(r <= GOOD for r in of_kind) / len(of_kind)
        limit = sum(r <= LIMIT for r in of_kind) / len(of_kind)
        print(f"  {kind:14} {len(of_kind):4}  ≤ 2 %: {share:6.1%}  ≤ 5 %: {limit:6.1%}")
    for run in sorted(runs, key=lambda r: -r.regret_frac)[:worst]:
        print(
            f"    {run.name:28} {run.regret_frac:7.2%} loads {run.n_loads} oom {run.n_oom} "
            f"{run.virtual_s:4.0f} s {run.status}: {brief(run.answer)} (best {brief(run.best)})"
        )


def files_in(path: Path) -> list[Path]:
    """Return the replays in a folder, or the file itself."""
    return sorted(path.glob("*.json*")) if path.is_dir() else [path]


def brief(settings: Settings | None) -> str:
    """Return settings in one short line."""
    if settings is None:
        return "nothing"
    s = settings
    return (
        f"{s.n_gpu_layers}/{s.n_cpu_moe} ub{s.n_ubatch} fa-{s.flash_attn} {s.type_k} "
        f"t{s.n_threads} {s.load_mode}"
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="first machine's number")
    parser.add_argument("--budget", type=BudgetName, default=BudgetName.STANDARD)
    goals = [Goal.CHAT, Goal.DOCUMENTS, Goal.AGENT]
    parser.add_argument("--goal", type=Goal, choices=goals, default=Goal.CHAT)
    parser.add_argument("--policy", action="append", choices=["rigtune", *RIVALS])
    parser.add_argument("--raw", type=Path, help="write every run to this file, a line each")
    parser.add_argument("--known", action="store_true", help="published curves, as recordings")
    parser.add_argument("--worst", type=int, default=10)
    args = parser.parse_args()
    replays = {p.stem: read_replay(p) for path in args.paths for p in files_in(path)}
    replays |= KNOWN if args.known else {}
    for name in args.policy or ["rigtune"]:
        policy: Policy = rigtune if name == "rigtune" else RIVALS[name]
        began = time.perf_counter()
        runs: list[Run] = []
        for kinds in (("f16",), ("f16", "q8_0")):
            request = SweepRequest(goal=args.goal, budget=args.budget, kv_types=kinds)
            for label, replay in replays.items():
                runs += replay_runs(label, replay, policy, request)
        for seed in range(args.first, args.first + args.machines):
            kinds = ("f16", "q8_0") if seed % 2 else ("f16",)
            request = SweepRequest(goal=args.goal, budget=args.budget, kv_types=kinds)
            runs.append(simulated_run(seed, policy, request))
        report(f"{name}, {args.budget}", runs, args.worst)
        if args.raw:
            lines = (msgspec.json.encode({"policy": name, "run": r}) + b"\n" for r in runs)
            with args.raw.open("ab") as file:
                file.writelines(lines)
        print(f"  computed in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
