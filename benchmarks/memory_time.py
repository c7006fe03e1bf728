"""Time of estimates: dry runs from a fresh process on, and the inverse questions both ways.

    PYTHONPATH=. python benchmarks/memory_time.py [MODEL.gguf]

Goals: first answer ≤ 300 ms after ``hello``, then ≤ 12 ms dense and ≤ 25 ms MoE, 300 dense
configurations ≤ 3 s; an inverse question ≤ 5 ms by formula and ≤ 2 s by dry run. The models are
published shapes (header only) and the demo model, which has a real vocabulary of 262,144 words.
One remote device on this machine stands in for a GPU. On a busy machine only the CPU time of the
planner says something.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path

import msgspec
import psutil

from app.domain.errors import ErrorInfo
from app.domain.machine import EngineDevice, HostInfo
from app.domain.settings import Settings
from app.domain.sweep import SearchDevice
from app.domain.units import GIB
from app.gguf import read_model
from app.library import demo_model
from app.memory import Memory
from app.rig.planner import Planned, plan_with
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from tests.fakes.models import sparse_model
from tests.fakes.rpc_device import rpc_device

DENSE, MOE = "Llama-3.1-8B-Q4_K_M", "Qwen3-30B-A3B-Q4_K_M"
CONTEXTS = (2048, 4096, 8192, 16384, 32768)
UBATCHES = (256, 512, 1024)
TYPES = ("f16", "q8_0")
REPEATS = 5
HOST = HostInfo(os="linux", ram_bytes=64 * GIB, ram_available_bytes=60 * GIB)


def main() -> None:
    """Print one line per figure."""
    with tempfile.TemporaryDirectory() as folder, rpc_device() as endpoint:
        launch = Launch(rpc=(endpoint,))
        demo = Path(sys.argv[1]) if sys.argv[1:] else demo_model()
        shapes = [sparse_model(Path(folder) / f"{name}.gguf", name) for name in (DENSE, MOE)]
        for path in (demo, *shapes):
            print(f"== {path.stem}")
            first_answers(launch, path)
            contexts_and_grid(launch, path)
            inverse_questions(launch, path)


def first_answers(launch: Launch, path: Path) -> None:
    """Print the time from ``hello`` to the first answer of fresh processes."""
    times, cpu_times = [], []
    for _ in range(REPEATS):
        worker = drain(start_worker(launch))
        start_s = cpu_s(worker)
        times.append(timed(lambda w=worker: plan(w, path, Settings(n_gpu_layers=0))))  # type: ignore[misc]
        cpu_times.append(1000 * (cpu_s(worker) - start_s))
        worker.close()
    show("first answer after hello", times)
    show("  of it CPU", cpu_times)


def contexts_and_grid(launch: Launch, path: Path) -> None:
    """Print the time of further contexts of one placement, and of 300 configurations."""
    worker = drain(start_worker(launch))
    n_layer = read_model(path).n_layer
    names = tuple(d.name for d in worker.engine.devices) if worker.engine else ()
    try:
        grid = list(islice(configurations(n_layer, names), 300))
        start_ns, start_cpu_s = time.perf_counter_ns(), cpu_s(worker)
        times = [timed(lambda s=s: plan(worker, path, s)) for s in grid]  # type: ignore[misc]
        total_s = (time.perf_counter_ns() - start_ns) / 1e9
        total_cpu_s = cpu_s(worker) - start_cpu_s
    finally:
        worker.close()
    # the first of a placement plans the weights too
    per_placement = len(CONTEXTS) * len(UBATCHES) * len(TYPES)
    show("new placement", times[::per_placement])
    show("further context", [t for i, t in enumerate(times) if i % per_placement])
    print(f"  {len(grid)} configurations: {total_s:.2f} s, {total_cpu_s:.2f} s of CPU")


def inverse_questions(launch: Launch, path: Path) -> None:
    """Print each inverse question's time, by formula and by dry run."""
    worker = drain(start_worker(launch))
    spec = read_model(path)
    assert worker.engine is not None
    devices = tuple(_limited(d, spec.weights_bytes * 6 // 10) for d in worker.engine.devices)
    settings = Settings(n_gpu_layers=spec.n_layer // 2, devices=tuple(d.id for d in devices))
    try:
        for name in ("max_n_gpu_layers", "max_n_ctx", "min_n_cpu_moe", "cheapest_kv",
                     "next_layer_bytes"):  # fmt: skip
            found = []
            for exact in (False, True):
                memory = Memory(spec, devices, HOST, lambda s: plan(worker, path, s))
                question = getattr(memory, name)
                found.append(timed(lambda q=question, e=exact: q(settings, exact=e)))  # type: ignore[misc]
            print(f"  {name:28} formula {found[0]:8.2f} ms   dry run {found[1]:8.1f} ms")
    finally:
        worker.close()


def configurations(n_layer: int, names: tuple[str, ...]) -> Iterator[Settings]:
    """Yield placements × contexts × batches × cache types, one placement after the other."""
    steps = [round(i * (n_layer + 1) / 9) for i in range(10)]
    for layers in steps:
        base = Settings(n_gpu_layers=layers, devices=names)
        for n_ctx, n_ubatch, kv in product(CONTEXTS, UBATCHES, TYPES):
            yield msgspec.structs.replace(
                base, n_ctx=n_ctx, n_ubatch=n_ubatch, type_k=kv, type_v=kv
            )


def plan(worker: WorkerProcess, path: Path, settings: Settings) -> Planned:
    """Return a dry run that must succeed."""
    planned = plan_with(worker, str(path), settings)
    assert not isinstance(planned, ErrorInfo), planned
    return planned


def cpu_s(worker: WorkerProcess) -> float:
    """Return the processor time that ``worker`` has used, seconds."""
    used = psutil.Process(worker.pid).cpu_times()
    return float(used.user + used.system)


def timed(work: Callable[[], object]) -> float:
    """Return how long ``work`` takes, ms."""
    start_ns = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start_ns) / 1e6


def show(what: str, times: list[float]) -> None:
    """Print median and worst."""
    print(f"  {what:28} median {statistics.median(times):7.1f} ms  worst {max(times):7.1f} ms")


def _limited(device: EngineDevice, n_bytes: int) -> SearchDevice:
    return SearchDevice(
        id=device.name, kind=device.kind, backend=device.backend, total_bytes=n_bytes,
        free_bytes=n_bytes,
    )  # fmt: skip


if __name__ == "__main__":
    main()
