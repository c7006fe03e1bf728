"""Sizes from the engine's log, for builds whose memory breakdown cannot be called."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.domain.units import MIB
from app.worker.memory_log import buffer_sizes, device_memory
from tests.fakes.models import make_model

REPOSITORY = Path(__file__).resolve().parents[3]
LINES = (
    "load_tensors:   CPU_Mapped model buffer size =   315.30 MiB",
    "load_tensors:        CUDA0 model buffer size =  1000.00 MiB",
    "llama_kv_cache:      CUDA0 KV buffer size =    10.00 MiB",
    "llama_kv_cache:      CUDA0 KV buffer size =     2.50 MiB",
    "llama_memory_recurrent:      CUDA0 RS buffer size =     1.25 MiB",
    "sched_reserve: RPC0[127.0.0.1:50052] compute buffer size =     2.01 MiB",
    "sched_reserve:      CUDA0 compute buffer size =   400.00 MiB",
    "sched_reserve:      CUDA0 compute buffer size =   300.75 MiB",
    "sched_reserve:  CUDA_Host compute buffer size =    20.00 MiB",
    "print_info: file size   = 0.91 MiB (16.04 BPW)",
)
# the same plan and load, asked both ways in a process of its own
BOTH_WAYS = """
import json, sys
from app.domain.settings import LoadMode, Settings
from app.worker import devices, native
from app.worker.cancel import CancelFlag
from app.worker.engine import Engine
from app.worker.enginelog import EngineLog
class Channel:
    def send(self, message): pass
devices.load_backends(None)
log = EngineLog(Channel())
settings = Settings(n_gpu_layers=0, n_ctx=2048, load_mode=LoadMode.NONE)
known, found = native.breakdown_function, []
for ask in (known, lambda: None):
    native.breakdown_function = ask
    engine = Engine(log, CancelFlag())
    log.begin()
    planned = engine.plan(sys.argv[1], settings)[0][0]
    log.begin()
    engine.load(sys.argv[1], settings, lambda _: None)
    log.begin()
    with engine.context(engine.loaded(), settings) as context:
        real = context.devices()[0]
    parts = ("weights", "kv_cache", "recurrent_state", "compute")
    found.append([[getattr(d, f"{p}_bytes") for p in parts] for d in (planned, real)])
print(json.dumps(found))
"""


def test_lines_are_summed_by_device() -> None:
    """Caches add up, a repeated reservation replaces, host buffers are RAM."""
    sizes = buffer_sizes(LINES, ["CUDA0", "RPC0"])
    mib = {key: n / MIB for key, n in sizes.items()}
    assert mib == {
        ("host", "model"): pytest.approx(315.30), ("CUDA0", "model"): 1000.0,
        ("CUDA0", "KV"): 12.5, ("CUDA0", "RS"): 1.25,
        ("RPC0", "compute"): pytest.approx(2.01, abs=1e-6),
        ("CUDA0", "compute"): 300.75, ("host", "compute"): 20.0,
    }  # fmt: skip


def test_a_plan_knows_its_compute_only() -> None:
    """What the log gives as 0 for a planned model is not known, not nothing."""
    sizes = buffer_sizes(LINES, ["CUDA0"])
    planned = device_memory(sizes, ["CUDA0"], output_bytes=64, is_planned=True)
    gpu, host = planned
    assert (gpu.weights_bytes, gpu.kv_cache_bytes) == (None, None)
    assert gpu.total_bytes == gpu.compute_bytes
    assert host.output_bytes == 64
    real = device_memory(sizes, ["CUDA0"], output_bytes=64, is_planned=False)[0]
    assert real.total_bytes == sum(n for (device, _), n in sizes.items() if device == "CUDA0")


@pytest.mark.engine
@pytest.mark.parametrize("arch", ["gemma3", "qwen3next"])
def test_the_log_says_what_the_engine_says(tmp_path: Path, arch: str) -> None:
    """Within the log's rounding: compute of a plan, and every part of a real load."""
    path = make_model(tmp_path / "tiny.gguf", arch)
    done = subprocess.run(
        [sys.executable, "-c", BOTH_WAYS, str(path)],
        env=dict(os.environ, PYTHONPATH=str(REPOSITORY)),
        stdout=subprocess.PIPE,
        check=True,
    )
    (plan, real), (plan_logged, real_logged) = json.loads(done.stdout.splitlines()[-1])
    bar = 0.02 * MIB
    assert plan_logged[3] == pytest.approx(plan[3], abs=bar)
    assert plan_logged[:2] == [None, None]
    assert real_logged[0] == pytest.approx(real[0], abs=bar)
    assert sum(real_logged[1:3]) == pytest.approx(real[1], abs=bar)
    assert real_logged[3] == pytest.approx(real[3], abs=bar)
