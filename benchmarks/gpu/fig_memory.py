"""Dry run against allocation per buffer, and against what the card itself says is in use."""

import time
from collections.abc import Iterator
from typing import Any

import msgspec
from card import Peak
from lab import Lab

from app.domain.errors import ErrorInfo
from app.domain.memory import DeviceMemory
from app.domain.settings import FlashAttn, Settings
from app.domain.trial import Workload
from app.memory.overhead import DRIVER_CONTEXT, GROWTH, Overhead, calibration_slot, overhead
from app.rig.ends import WorkerEnd
from app.rig.planner import plan_with
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from app.session.opening import usable_devices
from app.worker.protocol import Failed, Load, RunTrial, TrialStarted

_SILENCE_S = 60.0
_PARTS = ("weights_bytes", "kv_cache_bytes", "compute_bytes", "total_bytes")


def memory(lab: Lab) -> None:
    """Every part of every configuration, planned, allocated and seen from outside."""
    with lab.stand_in(), lab.session() as session:
        machine = session.machine()
        device = usable_devices(machine, (lab.device,))[0]
        for letter in "abc":
            if lab.left_s < lab.pick(25, 2):
                lab.result.add("left_out", letter)
                continue
            cases = list(grid(lab, letter))
            plans = planned(lab, letter, cases)
            rows = [row for row in measured(lab, letter, cases) if row]
            for row in rows:
                lab.result.add("rows", finish(row, plans, device))
    lab.result.put("summary", summary(lab.result.data.get("rows", [])))


def grid(lab: Lab, letter: str) -> Iterator[Settings]:
    """Yield the configurations, those of one load together."""
    spec = lab.spec(letter)
    full, half = spec.max_gpu_layers, spec.n_layer // 2
    contexts: tuple[dict[str, Any], ...] = (
        {"n_ctx": 4096},
        {"n_ctx": 4096, "n_ubatch": 2048},
        {"n_ctx": 32768},
        {"n_ctx": 32768, "type_k": "q8_0", "type_v": "q8_0"},
        {"n_ctx": 8192, "flash_attn": FlashAttn.OFF},
        {"n_ctx": 16384, "n_seq_max": 4},
    )
    loads: tuple[dict[str, int], ...] = ({}, {"n_gpu_layers": half}, {"n_gpu_layers": 0})
    if spec.n_expert:
        loads = ({}, {"n_cpu_moe": half}, {"n_cpu_moe": spec.n_layer}, {"n_gpu_layers": half})
    if letter == "b":
        loads = loads[:2]
    for load in loads:
        many = len(contexts) if letter == "a" and not load else 3
        for context in contexts[: many if letter == "a" else 2]:
            yield lab.settings(**{"n_gpu_layers": full, **load, **context})


def planned(lab: Lab, letter: str, cases: list[Settings]) -> dict[Settings, Any]:
    """Return the dry run of every case; the time of each goes to the results."""
    path, times = str(lab.path(letter)), []
    worker = drain(start_worker(Launch(rpc=lab.rpc)))
    found: dict[Settings, Any] = {}
    try:
        for settings in cases:
            start_ns = time.perf_counter_ns()
            found[settings] = plan_with(worker, path, settings)
            times.append(round((time.perf_counter_ns() - start_ns) / 1e6, 2))
        base = cases[0]
        start_ns = time.perf_counter_ns()
        for step in range(100):
            plan_with(worker, path, msgspec.structs.replace(base, n_ctx=4096 + 256 * step))
        many_ms = round((time.perf_counter_ns() - start_ns) / 1e6, 1)
    finally:
        worker.close()
    lab.wait_for_memory()
    lab.result.add("dry_run_ms", {"model": letter, "each": times, "contexts_100": many_ms})
    return found


def measured(lab: Lab, letter: str, cases: list[Settings]) -> Iterator[dict[str, Any]]:
    """Allocate every case and yield what engine and card say of it.

    Each case gets a process of its own: what an earlier context left behind would count.
    """
    for settings in cases:
        if lab.left_s < lab.pick(12, 1):
            lab.result.add("left_out", {"model": letter, "settings": settings})
            continue
        with Peak(lab.nvml) as peak:
            try:
                yield one(lab, letter, settings, peak)
            except WorkerEnd as end:
                lab.result.add("failed", {"model": letter, "settings": settings, "end": repr(end)})
        lab.wait_for_memory()


