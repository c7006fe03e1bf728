"""Measures this program on a real card: one JSON per figure, each figure on its own.

    python benchmarks/gpu/measure.py --out DIR [--only a,b] [--archive FILE] [--seconds S] [--tiny]

Models are found in the folder ``GPU_MODELS`` names (``setup.sh`` makes them). Every figure runs in
a process of its own with a time limit; one that fails leaves what it had. ``--archive`` packs DIR
anew after every figure. ``--tiny`` rehearses everything on tiny models and an RPC server on this
machine's CPU. ``--list`` shows the figures with the time they take. Only reads the card's settings.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent)]
os.environ.setdefault("RIGTUNE_HOME", "/tmp/rigtune-home")  # noqa: S108 - never the user's own

_KILL_S = 8.0
_REHEARSAL_FACTOR = 4.0
"""A rehearsal has the same work to do on a small, busy machine."""


class Figure(NamedTuple):
    """A figure: where its code is, and the seconds it may take on the card."""

    module: str
    function: str
    budget_s: float
    environment: dict[str, str] = {}


FIGURES = {
    "identity": Figure("fig_identity", "identity", 60),
    "memory": Figure("fig_memory", "memory", 160),
    "agreement": Figure("fig_agreement", "agreement", 230),
    "tune_half": Figure("fig_tune", "tune_half", 500),
    "tune_all": Figure("fig_tune", "tune_all", 120),
    "tune_most": Figure("fig_tune", "tune_most", 220),
    "tune_experts": Figure("fig_tune", "tune_experts", 280),
    "failures": Figure("fig_failures", "failures", 150),
    "chat": Figure("fig_chat", "chat", 60),
    "levers": Figure("fig_levers", "levers", 110),
    "depth": Figure("fig_levers", "depth", 110),
    "curve": Figure("fig_curve", "curve", 110),
    "nvml_cost": Figure("fig_cards", "nvml_cost", 25),
    "tune_little": Figure("fig_tune", "tune_little", 500),
    "tune_q8": Figure("fig_tune", "tune_q8", 500),
    "one_as_two": Figure("fig_cards", "cards", 45, {"GGML_CUDA_DEVICES": "2"}),
    "vulkan": Figure("fig_cards", "vulkan", 110),
    # where the machine has several cards; the figure above stands in for it elsewhere
    "cards": Figure("fig_cards", "cards", 90),
    "two_cards": Figure("fig_cards", "two_cards", 220),
}
_NOT_BY_DEFAULT = {"cards", "two_cards"}


def main() -> int:
    """Run the figures asked for, or one of them as their child."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("gpu-results"))
    parser.add_argument("--only", help="figures, comma-separated, in this order")
    parser.add_argument("--archive", type=Path, help="tar.gz of the results so far")
    parser.add_argument("--seconds", type=float, default=3600.0, help="for all figures together")
    parser.add_argument("--tiny", action="store_true", help="rehearse on the stand-in")
    parser.add_argument("--list", action="store_true", help="show the figures and end")
    parser.add_argument("--figure", choices=FIGURES, help=argparse.SUPPRESS)
    parser.add_argument("--budget", type=float, default=60.0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.list:
        for name, figure in FIGURES.items():
            print(f"{name:14} {figure.budget_s:4.0f} s")
        return 0
    args.out = args.out.absolute()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.figure:
        return measure(args)
    return run_all(args)


def run_all(args: argparse.Namespace) -> int:
    """Run each figure in a child and pack the results after each."""
    names = args.only.split(",") if args.only else [n for n in FIGURES if n not in _NOT_BY_DEFAULT]
    end_s = time.monotonic() + args.seconds
    manifest: dict[str, Any] = {}
    for name in names:
        left_s = end_s - time.monotonic() - _KILL_S
        if left_s < min(20.0, FIGURES[name].budget_s):
            manifest[name] = {"exit": "no time left"}
            print(f"{name}: no time left", flush=True)
            continue
        began_s = time.monotonic()
        budget_s = FIGURES[name].budget_s * (_REHEARSAL_FACTOR if args.tiny else 1)
        code = run_one(args, name, min(left_s, budget_s))
        seconds = round(time.monotonic() - began_s, 1)
        manifest[name] = {"exit": code, "seconds": seconds}
        print(f"{name}: exit {code}, {seconds} s", flush=True)
        (args.out / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        pack(args)
    return 0 if all(m["exit"] == 0 for m in manifest.values()) else 1


def run_one(args: argparse.Namespace, name: str, budget_s: float) -> int | str:
    """Run one figure; past its budget it is interrupted, then ended."""
    command = [
        sys.executable, str(HERE / "measure.py"), "--figure", name, "--out", str(args.out),
        "--budget", str(budget_s), *(["--tiny"] if args.tiny else []),
    ]  # fmt: skip
    environment = {**os.environ, **FIGURES[name].environment, "PYTHONUNBUFFERED": "1"}
    with (args.out / f"{name}.log").open("w", encoding="utf-8") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            return child.wait(budget_s + 5)
        except subprocess.TimeoutExpired:
            child.send_signal(2)  # what a person at a terminal would do: everything is closed
        try:
            child.wait(_KILL_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    return "over its time"


def measure(args: argparse.Namespace) -> int:
    """Measure one figure in this process."""
    from card import Nvml  # noqa: PLC0415 - after the path is set
    from lab import Lab, Result  # noqa: PLC0415 - after the path is set

    figure = FIGURES[args.figure]
    head: dict[str, Any] = {
        "figure": args.figure,
        "began_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "tiny": args.tiny,
        "budget_s": args.budget,
        "python": sys.version.split()[0],
        "card": None if args.tiny else Nvml().card(),
    }
    result = Result(args.out / f"{args.figure}.json", head)
    lab = Lab(out=args.out, tiny=args.tiny, budget_s=args.budget, result=result)
    function: Callable[[Lab], None] = getattr(__import__(figure.module), figure.function)
    try:
        function(lab)
    except BaseException:
        result.put("status", "failed")
        result.put("traceback", traceback.format_exc()[-4000:])
        raise
    result.put("status", "complete")
    return 0


def pack(args: argparse.Namespace) -> None:
    """Write the archive of everything so far, whole or not at all."""
    if args.archive is None:
        return
    partial = args.archive.with_name(args.archive.name + ".partial")
    with tarfile.open(partial, "w:gz") as archive:
        archive.add(args.out, arcname="results")
    partial.replace(args.archive)


if __name__ == "__main__":
    sys.exit(main())
