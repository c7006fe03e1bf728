"""Several devices (or one shown as several), and what reading the card costs."""

import contextlib
import json
import os
import sys
from functools import partial
from typing import Any

from card import Holder
from lab import GIB, MIB, Lab, brief, command, run
from probe_cost import CALLS, share_pct, timed

from app.domain.trial import Workload
from app.runtime import sibling_environment
from app.session.opening import usable_devices
from probes import registry
from probes.nvml import LiveNvml

_WORK = Workload(n_prompt=512, n_gen=64)
_PAIRS: dict[str, tuple[tuple[int | None, int | None], tuple[int, int]]] = {
    "both too small": ((3 * GIB, 2 * GIB), (344 * MIB, 344 * MIB)),
    "one nearly full": ((2 * GIB, None), (300 * MIB, GIB)),
    "both free": ((None, None), (GIB, GIB)),
}
"""Situation → free bytes of two cards (``None`` = all), and the sizes of two stand-ins."""


def cards(lab: Lab) -> None:
    """Identity, dry run against allocation, and speed of every device and of all together."""
    with lab.stand_in():
        found = command([sys.executable, "-m", "app", "probe", "--json", *lab.rpc_arguments()])
        lab.result.put("probe", json.loads(found.stdout) if found.stdout else found.stderr)
        with lab.session() as session:
            machine = session.machine()
            lab.result.put("usable", usable_devices(machine))
            names = tuple(d.name for gpu in machine.gpus for d in gpu.engine)
        full = lab.spec("a").max_gpu_layers
        sets = dict.fromkeys([*((name,) for name in names), names, names[::-1]])
        for devices in sets:
            settings = lab.settings(full, devices=devices, n_ctx=4096)
            with lab.rig("a", devices) as rig:
                planned = rig.dry_run(settings)
                trial = run(rig, settings, _WORK, 3)
            row: dict[str, Any] = {"devices": devices, "plan": planned, "trial": brief(trial)}
            lab.result.add("rows", row)


def two_cards(lab: Lab) -> None:
    """Search over two cards: both free, one nearly full, and both too small alone.

    Also with the first hidden from the engine: the other must be found as what it is.
    """
    for name, (free, tiny) in _PAIRS.items():
        with contextlib.ExitStack() as stack:
            if lab.tiny:
                stack.enter_context(lab.stand_in(*tiny))
            for card, free_bytes in enumerate(lab.pick(free, ())):
                if free_bytes is not None:
                    holder = Holder(card)
                    stack.callback(holder.close)
                    holder.leave(free_bytes)
            done = command(tune(lab), 150)
        lab.result.put(name, json.loads(done.stdout or "null") or done.stderr[-1500:])
        lab.wait_for_memory()
    second = [sys.executable, "-m", "app", "probe", "--json"]
    done = command(second, 60, CUDA_VISIBLE_DEVICES="1")
    lab.result.put("first hidden", json.loads(done.stdout or "null") or done.stderr[-1500:])


def tune(lab: Lab) -> list[str]:
    """Return the command that searches quickly on whatever is there."""
    return [
        sys.executable, "-m", "app", "tune", str(lab.path("a")), "--budget", "quick", "--json",
        *lab.rpc_arguments(),
    ]  # fmt: skip


def vulkan(lab: Lab) -> None:
    """The same card through Vulkan and through CUDA, in turns; and who is who."""
    root = sibling_environment()["PYTHONPATH"].split(os.pathsep)[0]
    path = os.pathsep.join([root, "/tmp/site", "/tmp/pkg-vulkan"])  # noqa: S108 - as setup.sh does
    loaders = "/tmp/loaders/usr/lib/x86_64-linux-gnu"  # noqa: S108 - as setup.sh does
    libraries = os.pathsep.join([os.environ.get("LD_LIBRARY_PATH", ""), loaders])
    engines: dict[str, dict[str, str]] = {
        "Vulkan0": {"PYTHONPATH": path, "LD_LIBRARY_PATH": libraries},
        "CUDA0": {},
    }
    engines = lab.pick(engines, {"Vulkan0": {}, "RPC0": {}})
    with lab.stand_in():
        probe = [sys.executable, "-m", "app", "probe", "--json", *lab.rpc_arguments()]
        for name, environment in engines.items():
            found = command(probe, 60, **environment)
            lab.result.put(f"probe {name}", json.loads(found.stdout or "null") or found.stderr)
        for number in range(lab.pick(4, 1)):
            for layers in (lab.spec("a").max_gpu_layers, lab.spec("a").n_layer // 2):
                for name, environment in engines.items():
                    if lab.left_s > lab.pick(15, 0):
                        row = bench(lab, name, layers, environment)
                        # the first run of Vulkan compiles its shaders
                        lab.result.add("rows", {"device": name, "round": number, **row})


def bench(lab: Lab, device: str, layers: int, environment: dict[str, str]) -> dict[str, Any]:
    """Return one run of the command line."""
    arguments = [
        sys.executable, "-m", "app", "bench", str(lab.path("a")), "--n-gpu-layers", str(layers),
        "--device", device, "--n-gen", "32", "--reps", "3", "--n-threads", str(lab.threads),
        "--json", *lab.rpc_arguments(),
    ]  # fmt: skip
    done = command(arguments, 120, **environment)
    try:
        trial = json.loads(done.stdout)["trial"]
    except (ValueError, KeyError):
        return {"n_gpu_layers": layers, "problem": (done.stdout + done.stderr)[-1500:]}
    return {"n_gpu_layers": layers, "trial": trial}


def nvml_cost(lab: Lab) -> None:
    """Time per call of what our sampler asks, and its share of one core."""
    nvml = LiveNvml()
    problem = nvml.start()
    if problem is None:
        for function, arguments in CALLS:
            answer, us = timed(partial(nvml.query, function, *arguments, device="index:0"))
            row = {"us": round(us, 1), "answer": str(answer)[:80]}
            lab.result.put(f"{function}{arguments}", row)
        nvml.stop()
    else:
        lab.result.put("nvml", str(problem))
    probes = registry.detect()
    for probe in probes.gpus:
        probe.identify()
        _, us = timed(probe.sample)
        lab.result.put(f"sample by {probe.name}", {"us": round(us, 1)})
    for interval_s in (1.0, 0.2):
        share, count = share_pct(probes.gpus, probes.host, interval_s, lab.pick(8.0, 1.0))
        row = {"share_pct": round(share, 3), "samples": count}
        lab.result.put(f"interval {interval_s} s", row)
        probes = registry.detect()  # a telemetry that was stopped has closed its probes