def one(lab: Lab, letter: str, settings: Settings, peak: Peak) -> dict[str, Any]:
    """Load, create a context, run it, and read the card at each step."""
    before = peak.now()
    worker = drain(start_worker(Launch(rpc=lab.rpc)))
    try:
        greeted = peak.now()
        load = Load(model_path=str(lab.path(letter)), settings=settings)
        drain(worker.ask(load, "load", _silence))
        loaded = peak.now()
        created, started = watched_trial(worker, settings, peak)
        return {
            "model": letter,
            "arch": lab.spec(letter).arch,
            "settings": settings,
            "driver_context_bytes": greeted - before,
            "loaded_bytes": loaded - before,
            "created_bytes": created - before,
            "peak_bytes": peak.peak_bytes - before,
            "after_bytes": peak.now() - before,
            "engine": started,
        }
    finally:
        worker.close()


def watched_trial(
    worker: WorkerProcess, settings: Settings, peak: Peak
) -> tuple[int, tuple[DeviceMemory, ...]]:
    """Return what was in use right after the context existed, and the engine's own count."""
    work = Workload(n_prompt=512, n_gen=24)
    request = RunTrial(settings=settings, workload=work, min_reps=1, max_reps=1, max_s=1.0)
    exchange = worker.ask(request, "context", _silence)
    created, started = 0, None
    while True:
        try:
            reply = next(exchange)
        except StopIteration as stop:
            if isinstance(stop.value, Failed):
                return created, ()
            return created, started or ()
        if isinstance(reply, TrialStarted):
            created, started = peak.now(), reply.devices


def finish(row: dict[str, Any], plans: dict[Settings, Any], device: Any) -> dict[str, Any]:
    """Compare one row with its dry run."""
    plan = plans[row["settings"]]
    if isinstance(plan, ErrorInfo) or not row["engine"]:
        return {**row, "plan": plan}
    ours = {d.device: d for d in plan}
    row["differences"] = {
        d.device: {
            part: getattr(ours[d.device], part) - getattr(d, part)
            for part in _PARTS
            if getattr(d, part) is not None and getattr(ours[d.device], part) is not None
        }
        for d in row["engine"]
        if d.device in ours
    }
    need = ours[device.id].total_bytes
    host = ours["host"]
    has_cpu_layers = bool(host.kv_cache_bytes)
    settings = row["settings"]
    extra = overhead(device, settings, {}, has_cpu_layers=has_cpu_layers)
    row["slot"] = calibration_slot(device.id, settings, has_cpu_layers=has_cpu_layers)
    row["need_bytes"] = need
    row["growth_bytes"] = row["peak_bytes"] - row["driver_context_bytes"] - need
    row["prior_total_bytes"] = need + extra.driver_context_bytes + extra.growth_bytes
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return worst differences, and the error of the total with priors and once calibrated.

    Calibrated means as the program would: the largest growth another row of the same slot and
    architecture has shown, and the largest driver context.
    """
    good = [r for r in rows if r.get("need_bytes") and r["peak_bytes"]]
    # mapped weights in RAM are counted as the range of the file that was mapped: said apart
    worst = {"host": 0, "device": 0}
    for row in rows:
        for name, parts in row.get("differences", {}).items():
            where = "host" if name == "host" else "device"
            worst[where] = max(worst[where], *(abs(v) for v in parts.values()))
    errors, prior = [], []
    for row in good:
        peers = [
            r for r in good
            if r is not row and (r["slot"], r["arch"]) == (row["slot"], row["arch"])
        ]  # fmt: skip
        prior.append(_error(row["prior_total_bytes"], row["peak_bytes"]))
        if peers:
            known = Overhead(
                driver_context_bytes=max(r["driver_context_bytes"] for r in peers),
                growth_bytes=max(r["growth_bytes"] for r in peers),
                measured=(DRIVER_CONTEXT, GROWTH),
            )
            total = row["need_bytes"] + known.driver_context_bytes + known.growth_bytes
            errors.append(_error(total, row["peak_bytes"]))
    return {
        "n": len(rows),
        "worst_part_difference_bytes": worst,
        "prior": _spread(prior),
        "calibrated": _spread(errors),
    }


def _error(ours: int, real: int) -> dict[str, float]:
    return {"pct": round(100 * (ours - real) / real, 2), "bytes": ours - real}


def _spread(errors: list[dict[str, float]]) -> dict[str, Any]:
    if not errors:
        return {"n": 0}
    return {
        "n": len(errors),
        "worst_pct": max((e["pct"] for e in errors), key=abs),
        "most_under_bytes": min(0, *(e["bytes"] for e in errors)),
        "each": errors,
    }


def _silence(_phase: str) -> float:
    return _SILENCE_S
