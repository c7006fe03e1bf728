"""Drafted tokens on a tiny model, in a real child; and how drafts are looked up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.settings import LoadMode, Settings
from app.rig.process import Final, Launch, WorkerProcess, drain, start_worker
from app.worker import protocol
from tests.fakes.models import make_model

pytestmark = pytest.mark.engine

PLAIN = Settings(n_gpu_layers=0, n_ctx=512, n_threads=1, load_mode=LoadMode.NONE)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_model(folder / "big.gguf", "llama")
    make_model(folder / "other.gguf", "llama", seed=2)
    make_model(folder / "words.gguf", "llama", n_vocab=600)
    make_model(folder / "mamba.gguf", "mamba")
    return folder


@pytest.fixture(scope="module")
def worker(models: Path) -> Iterator[WorkerProcess]:
    process = drain(start_worker(Launch()))
    load(process, models / "big.gguf")
    yield process
    process.close()


def load(worker: WorkerProcess, path: Path) -> None:
    request = protocol.Load(model_path=str(path), settings=PLAIN)
    assert isinstance(drain(worker.ask(request, "load", lambda _: 60.0)), protocol.LoadFinished)


def speculate(worker: WorkerProcess, draft: Path | str) -> Final:
    request = protocol.Speculate(
        settings=PLAIN, draft_path=str(draft), draft_settings=PLAIN,
        n_draft=4, n_gen=24, n_turns=3, max_s=1.0,
    )  # fmt: skip
    return drain(worker.ask(request, "warm_up", lambda _: 60.0))


def test_a_model_agrees_with_itself(worker: WorkerProcess, models: Path) -> None:
    """Its own drafts are all accepted, and the output is the same."""
    found = speculate(worker, models / "big.gguf")
    assert isinstance(found, protocol.Speculated), found
    assert found.same_output
    assert found.n_drafted > 0
    assert found.n_accepted >= 0.95 * found.n_drafted
    assert len(found.plain) == len(found.drafted) == 3
    assert all(24 <= s.n_tok < 24 + 5 for s in found.drafted)
    assert all(s.n_tok == 24 for s in found.plain)


def test_another_model_s_drafts_change_nothing(worker: WorkerProcess, models: Path) -> None:
    """Rejected drafts leave no trace: the output is the model's own."""
    found = speculate(worker, models / "other.gguf")
    assert isinstance(found, protocol.Speculated), found
    assert found.same_output
    assert found.n_accepted < found.n_drafted


def test_drafts_from_the_text_change_nothing(worker: WorkerProcess) -> None:
    """Looked-up drafts leave the output as it is."""
    found = speculate(worker, "")
    assert isinstance(found, protocol.Speculated), found
    assert found.same_output


def test_a_draft_model_must_share_the_vocabulary(worker: WorkerProcess, models: Path) -> None:
    """Other tokens: refused with a sentence, and the worker goes on."""
    found = speculate(worker, models / "words.gguf")
    assert isinstance(found, protocol.Failed)
    assert found.error.code == "other_vocabulary"
    assert isinstance(speculate(worker, ""), protocol.Speculated)


def test_a_state_that_only_advances_takes_no_drafts(worker: WorkerProcess, models: Path) -> None:
    """A recurrent model cannot take a rejected draft back."""
    load(worker, models / "mamba.gguf")
    found = speculate(worker, "")
    assert isinstance(found, protocol.Failed)
    assert found.error.code == "cannot_rewind"
    load(worker, models / "big.gguf")
