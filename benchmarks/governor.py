"""The governor on simulated machines: drift over eight hours, heat, changes, and what caps save.

    python benchmarks/governor.py [--hours 8] [--ambient 23] [--rooms 18 23 28 32]

Nothing real is read or written: the machines are the thermal models of tests/fakes, calibrated to
published figures. Drift is how much slower the slowest ten minutes were than the first ten, mean ms
per token while writing; "none" is the machine without a governor. "first" is the first session of a
device, which learns what its cooler carries away; "drift" is a session after one of two hours in a
room of 22 °C; each with the mean speed over all hours, prefill included. "kept" is the speed at the
end against the first minute without a governor. "settled" is when the temperature came within 3 °C
of the target for good. "best" is the least ms per token at which one setting of the same knob,
found by trying them all, holds that temperature: what the machine itself allows. Sessions that
drift by more than 5 % are counted at the end, those that said why apart from those that did not.
"""

import argparse
import sys
import time
from collections import Counter
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

HEAD = f"{'machine':21}{'governor':18}{'first':>7}{'tok/s':>7}{'drift':>7}{'tok/s':>7}"
HEAD += f"{'ms/tok':>8}{'kept':>6}"
HEAD += f"{'°C max':>8}{'°C end':>8}"
HEAD += (
    f"{'target':>8}{'settled':>9}{'best':>7}{'W end':>7}{'duty':>6}{'changes':>9}{'late':>6}  notes"
)
KNOBS = {"limit": Knob.POWER_LIMIT, "clocks": Knob.CLOCKS, "pacing": Knob.PACING}
NAMES = ("none", *(f"{knob}, {mode}" for knob in KNOBS for mode in Mode))


LEARN_S, LEARN_C = 2 * 3600, 22.0
DRIFT_MAX = 0.05
SAYS_WHY = {"slower", "cooling_worse", "target_unreachable", "temperature_lost"}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--ambient", type=float, default=23.0)
    parser.add_argument("--rooms", type=float, nargs="*", default=[18.0, 23.0, 28.0, 32.0])
    arguments = parser.parse_args()
    seconds = int(arguments.hours * 3600)
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    print(HEAD)
    for card in CARDS:
        for name in NAMES:
            print(row(card, name, arguments.ambient, seconds, counts), flush=True)
    print(f"\n{'drift by room':39}" + "".join(f"{room:>9.0f} °C" for room in arguments.rooms))
    for card in CARDS:
        for name in NAMES:
            runs = [run_of(card, name, room).go(seconds) for room in arguments.rooms]
            counts.update(verdict(run) for run in runs)
            drifts = "".join(f"{100 * run.drift_frac():+10.1f} %" for run in runs)
            print(f"{card.name:21}{name:18}{drifts}", flush=True)
    print("\n" + ", ".join(f"{n} {text}" for text, n in sorted(counts.items())) + "\n")
    for card in CARDS:
        print_caps(card, arguments.ambient)
    print(f"\n{time.perf_counter() - started:.1f} s of real time")


def run_of(card: Card, name: str, ambient_c: float, *, is_first: bool = False) -> Run:
    """Return a way to run a machine, after an earlier session unless it is the first one."""
    knob, _, mode = name.partition(", ")
    if knob == "none":
        return Run(Plant(card, ambient_c), is_governed=False)
    device, wish = device_of(card, KNOBS[knob]), Wish(mode=Mode(mode))
    known = None
    if not is_first:
        known = Run(Plant(card, LEARN_C), wish, device=device).go(LEARN_S).learnt()
    return Run(Plant(card, ambient_c), wish, device=device, known=known)


def verdict(run: Run) -> str:
    """Return how a session is counted: a fall that was said with its reason is no silent one."""
    if not run.is_governed:
        return "without a governor"
    if run.drift_frac() <= DRIFT_MAX:
        return "kept 5 %"
    return "slower and said why" if SAYS_WHY & run.said else "slower in silence"


def device_of(card: Card, knob: Knob) -> GovernedDevice:
    """Return a device on which nothing but ``knob`` and pacing can be turned."""
    if knob is Knob.POWER_LIMIT:
        return Plant(card).device()
    is_clocks = knob is Knob.CLOCKS
    return GovernedDevice(
        key=card.name,
        slowdown_c=card.slowdown_c,
        clock_floor_mhz=0.3 * card.f_max_mhz if is_clocks else None,
        clock_ceiling_mhz=card.f_max_mhz if is_clocks else None,
    )


def row(card: Card, name: str, ambient_c: float, seconds: int, counts: Counter[str]) -> str:
    """Return one line of the first table, and count its two sessions."""
    run = run_of(card, name, ambient_c).go(seconds)
    first = run_of(card, name, ambient_c, is_first=True).go(seconds)
    counts.update(verdict(each) for each in (run, first))
    moments, end = run.moments, len(run.moments)
    changes = run.changes()
    late = sum(m.t_s > 3600 for m in changes)
    cool_ms = Run(Plant(card, ambient_c), is_governed=False).go(60).ms_per_token(0, 60)
    end_ms = run.ms_per_token(end - 600, end)
    text = f"{card.name:21}{name:18}"
    for each in (first, run):
        text += f"{100 * each.drift_frac():+6.1f}%{each.plant.tokens / seconds:7.2f}"
    text += f"{end_ms:8.1f}{100 * cool_ms / end_ms:5.0f}%{max(m.die_c for m in moments):8.1f}"
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
