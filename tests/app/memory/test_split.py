"""A hybrid's recurrent state is told from its KV cache also in a dry run."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import ErrorInfo
from app.domain.memory import DeviceMemory, MemorySource
from app.domain.settings import Settings
from app.gguf import read_model
from app.memory import Memory
from app.memory.split import split_state
from app.rig.planner import plan_with
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from tests.fakes.models import make_model

TOGETHER = DeviceMemory(device="host", kv_cache_bytes=300, total_bytes=900)
APART = msgspec.structs.replace(TOGETHER, kv_cache_bytes=200, recurrent_state_bytes=100)
HYBRIDS = ("jamba", "granitehybrid", "falcon-h1", "lfm2", "qwen3next")


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    process = drain(start_worker(Launch()))
    yield process
    process.close()


def test_what_adds_up_is_told_apart() -> None:
    """The engine's sum becomes the formula's two parts; the total is the engine's."""
    ours = msgspec.structs.replace(APART, total_bytes=1)
    assert split_state((TOGETHER,), (ours,)) == (APART,)


def test_what_does_not_add_up_stays_together() -> None:
    """One byte of difference on any device, or a device the formula lacks: nothing is guessed."""
    wrong = msgspec.structs.replace(APART, kv_cache_bytes=201)
    gpu = msgspec.structs.replace(TOGETHER, device="CUDA0")
    assert split_state((TOGETHER,), (wrong,)) == (TOGETHER,)
    assert split_state((gpu, TOGETHER), (APART,)) == (gpu, TOGETHER)


@pytest.mark.engine
@pytest.mark.parametrize("arch", HYBRIDS)
def test_the_engine_adds_up_for_every_hybrid(
    worker: WorkerProcess, tmp_path: Path, arch: str
) -> None:
    """Both parts are there, and their sum is what the engine itself counts."""
    path = make_model(tmp_path / "tiny.gguf", arch)

    def plan(settings: Settings) -> tuple[DeviceMemory, ...] | ErrorInfo:
        return plan_with(worker, str(path), settings)

    settings = Settings(n_gpu_layers=0, n_ctx=8192, n_seq_max=2)
    engine = plan(settings)
    assert not isinstance(engine, ErrorInfo)
    found = Memory(read_model(path), (), None, plan).estimate(settings, exact=True)
    (host,) = found.devices
    assert found.source is MemorySource.DRY_RUN
    assert host.kv_cache_bytes
    assert host.recurrent_state_bytes
    assert host.kv_cache_bytes + host.recurrent_state_bytes == engine[0].kv_cache_bytes
