"""Where a question ends and the answer begins in what a template wrote, on a real engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.rig.process import Launch, WorkerProcess, drain, start_worker
from app.worker import protocol
from tests.fakes.chat_models import FAMILIES, GREEDY, ask, chat_model, literal, load, pieces
from tests.fakes.chat_models import question as asked
from tests.fakes.models import make_model

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    """Yield a worker for all tests here."""
    process = drain(start_worker(Launch()))
    yield process
    process.close()


@pytest.mark.parametrize("question", ["hi", "think", ">", "say <think>"])
def test_reasoning_that_the_prompt_begins_is_seen_whatever_was_asked(
    worker: WorkerProcess, tmp_path: Path, question: str
) -> None:
    """A question whose letters stand in ``<think>`` must not hide it: "hi" does."""
    path = chat_model(tmp_path / "tiny.gguf", "deepseek")
    load(worker, path)
    sampling = type(GREEDY)(temperature=0, grammar=literal("hm\n</think>\n\nyes"))
    _, seen = ask(worker, asked(question, sampling=sampling))
    assert list(pieces(seen)) == [("reasoning", "hm\n"), ("answer", "yes")]


@pytest.mark.parametrize("family", FAMILIES)
def test_question_about_a_marker_begins_no_reasoning(
    worker: WorkerProcess, tmp_path: Path, family: str
) -> None:
    """A marker in the question is the user's word, unless the prompt ends with it."""
    load(worker, chat_model(tmp_path / "tiny.gguf", family))
    sampling = type(GREEDY)(temperature=0, grammar=literal("yes"))
    _, seen = ask(worker, asked("what is <think>", sampling=sampling))
    kind = "reasoning" if family == "deepseek" else "answer"
    assert list(pieces(seen)) == [(kind, "yes")]


def test_plain_text_goes_on_where_the_model_stopped(worker: WorkerProcess, tmp_path: Path) -> None:
    """Without a template an answer follows its question directly: what was read stays valid."""
    load(worker, make_model(tmp_path / "tiny.gguf", "llama"))
    sampling = type(GREEDY)(temperature=0, grammar=literal(" er an"))
    first, seen = ask(worker, asked("the in", sampling=sampling))
    assert isinstance(first, protocol.GenerateFinished)
    said = "".join(text for _, text in pieces(seen))
    assert said == " er an"
    further, _ = ask(worker, asked("the in", said, max_tokens=1))
    assert isinstance(further, protocol.GenerateFinished)
    whole, _ = ask(worker, protocol.Tokenize(text="the in er an"))
    assert isinstance(whole, protocol.TokenizeFinished)
    assert further.n_prompt == whole.n_tok
    turn, _ = ask(worker, asked("the in", said, "on", max_tokens=1))
    assert isinstance(turn, protocol.GenerateFinished)
    assert turn.n_reused == whole.n_tok
