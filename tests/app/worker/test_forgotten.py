"""A plan holds for a block that lies in RAM by name, which llama.cpp itself plans too small."""

from contextlib import closing
from pathlib import Path

import pytest

from app.domain.errors import ErrorInfo
from app.domain.settings import LoadMode, Settings
from app.domain.trial import Workload
from app.rig.planner import plan_with
from app.rig.process import Launch, drain, start_worker
from app.worker.protocol import Load, RunTrial, TrialStarted
from tests.fakes.models import make_model
from tests.fakes.rpc_device import rpc_device

pytestmark = pytest.mark.engine

PATIENCE_S = 120.0


def test_a_whole_block_in_ram_is_planned_large_enough(tmp_path: Path) -> None:
    """With all layers on the device and the blocks in RAM by name, no device is short."""
    path = str(make_model(tmp_path / "wide.gguf", n_embd=512, n_layer=2, n_head=8, n_head_kv=2))
    settings = Settings(
        n_gpu_layers=3, n_ctx=1024, n_threads=1, devices=("RPC0",), load_mode=LoadMode.NONE,
        override_tensor=r"blk\..*=CPU",
    )  # fmt: skip
    with rpc_device() as endpoint, closing(drain(start_worker(Launch(rpc=(endpoint,))))) as worker:
        planned = plan_with(worker, path, settings)
        assert not isinstance(planned, ErrorInfo), planned
        drain(worker.ask(Load(model_path=path, settings=settings), "load", lambda _: PATIENCE_S))
        trial = RunTrial(
            settings=settings, workload=Workload(n_prompt=8, n_gen=1), min_reps=1, max_reps=1,
            max_s=1.0,
        )  # fmt: skip
        replies = list(worker.ask(trial, "context", lambda _: PATIENCE_S))
    (started,) = [r for r in replies if isinstance(r, TrialStarted)]
    for plan, real in zip(planned, started.devices, strict=True):
        assert real.total_bytes <= plan.total_bytes <= real.total_bytes + 2 * 512 * 512 * 4
