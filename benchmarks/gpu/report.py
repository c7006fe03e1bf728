"""Writes the figures of one run on a card into ``docs/benchmarks.md``.

    python benchmarks/gpu/report.py RESULTS

RESULTS is the folder of ``measure.py`` (its archive, unpacked). What stands between
``<!-- figure: NAME -->`` and ``<!-- end -->`` is replaced where the run has that figure; the rest
of the page stays. Figures of a rehearsal are refused.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs/benchmarks.md"
MIB = 1 << 20
_BLOCK = re.compile(r"(<!-- figure: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> int:
    """Fill in the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args()
    filled: list[str] = []

    def fill(match: re.Match[str]) -> str:
        name = match.group(2)
        path = args.results / f"{name}.json"
        if not path.exists():
            return match.group(0)
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["tiny"]:
            sys.exit(f"{path} is a rehearsal")
        filled.append(name)
        lines = [line for line in TABLES.get(name, plain)(data) if line is not None]
        return match.group(1) + "\n".join([head(data), "", *lines, ""]) + match.group(3)

    text = args.page.read_text(encoding="utf-8")
    args.page.write_text(_BLOCK.sub(fill, text), encoding="utf-8")
    print("filled:", ", ".join(filled) or "nothing")
    return 0


def head(data: dict[str, Any]) -> str:
    """Return where and when a figure comes from."""
    card = data.get("card") or {}
    note = "" if data["status"] == "complete" else f", {data['status']}: the part that was measured"
    return (
        f"{card.get('name')}, driver {card.get('driver')}, {data['began_utc'][:10]}, "
        f"{data['seconds']:.0f} s{note}."
    )


def table(columns: list[str], rows: list[list[Any]]) -> list[str]:
    """Return a Markdown table; numbers are rounded to what they mean."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join(cell(v) for v in row) + " |" for row in rows]


def cell(value: Any) -> str:
    """Return one value as text."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    if isinstance(value, list):
        return ", ".join(cell(v) for v in value)
    return str(value).replace("|", "/").replace("\n", " ")


def agreement(data: dict[str, Any]) -> list[str]:
    """Ours over llama-bench."""
    rows = []
    for name in ("full", "half", "none", "cpu"):
        for phase, ratio in data.get(name, {}).get("ratio", {}).items():
            cells = [name, phase, ratio["median"], ratio["ratios"]]
            rows.append([*cells, ratio["spread_ours"], ratio["spread_theirs"]])
    return table(["offload", "phase", "ratio", "pairs", "spread ours", "spread theirs"], rows)


def memory(data: dict[str, Any]) -> list[str]:
    """Dry run against the engine's and the card's own count."""
    found = data.get("summary", {})
    rows = [
        [name, s["n"], s.get("worst_pct"), s.get("most_under_bytes", 0) / MIB]
        for name in ("prior", "calibrated")
        if (s := found.get(name))
    ]
    worst = found.get("worst_part_difference_bytes", {})
    times = [t for d in data.get("dry_run_ms", []) for t in d["each"]]
    return [
        f"{found.get('n')} configurations. Largest difference of any buffer on the device: "
        f"{worst.get('device')} bytes. Dry run: median {median(times) if times else 0:.1f} ms.",
        "",
        *table(["device total with", "n", "worst error %", "most under, MiB"], rows),
    ]


def tuned(data: dict[str, Any]) -> list[str]:
    """A search beside the wider sweep of the same situation."""
    tune, best = data.get("tune", {}), data.get("sweep_best")
    recommended = tune.get("recommended") or {}
    regret = data.get("regret", {})
    rows: list[list[Any]] = [
        ["recommended", settings(recommended.get("settings"))],
        ["best of the sweep", settings(best)],
        ["regret, in turns", "same" if regret.get("same") else regret.get("median")],
        ["spread of ours, of the best", [regret.get("spread_ours"), regret.get("spread_best")]],
        ["loads", tune.get("n_model_loads")],
        ["out-of-memory launches", data.get("n_oom")],
        ["seconds", data.get("tune_s")],
        ["prefill, tok/s", (recommended.get("prefill_tok_s") or {}).get("median")],
        ["decode, tok/s", (recommended.get("decode_tok_s") or {}).get("median")],
    ]
    return table(["", ""], rows)


def settings(found: dict[str, Any] | None) -> str | None:
    """Return settings in one short line."""
    if not found:
        return None
    return (
        f"ngl {found['n_gpu_layers']}, ncmoe {found['n_cpu_moe']}, ub {found['n_ubatch']}, "
        f"{found['load_mode']}, fa {found['flash_attn']}, KV {found['type_k']}, "
        f"{found['n_threads']} threads"
    )


def chat(data: dict[str, Any]) -> list[str]:
    """Ours over a bare loop."""
    rows = []
    for name in ("sampled", "greedy"):
        part = data.get(name, {})
        bare = [p["bare"]["decode_tok_s"] for p in part.get("pairs", [])]
        ratio = part.get("ratio", {})
        cells = [ratio.get(f, {}).get("median") for f in ("decode_tok_s", "arriving_tok_s")]
        rows.append([name, median(bare) if bare else None, *cells])
    return table(["", "bare, tok/s", "ratio", "ratio as text arrives"], rows)


