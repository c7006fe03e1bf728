"""Engine and identity, and our readings beside the vendor's tool."""

import json
import subprocess
import sys
import threading
import time
from typing import Any

from lab import Lab, brief, command, run

from app.domain.machine import GpuSample, HostSample
from app.domain.trial import Workload
from app.domain.units import MIB, NS_PER_S

_COLUMNS = (
    "uuid", "pci.bus_id", "name", "driver_version", "utilization.gpu", "utilization.memory",
    "memory.used", "memory.free", "temperature.gpu", "power.draw.instant", "power.draw",
    "enforced.power.limit", "clocks.sm", "clocks.mem", "pcie.link.gen.current",
    "pcie.link.width.current",
    "fan.speed",
    "temperature.memory",
    "ecc.errors.uncorrected.volatile.total",
)  # fmt: skip
_SECONDS = 5.0


def identity(lab: Lab) -> None:
    """``probe --json`` and, at idle, prefill and decode, samples beside ``nvidia-smi``."""
    with lab.stand_in():
        began_s = time.monotonic()
        found = command([sys.executable, "-m", "app", "probe", "--json", *lab.rpc_arguments()])
        lab.result.put("probe_s", round(time.monotonic() - began_s, 2))
        lab.result.put("probe", json.loads(found.stdout) if found.stdout else found.stderr)
        lab.result.put("smi_list", smi(["-L"]))
        for state in ("idle", "prefill", "decode"):
            lab.result.put(state, watch(lab, state))
        began_s = time.monotonic()
        checked = command([sys.executable, "-m", "app", "doctor", *lab.rpc_arguments()], 90)
        text = (checked.stdout + checked.stderr)[-3000:]
        lab.result.put("doctor", {"text": text, "exit": checked.returncode})
        lab.result.put("doctor_s", round(time.monotonic() - began_s, 2))


def watch(lab: Lab, state: str) -> dict[str, Any]:
    """Return our samples, the tool's, and each difference of readings at the same moment."""
    ours: list[GpuSample] = []
    theirs: list[dict[str, Any]] = []
    end = threading.Event()

    def keep(_key: str, sample: GpuSample | HostSample) -> None:
        if isinstance(sample, GpuSample):
            ours.append(sample)

    def poll() -> None:
        while not end.wait(0.3):
            theirs.append(query())

    poller = threading.Thread(target=poll, daemon=True)
    with lab.session() as session:
        session.telemetry(0.2).subscribe(keep)
        poller.start()
        trial = None if state == "idle" else load(lab, state)
        if trial is None:
            time.sleep(lab.pick(_SECONDS, 1.0))
        end.set()
        poller.join()
    last = ours[len(ours) // 2 :]
    return {
        "trial": trial,
        "ours": [s for i, s in enumerate(last) if i % 4 == 0],
        "theirs": theirs,
        "differences": differences(last, theirs),
    }


def load(lab: Lab, state: str) -> dict[str, Any]:
    """Keep the card at one kind of work for some seconds."""
    full = lab.spec("a").max_gpu_layers
    work = Workload(n_prompt=lab.pick(2048, 64), n_gen=8)
    if state == "decode":
        work = Workload(n_prompt=16, n_gen=64)
    reps = lab.pick(24 if state == "prefill" else 20, 3)
    with lab.rig("a") as rig:
        return brief(run(rig, lab.settings(full, n_ctx=4096), work, reps))


def differences(ours: list[GpuSample], theirs: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Return ours minus theirs for each reading of theirs, with the nearest of ours."""
    found = []
    for other in theirs[len(theirs) // 2 :]:
        if not ours or "clocks.sm" not in other:
            continue
        near = min(ours, key=lambda s: abs(s.t_ns - other["t_ns"]))
        pairs = {
            "busy_pct": (near.busy_pct, other["utilization.gpu"]),
            "mem_busy_pct": (near.mem_busy_pct, other["utilization.memory"]),
            "vram_used_mib": (_mib(near.vram_used_bytes), other["memory.used"]),
            "vram_free_mib": (_mib(near.vram_free_bytes), other["memory.free"]),
            "temp_c": (near.temp_c, other["temperature.gpu"]),
            "power_w": (near.power_w, other["power.draw.instant"]),
            "power_limit_w": (near.power_limit_w, other["enforced.power.limit"]),
            "clock_mhz": (near.clock_mhz, other["clocks.sm"]),
            "clock_memory_mhz": (near.clock_memory_mhz, other["clocks.mem"]),
            "pcie_gen": (near.pcie_gen, other["pcie.link.gen.current"]),
            "pcie_width": (near.pcie_width, other["pcie.link.width.current"]),
            "fan_pct": (near.fan_pct, other["fan.speed"]),
            "temp_memory_c": (near.temp_memory_c, other["temperature.memory"]),
            "memory_errors": (near.memory_errors, other["ecc.errors.uncorrected.volatile.total"]),
        }
        row = {n: a - b for n, (a, b) in pairs.items() if a is not None and _is_number(b)}
        row["apart_ms"] = abs(near.t_ns - other["t_ns"]) / NS_PER_S * 1000
        found.append({name: round(value, 2) for name, value in row.items()})
    return found


def query() -> dict[str, Any]:
    """Return one reading of ``nvidia-smi``, stamped with its middle."""
    before = time.perf_counter_ns()
    text = smi([f"--query-gpu={','.join(_COLUMNS)}", "--format=csv,noheader,nounits"])
    after = time.perf_counter_ns()
    values = [v.strip() for v in text.split("\n", 1)[0].split(",")]
    found: dict[str, Any] = {"t_ns": (before + after) // 2, "took_ms": (after - before) / 1e6}
    if len(values) == len(_COLUMNS):
        found |= {n: _number(v) for n, v in zip(_COLUMNS, values, strict=True)}
    return found


def smi(arguments: list[str]) -> str:
    """Return what ``nvidia-smi`` prints (it only reads), or why it is not there."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments],  # noqa: S607 - the driver puts it on the path
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    except OSError as error:
        return str(error)
    return done.stdout.strip()


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _mib(n_bytes: int | None) -> float | None:
    return None if n_bytes is None else n_bytes / MIB
