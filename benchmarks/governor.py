"""The governor on simulated machines: drift over eight hours, heat, changes, and what caps save.

    python benchmarks/governor.py [--hours 8] [--ambient 23]

Nothing real is read or written: the machines are the thermal models of tests/fakes, calibrated to
published figures. Drift is how much slower the slowest ten minutes were than the first ten;
"none" is the machine without a governor. "settled" is when the temperature came within 3 °C of the
target for good. "best" is the least ms per token at which one setting of the same knob, found by
trying them all, holds that temperature: what the machine itself allows.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.power.caps import caps_to_try, choose_cap, predict_sustained
from app.power.capsweep import sweep_caps
from app.power.protocol import Range
from app.power.records import GovernedDevice, Knob, Mode, Wish
from app.power.targets import targets
from tests.fakes.governed import Run, best_constant_ms
from tests.fakes.plant_bench import PlantBench
from tests.fakes.thermal_cards import CARDS, Card
from tests.fakes.thermal_plant import Plant

HEAD = f"{'machine':22}{'governor':18}{'drift':>7}{'ms/tok':>8}{'°C max':>8}{'°C end':>8}"
HEAD += (
    f"{'target':>8}{'settled':>9}{'best':>7}{'W end':>7}{'duty':>6}{'changes':>9}{'late':>6}  notes"
)
KNOBS = {"limit": Knob.POWER_LIMIT, "clocks": Knob.CLOCKS, "pacing": Knob.PACING}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--ambient", type=float, default=23.0)
    arguments = parser.parse_args()
    seconds = int(arguments.hours * 3600)
    started = time.perf_counter()
    print(HEAD)
    for card in CARDS:
        for name, run in runs(card, arguments.ambient):
            print(row(card, name, run.go(seconds), arguments.ambient))
    print()
    for card in CARDS:
        print_caps(card, arguments.ambient)
    print(f"\n{time.perf_counter() - started:.1f} s of real time")


def runs(card: Card, ambient_c: float) -> list[tuple[str, Run]]:
    """Return the ways to run one machine."""
    pacing = GovernedDevice(key=card.name, slowdown_c=card.slowdown_c)
    clocks = GovernedDevice(
        key=card.name,
        slowdown_c=card.slowdown_c,
        clock_floor_mhz=0.3 * card.f_max_mhz,
        clock_ceiling_mhz=card.f_max_mhz,
    )
    return [
        ("none", Run(Plant(card, ambient_c), is_governed=False)),
        *((f"limit, {mode}", Run(Plant(card, ambient_c), Wish(mode=mode))) for mode in Mode),
        ("clocks, balanced", Run(Plant(card, ambient_c), device=clocks)),
        ("pacing, balanced", Run(Plant(card, ambient_c), device=pacing)),
        ("pacing, full", Run(Plant(card, ambient_c), Wish(mode=Mode.FULL), device=pacing)),
    ]


def row(card: Card, name: str, run: Run, ambient_c: float) -> str:
    """Return one line of the first table."""
    moments, end = run.moments, len(run.moments)
    changes = run.changes()
    late = sum(m.t_s > 3600 for m in changes)
    text = f"{card.name:22}{name:18}{100 * run.drift_frac():+6.1f}%"
    text += f"{run.ms_per_token(end - 600, end):8.1f}{max(m.die_c for m in moments):8.1f}"
    text += f"{moments[-1].die_c:8.1f}{aim(card, name, run, ambient_c)}"
    text += f"{moments[-1].power_w:7.0f}{moments[-1].duty:6.2f}"
    notes = ", ".join(note.code for note in run.state.notes)
    return text + f"{len(changes):9d}{late:6d}  {notes}"


def aim(card: Card, name: str, run: Run, ambient_c: float) -> str:
    """Return target, time until it was kept, and the best that one setting could do for it."""
    if not run.is_governed:
        return f"{'':>8}{'':>9}{'':>7}"
    target_c, _ = targets(run.device, run.wish, run.plant.reading())
    away = [m.t_s for m in run.moments if abs(m.die_c - target_c) > 3.0]
    is_kept = not away or away[-1] < run.moments[-1].t_s - 600
    settled = f"{away[-1] / 60 if away else 0:.0f} min" if is_kept else "cooler"
    best_ms = best_constant_ms(card, ambient_c, KNOBS[name.partition(",")[0]], target_c)
    return f"{target_c:8.0f}{settled:>9}{best_ms:7.1f}"


def print_caps(card: Card, ambient_c: float) -> None:
    """Print a cap sweep of one machine."""
    default = card.default_w
    allowed = Range(low=max(card.min_w, default / 2), high=default, now=default)
    points = list(sweep_caps(PlantBench(Plant(card, ambient_c)), caps_to_try(allowed)))
    choice = choose_cap(points)
    print(f"{card.name}: cap W, tok/s, draw W, tok/J, °C, fan %, after 30 min")
    for index, point in enumerate(points):
        after = predict_sustained(points, index, card.slowdown_c)
        rate = point.decode_tok_s
        mark = "  <- recommended" if choice and choice.point == index else ""
        span = ""
        if after:
            s = after.decode_tok_s
            span = f"{s.median:.1f} [{s.low:.1f}, {s.high:.1f}]"
        print(
            f"  {point.cap_w:5.0f} {rate.median if rate else 0:7.2f} {point.power_w or 0:6.1f}"
            f" {point.tok_per_j or 0:6.3f} {point.temp_c or 0:5.0f} {point.fan_pct or 0:4.0f}"
            f"  {span}{mark}"
        )
    if choice:
        loss, saved = 100 * choice.loss_frac, 100 * choice.saved_frac
        print(f"  {loss:.1f} % slower than the fastest, {saved:.1f} % less energy per token")


if __name__ == "__main__":
    main()