def trials(data: dict[str, Any]) -> list[str]:
    """One line per trial of a figure that is a list of them."""
    found = [(k, v) for k, v in data.items() if isinstance(v, dict) and "decode_tok_s" in v]
    found += [(name(r["settings"], r["workload"]), r) for r in data.get("rows", [])]
    rows = [[n, r["outcome"], r["prefill_tok_s"], r["decode_tok_s"]] for n, r in found]
    lines = table(["", "outcome", "prefill", "decode"], rows)
    for row in data.get("n_outputs_max") or []:
        rows_of = row["n_outputs_max"] or "default"
        lines.append(f"\nContext with n_outputs_max {rows_of}: {row['bytes'] / MIB:.0f} MiB.")
    return lines


def name(found: dict[str, Any], workload: dict[str, Any]) -> str:
    """Return what tells one row of a curve from another."""
    return (
        f"ngl {found['n_gpu_layers']}, KV {found['type_k']}, fa {found['flash_attn']}, "
        f"depth {workload['depth']}"
    )


def failures(data: dict[str, Any]) -> list[str]:
    """How each failure was named, and what it left behind."""
    rows = []
    for step, value in data.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                trial = next((part[k] for k in ("failed", "trial", "during") if k in part), part)
                error, back = trial.get("error") or {}, part.get("back") or {}
                cells = [trial.get("outcome"), error.get("message"), back.get("seconds")]
                label = f"{step}, {part['spare_mib']} MiB spare" if "spare_mib" in part else step
                rows.append([label, *cells])
    rows = [r for r in rows if r[1] or r[3] is not None]
    return table(["failure", "outcome", "sentence", "memory back after, s"], rows)


def curve(data: dict[str, Any]) -> list[str]:
    """Predicted against measured, per layer count."""
    found = data.get("prediction") or {}
    fields = ("request_error", "prefill_error", "decode_error")
    rows = [[r["n_gpu_layers"], *(r[f] for f in fields)] for r in found.get("rows", [])]
    rows.append(["median", *(found.get("median", {}).get(f) for f in fields)])
    return table(["layers", "error of the request", "of prefill", "of decode"], rows)


def vulkan(data: dict[str, Any]) -> list[str]:
    """Every run; the first of Vulkan compiles its shaders."""
    rows = []
    for r in data.get("rows", []):
        trial = r.get("trial") or {"outcome": r.get("problem", "")[-80:]}
        cells = [(trial.get(f"{p}_tok_s") or {}).get("median") for p in ("prefill", "decode")]
        rows.append([r["device"], r["n_gpu_layers"], r["round"], trial["outcome"], *cells])
    return table(["device", "layers", "round", "outcome", "prefill", "decode"], rows)


def plain(data: dict[str, Any]) -> list[str]:
    """Say only that the raw data is there."""
    return [f"Raw data: {len(json.dumps(data)) / 1024:.0f} KiB."]


def cost(data: dict[str, Any]) -> list[str]:
    """Microseconds per call."""
    rows = [[k, v["us"]] for k, v in data.items() if isinstance(v, dict) and "us" in v]
    lines = table(["call", "µs"], rows)
    for key, value in data.items():
        if isinstance(value, dict) and "share_pct" in value:
            lines.append(f"\nSampling at an {key}: {value['share_pct']} % of one core.")
    return lines


def identity(data: dict[str, Any]) -> list[str]:
    """Medians of our readings minus the vendor tool's."""
    rows: dict[str, list[Any]] = {}
    states = ("idle", "prefill", "decode")
    for column, state in enumerate(states):
        differences = data.get(state, {}).get("differences", [])
        for field in sorted({k for d in differences for k in d}):
            values = [d[field] for d in differences if field in d]
            rows.setdefault(field, [None] * 3)[column] = median(values)
    return table(["ours − nvidia-smi", *states], [[k, *v] for k, v in sorted(rows.items())])


def devices(data: dict[str, Any]) -> list[str]:
    """Every set of devices."""
    rows = [
        [
            ", ".join(r["devices"]),
            *(r["trial"][k] for k in ("outcome", "prefill_tok_s", "decode_tok_s")),
            r["plan"]["verdict"],
        ]
        for r in data.get("rows", [])
    ]
    return table(["devices", "outcome", "prefill", "decode", "verdict"], rows)


def two_cards(data: dict[str, Any]) -> list[str]:
    """What a quick search over two cards recommends, per situation."""
    rows = []
    for name, found in data.items():
        best = found.get("recommended") if isinstance(found, dict) else None
        if best:
            s = best["settings"]
            speeds = [best[f"{p}_tok_s"]["median"] for p in ("prefill", "decode")]
            rows.append([name, ", ".join(s["devices"]) or "CPU", s["n_gpu_layers"], *speeds,
                         found["n_model_loads"]])  # fmt: skip
    return table(["situation", "devices", "layers", "prefill", "decode", "loads"], rows)


TABLES = {
    "identity": identity,
    "memory": memory,
    "agreement": agreement,
    **{f"tune_{n}": tuned for n in ("all", "most", "half", "little", "q8", "experts")},
    "chat": chat,
    "curve": curve,
    "levers": trials,
    "depth": trials,
    "failures": failures,
    "nvml_cost": cost,
    "one_as_two": devices,
    "cards": devices,
    "two_cards": two_cards,
    "vulkan": vulkan,
}


if __name__ == "__main__":
    sys.exit(main())
