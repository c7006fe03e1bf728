r"""RigTune's own measurement beside llama-bench of the same sources, in turns, on the CPU.

    python benchmarks/llama_bench_agreement.py LLAMA_BENCH MODEL [--pairs 5] [--json FILE]

Both are fed by the same libraries: llama-bench is started with those of this environment, so that
only the programs differ. Each pass is a process of its own; the order changes from pair to pair.
The ratio is ours over theirs, the interval that of the paired differences (app.sweep.stats). The
control is llama-bench over itself in the same turns: what lies within its interval is the host.
llama-bench warms up once and its first prefill pass is still cold (ours warms up twice): left out.

Built from the sources of the binding, with the flags of our own build, it takes about six
minutes on two cores:

    cmake -S SOURCES -B BUILD -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=OFF \
        -DGGML_BACKEND_DL=ON -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF
    ninja -C BUILD llama-bench
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from app.domain.events import TrialFinished
from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import SearchHost
from app.domain.trial import TrialRequest, Workload
from app.gguf import read_model
from app.rig.workers import WorkerRig
from app.sweep.stats import paired_difference

GOAL_FRAC = 0.03
PHASES = ("prefill", "decode")
WHO = ("ours", "theirs", "again")
Passes = dict[str, list[float]]


def main() -> int:
    """Measure, print, and fail where the goal is missed beyond what the interval allows."""
    args = arguments().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return compare(args, alone(args.llama_bench, Path(folder)))


def compare(args: argparse.Namespace, bench: Path) -> int:
    """Run the pairs with ``bench``."""
    spec = read_model(str(args.model))
    settings = Settings(
        n_gpu_layers=0,
        n_ctx=1024,
        n_threads=args.threads,
        n_threads_batch=args.threads,
        flash_attn=FlashAttn.ON,
    )
    pairs = []
    for number in range(args.pairs):
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
        turn = number % len(WHO)
        order = WHO[turn:] + WHO[:turn]
        pair: dict[str, Any] = {"load": round(load, 2)}
        for who in order:
            pair[who] = ours(spec, settings, args) if who == "ours" else theirs(bench, args)
        pairs.append(pair)
        seen = {p: [round(1 / median(pair[w][p]), 2) for w in WHO] for p in PHASES}
        print(f"pair {number + 1} (load {load:.1f}), tok/s {', '.join(WHO)}: {seen}", flush=True)
    result = {phase: ratio(pairs, phase, "ours", "theirs") for phase in PHASES}
    control = {phase: ratio(pairs, phase, "again", "theirs") for phase in PHASES}
    for phase in PHASES:
        for what, found in (("ratio", result[phase]), ("control", control[phase])):
            print(
                f"{phase}: {what} {found['median']:.3f} ({found['low']:.3f} to "
                f"{found['high']:.3f}), spread {found['spread']:.3f}, theirs "
                f"{found['spread_theirs']:.3f}"
            )
    print(f"goal: within {GOAL_FRAC:.0%} of 1")
    if args.json:
        document = {"model": spec.name, "threads": args.threads, "pairs": pairs}
        document |= {"ratio": result, "control": control}
        args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    missed = any(f["low"] > 1 + GOAL_FRAC or f["high"] < 1 - GOAL_FRAC for f in result.values())
    return 1 if missed else 0


def arguments() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("llama_bench", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--n-prompt", type=int, default=512)
    parser.add_argument("--n-gen", type=int, default=64)
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1)
    parser.add_argument("--json", type=Path, help="also write raw passes and ratios here")
    return parser


def ours(spec: ModelSpec, settings: Settings, args: argparse.Namespace) -> Passes:
    """Return our passes, seconds per token."""
    host = SearchHost(cores_physical=args.threads, cores_logical=args.threads, ram_bytes=1 << 40)
    work = Workload(n_prompt=args.n_prompt, n_gen=args.n_gen)
    request = TrialRequest(
        stage="bench", settings=settings, workload=work, min_reps=args.reps, max_reps=args.reps
    )
    rig = WorkerRig(spec, host, devices=())
    try:
        *_, last = rig.run_trial(request)
    finally:
        rig.close()
    assert isinstance(last, TrialFinished)
    if last.trial.error is not None:
        sys.exit(last.trial.error.message)
    samples = {"prefill": last.trial.prefill, "decode": last.trial.decode}
    return {phase: [s.ns / s.n_tok / 1e9 for s in found] for phase, found in samples.items()}


def alone(program: Path, folder: Path) -> Path:
    """Return a copy of llama-bench without the engine's libraries beside it.

    It would take backends from its own folder.
    """
    for part in ("libllama-bench-impl*", "libllama-common*"):
        for library in program.resolve().parent.glob(part):
            (folder / library.name).symlink_to(library.resolve())
    return Path(shutil.copy2(program.resolve(), folder))


def theirs(bench: Path, args: argparse.Namespace) -> Passes:
    """Return llama-bench's passes, seconds per token."""
    command = [
        str(bench), "-m", str(args.model.resolve()), "-p", str(args.n_prompt),
        "-n", str(args.n_gen), "-r", str(args.reps), "-t", str(args.threads), "-ngl", "0",
        "-fa", "1", "-b", "2048", "-ub", "512", "-dev", "none", "-o", "json",
    ]  # fmt: skip
    libraries, backends = engine_folders()
    environment = dict(
        os.environ, LD_LIBRARY_PATH=f"{libraries}:{bench.parent}", GGML_NO_BACKTRACE="1"
    )
    # it looks for backends in the current folder
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=backends, env=environment
    )
    if done.returncode:
        sys.exit(f"llama-bench failed ({done.returncode}): {done.stderr[-1500:]}")
    found: Passes = {}
    for test in json.loads(done.stdout):
        phase = "prefill" if test["n_prompt"] else "decode"
        per_token = [ns / (test["n_prompt"] or test["n_gen"]) / 1e9 for ns in test["samples_ns"]]
        found[phase] = per_token[1:] if phase == "prefill" and len(per_token) > 2 else per_token
    return found


def engine_folders() -> tuple[Path, Path]:
    """Return where this environment's libraries and its backends lie."""
    spec = find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        sys.exit("llama_cpp is not installed here")
    libraries = Path(spec.origin).parent / "lib"
    folders = [libraries, libraries.parents[1] / "bin"]
    backends = next((f for f in folders if any(f.glob("*ggml-cpu*"))), libraries)
    return libraries, backends


def ratio(pairs: list[dict[str, Any]], phase: str, one: str, two: str) -> dict[str, Any]:
    """Return the speed of ``one`` over that of ``two`` with the paired differences' interval."""
    mine = [median(p[one][phase]) for p in pairs]
    other = [median(p[two][phase]) for p in pairs]
    found = paired_difference(mine, other)  # how much longer two takes = one's speed over two's
    return {
        "ratios": [round(b / a, 4) for a, b in zip(mine, other, strict=True)],
        "median": 1 + found.median,
        "low": 1 + found.low,
        "high": 1 + found.high,
        "spread": (max(mine) - min(mine)) / median(mine),
        "spread_theirs": (max(other) - min(other)) / median(other),
    }


if __name__ == "__main__":
    raise SystemExit(main())
