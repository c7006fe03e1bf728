"""The formula against the real engine's dry run, on every tiny architecture."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.errors import ErrorInfo
from app.domain.memory import DeviceMemory
from app.domain.settings import FlashAttn, Settings
from app.estimate.compute import ERROR_FRAC
from app.estimate.formula import Formula
from app.gguf import read_model
from app.rig.planner import plan_with
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from tests.fakes.models import POPULAR, TINY_ARCHS, make_model, sparse_model

pytestmark = pytest.mark.engine

CONTEXTS = (
    Settings(n_gpu_layers=0, n_ctx=600),
    Settings(n_gpu_layers=0, n_ctx=8192, n_ubatch=2048, n_seq_max=4, type_k="q8_0", type_v="q8_0"),
    Settings(n_gpu_layers=0, n_ctx=4096, n_seq_max=2, flash_attn=FlashAttn.OFF),
)


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    process = drain(start_worker(Launch()))
    yield process
    process.close()


def cache_bytes(device: DeviceMemory) -> int:
    """Cache and state together: the engine does not tell a hybrid's apart."""
    return (device.kv_cache_bytes or 0) + (device.recurrent_state_bytes or 0)


def check(worker: WorkerProcess, path: Path) -> None:
    formula = Formula(read_model(path), ())
    for settings in CONTEXTS:
        planned = plan_with(worker, str(path), settings)
        if isinstance(planned, ErrorInfo):
            continue
        (ours,), (engine,) = formula.estimate(settings), planned
        assert ours.weights_bytes == engine.weights_bytes
        assert cache_bytes(ours) == cache_bytes(engine)
        assert ours.output_bytes == engine.output_bytes
        assert ours.compute_bytes == pytest.approx(engine.compute_bytes, rel=ERROR_FRAC)


@pytest.mark.parametrize("kind", ["F16", "Q4_0"])
@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_tiny_models(worker: WorkerProcess, tmp_path: Path, arch: str, kind: str) -> None:
    """Weights, cache and state are identical, compute within its bar."""
    check(worker, make_model(tmp_path / "tiny.gguf", arch, tensor_type=kind))


@pytest.mark.parametrize("name", POPULAR)
def test_popular_shapes(worker: WorkerProcess, tmp_path: Path, name: str) -> None:
    """The same for real tensor tables up to 120B."""
    check(worker, sparse_model(tmp_path / "sparse.gguf", name))
