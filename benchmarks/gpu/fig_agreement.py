"""``bench`` beside llama-bench of the same libraries, in turns."""

import json
import os
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from lab import Lab, brief, run

from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.trial import Workload

_BENCH = "LLAMA_BENCH"


class Case(Record, frozen=True, kw_only=True):
    """One comparison: settings, workload and how often."""

    name: str
    settings: Settings
    n_prompt: int
    n_gen: int
    reps: int
    pairs: int


def agreement(lab: Lab) -> None:
    """Full, half and no offload, and the CPU alone; raw passes of both."""
    with lab.stand_in():
        for case in cases(lab):
            pairs = []
            for number in range(case.pairs):
                if lab.left_s < lab.pick(30, 1):
                    lab.result.add("left_out", f"{case.name} pair {number}")
                    break
                order = ("ours", "theirs") if number % 2 == 0 else ("theirs", "ours")
                pair = {who: (ours if who == "ours" else theirs)(lab, case) for who in order}
                pairs.append(pair)
                lab.result.put(case.name, {"case": case, "pairs": pairs, **ratios(pairs)})


def cases(lab: Lab) -> list[Case]:
    """Return the cases, the most telling first.

    Ends in RAM are slow: fewer tokens there, still long against the clock.
    """
    spec = lab.spec("a")
    n_ctx = {"n_ctx": 1024}
    alone = lab.settings(0, devices=(), **n_ctx)
    half = lab.settings(spec.n_layer // 2, **n_ctx)
    none = lab.settings(0, **n_ctx)
    full = lab.settings(spec.max_gpu_layers, **n_ctx)
    pairs = lab.pick(3, 1)
    return [
        Case(name="full", settings=full, n_prompt=512, n_gen=64, reps=5, pairs=lab.pick(5, 1)),
        Case(name="half", settings=half, n_prompt=512, n_gen=32, reps=4, pairs=pairs),
        Case(name="cpu", settings=alone, n_prompt=128, n_gen=16, reps=3, pairs=pairs),
        Case(name="none", settings=none, n_prompt=512, n_gen=16, reps=3, pairs=lab.pick(2, 1)),
    ]


def ours(lab: Lab, case: Case) -> dict[str, Any]:
    """Return our trial, in a process of its own."""
    work = Workload(n_prompt=case.n_prompt, n_gen=case.n_gen)
    with lab.rig("a", case.settings.devices) as rig:
        return brief(run(rig, case.settings, work, case.reps))


def theirs(lab: Lab, case: Case) -> dict[str, Any]:
    """Return llama-bench's raw passes of the same configuration."""
    program = os.environ.get(_BENCH, "/tmp/pkg/llama_cpp/lib/llama-bench")  # noqa: S108 - where setup.sh unpacks it
    s = case.settings
    device = s.devices[0] if s.devices else "none"
    arguments = [
        program, "-m", str(lab.path("a")), "-p", str(case.n_prompt), "-n", str(case.n_gen),
        "-r", str(case.reps), "-ngl", str(s.n_gpu_layers), "-t", str(s.n_threads),
        "-b", str(s.n_batch), "-ub", str(s.n_ubatch), "-fa", "1", "-lm", "mmap",
        "-dev", device, "-o", "json",
    ]  # fmt: skip
    # it was built with another place in mind for its libraries: they lie beside it
    libraries = [str(Path(program).parent), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(libraries))
    try:
        done = subprocess.run(
            arguments, capture_output=True, text=True, timeout=90, check=False, env=environment
        )
    except OSError as error:
        return {"problem": str(error)}
    try:
        tests = json.loads(done.stdout)
    except ValueError:
        return {"problem": done.stderr[-1500:], "exit": done.returncode}
    found: dict[str, Any] = {"arguments": arguments[1:]}
    for test in tests:
        phase = "prefill" if test["n_prompt"] else "decode"
        found[phase] = test["samples_ts"]
        found[f"{phase}_tok_s"] = round(median(test["samples_ts"]), 3)
        found["build"] = test.get("build_commit")
    return found


def ratios(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return ours over theirs: per pair, their median, and the spread of either alone.

    Their first prefill pass is still cold after their one warm-up (ours has two): left out.
    """
    found: dict[str, Any] = {}
    for phase in ("prefill", "decode"):
        both = [
            (p["ours"].get(f"{phase}_tok_s"), _warm(p["theirs"], phase))
            for p in pairs
        ]  # fmt: skip
        each = [a / b for a, b in both if a and b]
        if each:
            found[phase] = {
                "ratios": [round(r, 4) for r in each],
                "median": round(median(each), 4),
                "spread_ours": _spread([a for a, _ in both if a]),
                "spread_theirs": _spread([b for _, b in both if b]),
            }
    return {"ratio": msgspec.to_builtins(found)}


def _warm(theirs: dict[str, Any], phase: str) -> float | None:
    samples = theirs.get(phase)
    if not samples:
        return None
    return float(median(samples[1:] if phase == "prefill" and len(samples) > 2 else samples))


def _spread(values: list[float]) -> float:
    """Return (max − min) / median."""
    return round((max(values) - min(values)) / median(values), 4)
