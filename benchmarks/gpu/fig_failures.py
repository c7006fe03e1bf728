"""Memory that runs out at every stage, and what is left after a kill: names, sentences, bytes."""

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
from card import Holder
from lab import GIB, MIB, Lab, brief, command, run

from app.domain.errors import ErrorInfo
from app.domain.events import TrialFinished
from app.domain.settings import Settings
from app.domain.trial import TrialRequest, Workload
from app.rig.planner import Planner
from app.rig.process import Launch
from app.rig.workers import WorkerRig
from app.runtime import sibling_environment

if TYPE_CHECKING:
    from collections.abc import Callable

_WORK = Workload(n_prompt=512, n_gen=64)
_LONG = Workload(n_prompt=16, n_gen=64)


def failures(lab: Lab) -> None:
    """Run every failure once."""
    full = lab.spec("a").max_gpu_layers
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("kill", lambda: killed(lab, full)),
        ("kill_parent", lambda: parent_killed(lab, full)),
        ("cancel", lambda: cancelled(lab, full)),
        ("load", lambda: starved(lab, GIB * 5 // 2, lab.settings(full))),
        ("context", lambda: starved(lab, 4 * GIB, lab.settings(22))),
        ("kv_cache", lambda: starved(lab, 4 * GIB, lab.settings(14, n_ctx=131072))),
        ("first_use", lambda: first_use(lab, lab.settings(full))),
        ("later", lambda: later(lab, full)),
    ]
    for name, step in steps:
        if lab.left_s < lab.pick(10, 0):
            lab.result.add("left_out", name)
            continue
        try:
            lab.result.put(name, step())
        except Exception as error:  # noqa: BLE001 - one failure less must not cost the others
            lab.result.put(name, {"benchmark_failed": repr(error)})
        lab.wait_for_memory()


def starved(lab: Lab, free_bytes: int, settings: Settings) -> dict[str, Any]:
    """Return the trial of ``settings`` with too little memory, and one that fits after it."""
    with lab.capped(lab.pick(free_bytes, None)), lab.rig("a") as rig:
        failed = brief(run(rig, settings, _WORK, 2))
        after = brief(run(rig, lab.settings(2), Workload(n_prompt=64, n_gen=8), 1))
        return {"failed": failed, "after": after}


def first_use(lab: Lab, settings: Settings) -> list[dict[str, Any]]:
    """Return trials whose context fits with only so much to spare: the first batch needs more."""
    need, context = needs(lab, settings)
    rows = []
    for spare in lab.pick((15, 50, 80, 120), (40,)):
        with lab.capped(lab.pick(need + context + spare * MIB, None)), lab.rig("a") as rig:
            rows.append({"spare_mib": spare, **brief(run(rig, settings, _WORK, 3))})
    return rows


def needs(lab: Lab, settings: Settings) -> tuple[int, int]:
    """Return the planned bytes on the device and the driver context a worker takes."""
    with lab.stand_in():
        before = lab.nvml.used_bytes() if lab.nvml else 0
        planner = Planner(Launch(rpc=lab.rpc), str(lab.path("a")))
        try:
            planner.engine()
            context = lab.nvml.used_bytes() - before if lab.nvml else 0
            planned = planner.plan(settings)
        finally:
            planner.release()
    lab.wait_for_memory()
    if isinstance(planned, ErrorInfo):
        raise TypeError(planned.message)
    return next(d.total_bytes for d in planned if d.device == lab.device), context


def later(lab: Lab, full: int) -> dict[str, Any]:
    """Let another program take all memory while tokens are generated."""
    if lab.tiny:
        return {}
    holder = Holder()
    taken: list[int] = []

    def see(phase: str) -> None:
        if phase == "decode" and not taken:
            taken.append(holder.leave(None))

    try:
        with lab.rig("a") as rig:
            trial = run(rig, lab.settings(full), _WORK, 12, see=see)
            deeper = lab.settings(full, n_ctx=16384)
            again = run(rig, deeper, Workload(n_prompt=512, n_gen=32), 1)
        return {"free_after": taken, "during": brief(trial), "next_context": brief(again)}
    finally:
        holder.close()


def killed(lab: Lab, full: int) -> dict[str, Any]:
    """Kill the worker while it decodes; the rig goes on, and no memory stays behind."""
    with lab.stand_in():
        before = lab.nvml.used_bytes() if lab.nvml else 0
        pids: list[int] = []
        with lab.rig("a") as rig:

            def see(phase: str) -> None:
                if phase == "decode" and not pids:
                    pids.append(worker_pid(rig))
                    os.kill(pids[0], signal.SIGKILL)

            trial = run(rig, lab.settings(full), _LONG, lab.pick(50, 20), see=see)
            back = memory_back(lab, before)
            after = run(rig, lab.settings(full), _LONG, 1)
        return {
            "trial": brief(trial),
            "back": back,
            "after": brief(after),
            "pids_left": left(lab, pids),
        }


def worker_pid(rig: WorkerRig) -> int:
    """Return the process that holds the weights."""
    worker = rig._worker  # noqa: SLF001 - to end exactly this one
    assert worker is not None
    return worker.pid


def parent_killed(lab: Lab, full: int) -> dict[str, Any]:
    """Kill the command line in the middle of a bench: its worker must not stay."""
    with lab.stand_in():
        before = lab.nvml.used_bytes() if lab.nvml else 0
        arguments = [
            sys.executable, "-m", "app", "bench", str(lab.path("a")), "--n-gpu-layers", str(full),
            "--device", lab.device, "--reps", "100", "--json", *lab.rpc_arguments(),
        ]  # fmt: skip
        parent = subprocess.Popen(
            arguments, env=sibling_environment(), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(lab.pick(9.0, 5.0))
        used = (lab.nvml.used_bytes() if lab.nvml else 0) - before
        pids = [c.pid for c in psutil.Process(parent.pid).children(recursive=True)]
        parent.kill()
        parent.wait()
        gone = [_gone(pid) for pid in pids]
        back = memory_back(lab, before)
        return {
            "children": pids,
            "held_bytes": used,
            "gone": gone,
            "back": back,
            "lease_is_free": bench_runs(lab),
        }


def bench_runs(lab: Lab) -> str:
    """Return whether another bench may start at once: the dead one's lease is no obstacle."""
    arguments = [
        sys.executable, "-m", "app", "bench", str(lab.path("a")), "--n-gpu-layers", "0",
        "--n-prompt", "16", "--n-gen", "8", "--reps", "1", *lab.rpc_arguments(),
    ]  # fmt: skip
    done = command(arguments, 90)
    return done.stdout[-300:] if done.returncode == 0 else done.stderr[-500:]


def cancelled(lab: Lab, full: int) -> dict[str, Any]:
    """Cancel a long prompt, and say how long the user waits and the card stays taken."""
    work = Workload(n_prompt=lab.pick(30000, 900), n_gen=8)
    n_ctx = lab.pick(32768, 1024)
    with lab.stand_in():
        before = lab.nvml.used_bytes() if lab.nvml else 0
        with lab.rig("a") as rig:
            settings = lab.settings(full, n_ctx=n_ctx)
            request = TrialRequest(
                stage="cancel", settings=settings, workload=work, min_reps=20, max_reps=20
            )
            events = rig.run_trial(request)
            for event in events:
                if isinstance(event, TrialFinished) or event.phase == "prefill":
                    break
            began_s = time.monotonic()
            close = getattr(events, "close", None)
            if close is not None:
                close()
            waited_s = time.monotonic() - began_s
            again = run(rig, settings, _LONG, 1)
        return {
            "cancel_s": round(waited_s, 3),
            "after": brief(again),
            "back": memory_back(lab, before),
        }


def memory_back(lab: Lab, before: int, within_s: float = 15.0) -> dict[str, Any] | None:
    """Wait until no more memory is in use than before (16 MiB aside); say how long it took."""
    if lab.nvml is None:
        return None
    began_s = time.monotonic()
    while True:
        more = lab.nvml.used_bytes() - before
        waited_s = round(time.monotonic() - began_s, 3)
        if more < 16 * MIB or waited_s > within_s:
            return {"seconds": waited_s, "more_bytes": more, "is_back": more < 16 * MIB}
        time.sleep(0.01)


def left(lab: Lab, pids: list[int]) -> list[int]:
    """Return which of ``pids`` the card still counts."""
    return [] if lab.nvml is None else [p for p in lab.nvml.pids() if p in pids]


def _gone(pid: int) -> bool:
    try:
        psutil.Process(pid).wait(15)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True
