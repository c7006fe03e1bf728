"""Whether a setting changes what the model says, in a real child."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.domain.settings import FlashAttn, LoadMode, Settings
from app.rig.process import Launch, WorkerProcess, drain, start_worker
from app.worker import protocol
from tests.fakes.models import make_model

pytestmark = pytest.mark.engine

PLAIN = Settings(n_gpu_layers=0, n_ctx=512, n_threads=1, load_mode=LoadMode.NONE)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    make_model(path, "llama", n_embd=256)
    process = drain(start_worker(Launch()))
    load = protocol.Load(model_path=str(path), settings=PLAIN)
    drain(process.ask(load, "load", lambda _: 60.0))
    yield process
    process.close()


def checked(worker: WorkerProcess, settings: Settings, n_tok: int = 64) -> protocol.OutputChecked:
    request = protocol.CheckOutput(settings=settings, n_tok=n_tok)
    reply = drain(worker.ask(request, "warm_up", lambda _: 60.0))
    assert isinstance(reply, protocol.OutputChecked), reply
    return reply


def test_the_reference_itself_is_the_same(worker: WorkerProcess) -> None:
    """No divergence, every place agrees, and the text has the length asked for."""
    settings = msgspec.structs.replace(PLAIN, flash_attn=FlashAttn.OFF)
    found = checked(worker, settings)
    assert found.kl_max_nats == 0
    assert (found.same_top, found.n_places, found.n_tok) == (8, 8, 64)


def test_a_coarser_cache_lies_further_away(worker: WorkerProcess) -> None:
    """f16 with flash attention is nearest, then q8_0, then q4_0."""
    near, middle, far = (
        checked(worker, msgspec.structs.replace(PLAIN, type_k=t, type_v=t)).kl_mean_nats
        for t in ("f16", "q8_0", "q4_0")
    )
    assert 0 <= near < middle < far


def test_a_short_context_of_the_settings_does_not_matter(worker: WorkerProcess) -> None:
    """The check makes a context of its own size, whatever the settings ask for."""
    huge = msgspec.structs.replace(PLAIN, n_ctx=1 << 20, n_seq_max=4)
    assert checked(worker, huge).n_tok == 64


def test_damaged_weights_are_noise(worker: WorkerProcess, tmp_path: Path) -> None:
    """Values that are not numbers are an error with a hint, not a divergence."""
    path = tmp_path / "bad.gguf"
    make_model(path, "llama", n_embd=256)
    data = bytearray(path.read_bytes())
    data[-60_000:] = b"\xff" * 60_000
    path.write_bytes(bytes(data))
    load = protocol.Load(model_path=str(path), settings=PLAIN)
    drain(worker.ask(load, "load", lambda _: 60.0))
    request = protocol.CheckOutput(settings=PLAIN, n_tok=32)
    reply = drain(worker.ask(request, "warm_up", lambda _: 60.0))
    assert isinstance(reply, protocol.Failed)
    assert reply.error.code == "nan_logits"
