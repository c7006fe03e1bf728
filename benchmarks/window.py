"""Prints how quickly the window is usable and what it costs: python benchmarks/window.py.

Start-up is measured from the start of a fresh process, five times after one to warm up, offscreen
(with --display on the display there is). The machine is real: its probes and its engine.
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

ROOT = Path(__file__).resolve().parent.parent
CHILD = ROOT / "benchmarks" / "window_child.py"
GPUS_CHILD = ROOT / "benchmarks" / "window_gpus.py"
RUNS = 5

# figure: what it says, unit, goal
FIGURES: dict[str, tuple[str, str, float | None]] = {
    "shown_s": ("window usable", "s", 1.2),
    "complete_s": ("machine known, every page built", "s", None),
    "rss_mib": ("memory before a model", "MiB", 160),
    "visible_pct": ("CPU of one core, dashboard live at 1 Hz", "%", 1),
    "hidden_pct": ("CPU of one core, another page", "%", None),
    "gpus_visible_pct": ("8 made-up GPUs at 1 Hz, reading and drawing", "%", 1),
    "gpus_hidden_pct": ("the same, window hidden", "%", None),
}


def main() -> int:
    """Measure and print median, range and goal of each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--display", action="store_true", help="use the display there is")
    args = parser.parse_args()
    runs = [run(display=args.display) for _ in range(RUNS + 1)][1:]
    eight = run(display=args.display, child=GPUS_CHILD)
    runs = [{**r, **eight} for r in runs]
    for name, (what, unit, goal) in FIGURES.items():
        values = [r[name] for r in runs]
        wanted = "" if goal is None else f"   goal: at most {goal} {unit}"
        spread = f"({min(values):.2f}-{max(values):.2f})"
        print(f"{what:42} {statistics.median(values):7.2f} {unit} {spread}{wanted}")
    return 0


def run(*, display: bool, child: Path = CHILD) -> dict[str, float]:
    """Return the figures of one fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if not display:
        environment["QT_QPA_PLATFORM"] = "offscreen"
    with tempfile.TemporaryDirectory() as home:
        environment["RIGTUNE_HOME"] = home
        command = [sys.executable, str(child), str(time.time())]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    values: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return values


if __name__ == "__main__":
    raise SystemExit(main())
