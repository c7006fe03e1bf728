"""Prints how quickly the window is usable and what it costs: python benchmarks/window.py.

Start-up is measured from the start of a fresh process, after one to warm up, offscreen (with
--display on the display there is). The machine is real: its probes and its engine. The eight GPUs
and the heavy moments are made up. The longest turns of the GUI thread are printed by name, against
the goal that the tests of the window only approach. Takes about two minutes; says on stderr what it
waits for.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
MAX_CHILD_S = 120.0
"""No child waits longer than this altogether; each of its own waits is bounded, too."""
MAX_TURN_MS = 50
N_TURNS = 20

# figure: what it says, unit, goal
FIGURES: dict[str, tuple[str, str, float | None]] = {
    "shown_s": ("window usable", "s", 1.2),
    "shown_cpu_s": ("the same, processor time", "s", None),
    "complete_s": ("machine known, every page built", "s", None),
    "rss_mib": ("memory before a model", "MiB", 160),
    "visible_pct": ("CPU of one core, dashboard live at 1 Hz", "%", 1),
    "hidden_pct": ("CPU of one core, another page", "%", None),
    "gpus_visible_pct": ("8 GPUs at 1 Hz, reading and drawing", "%", 1),
    "gpus_other_page_pct": ("the same, another page", "%", None),
    "gpus_hidden_pct": ("the same, window hidden", "%", 0.1),
    "start_ms": ("longest turn of the GUI thread: start", "ms CPU", MAX_TURN_MS),
    "search_ms": ("longest turn: a search, step by step", "ms CPU", MAX_TURN_MS),
    "chat_ms": ("longest turn: a model loads and answers", "ms CPU", MAX_TURN_MS),
    "pages_ms": ("longest turn: each page shown first", "ms CPU", MAX_TURN_MS),
    "look_ms": ("longest turn: light, dark, high contrast", "ms CPU", MAX_TURN_MS),
    "resize_ms": ("longest turn: resizing with 8 GPUs", "ms CPU", MAX_TURN_MS),
}
# child: how often for one run of the benchmark, whether one to warm up goes before
CHILDREN = {"window_child.py": True, "window_gpus.py": False, "window_guard.py": False}


def main() -> int:
    """Measure and print median, goal and every value of each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--display", action="store_true", help="use the display there is")
    parser.add_argument("--runs", type=int, default=5, help="processes per figure")
    args = parser.parse_args()
    values: dict[str, list[float]] = {}
    turns: list[tuple[float, str, str]] = []
    for child, is_warmed in CHILDREN.items():
        for n in range(args.runs + is_warmed):
            print(f"{child}: {n + 1} of {args.runs + is_warmed}", file=sys.stderr)
            figures = run(child, display=args.display)
            longest = figures.pop("turns", {})
            turns += [(ms, name, what) for name, found in longest.items() for ms, what in found]
            if n or not is_warmed:
                for name, value in figures.items():
                    values.setdefault(name, []).append(value)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{os.cpu_count()} cores, load {load:.1f}; median and every value")
    for name, (what, unit, goal) in FIGURES.items():
        wanted = "" if goal is None else f"  goal: at most {goal:g}"
        raw = " ".join(f"{value:.3g}" for value in values[name])
        print(f"{what:42} {statistics.median(values[name]):7.3g} {unit}{wanted}  [{raw}]")
    print(f"the longest turns of all runs, ms CPU; goal: at most {MAX_TURN_MS}")
    for ms, name, what in sorted(turns, reverse=True)[:N_TURNS]:
        print(f"{ms:7.1f}  {name.removesuffix('_ms'):8} {what}")
    return 0


def run(child: str, *, display: bool) -> dict[str, Any]:
    """Return the figures of one fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if not display:
        environment["QT_QPA_PLATFORM"] = "offscreen"
    with tempfile.TemporaryDirectory() as home:
        environment["RIGTUNE_HOME"] = home
        command = [sys.executable, str(HERE / child), str(time.time())]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=MAX_CHILD_S,
            check=False,
        )  # fmt: skip
    if done.returncode:
        sys.exit(f"{child} failed:\n{done.stderr}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    raise SystemExit(main())
