"""A model served to other programs: real server, real client."""

from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.events import ServerEvent, ServerProgress, ServerStarted, ServerStopped
from app.domain.settings import FlashAttn, LoadMode, Settings
from app.domain.trial import Workload
from app.gguf import read_model
from app.rig.process import Launch, drain, start_worker
from app.rig.serving import serve_model
from app.worker import protocol
from tests.fakes.chat_models import ask, chat_model, load
from tests.fakes.demo import demo_spec
from tests.fakes.faulty_worker import faulty
from tests.fakes.models import make_model
from tests.fakes.records import a_model

TOKEN = "a-token"
SETTINGS = Settings(
    n_gpu_layers=0,
    n_ctx=1024,
    n_batch=256,
    n_ubatch=64,
    n_threads=1,
    n_threads_batch=2,
    type_k="q8_0",
    type_v="q8_0",
    flash_attn=FlashAttn.ON,
    load_mode=LoadMode.NONE,
)


def serving(path: Path, settings: Settings = SETTINGS, port: int = 0) -> Generator[ServerEvent]:
    return serve_model(
        Launch(), read_model(str(path)), settings, alias="tiny", port=port, token=TOKEN
    )


def until_started(events: Iterator[ServerEvent]) -> ServerStarted:
    return next(e for e in events if isinstance(e, ServerStarted))


def client(port: int, token: str = TOKEN) -> Any:
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=token, max_retries=0)


@pytest.mark.engine
def test_settings_and_memory_are_those_of_the_profile(tmp_path: Path) -> None:
    """The server's context is the one a trial with the same settings gets, to the byte."""
    pytest.importorskip("llama_cpp.server.app")
    path = make_model(tmp_path / "tiny.gguf", "gemma3")
    worker = drain(start_worker(Launch()))
    try:
        load(worker, path, SETTINGS)
        request = protocol.RunTrial(
            settings=SETTINGS,
            workload=Workload(n_prompt=8, n_gen=8),
            min_reps=1,
            max_reps=1,
            max_s=1,
        )
        _, seen = ask(worker, request)
    finally:
        worker.close()
    trial = next(r for r in seen if isinstance(r, protocol.TrialStarted))
    with closing(serving(path)) as events:
        started = until_started(events)
    assert started.effective == trial.effective
    assert started.devices == trial.devices


@pytest.mark.engine
def test_real_client_streams_an_answer() -> None:
    """The openai package chats with it; without the token nothing is told; requests count."""
    pytest.importorskip("llama_cpp.server.app")
    openai = pytest.importorskip("openai")
    with closing(serving(Path(demo_spec().path))) as events:
        port = until_started(events).port
        asked = {"model": "tiny", "max_tokens": 4, "temperature": 0}
        messages = [{"role": "user", "content": "One, two, three, four,"}]
        with client(port) as session:
            whole = session.chat.completions.create(messages=messages, **asked)
            stream = session.chat.completions.create(messages=messages, stream=True, **asked)
            parts = [c.choices[0].delta.content or "" for c in stream if c.choices]
            assert "".join(parts) == whole.choices[0].message.content
            assert "five" in whole.choices[0].message.content
            assert whole.usage.completion_tokens == 4
            assert [m.id for m in session.models.list().data] == ["tiny"]
        with client(port, "wrong") as stranger, pytest.raises(openai.AuthenticationError):
            stranger.chat.completions.create(messages=messages, **asked)
        counts = [e.n_requests for e in islice(events, 20) if isinstance(e, ServerProgress)]
        assert max(counts) == 4


@pytest.mark.engine
def test_prefix_of_a_windowed_model_is_not_trusted(tmp_path: Path) -> None:
    """A changed ending gets the answer of a server that has read nothing before."""
    pytest.importorskip("llama_cpp.server.app")
    path = make_model(
        tmp_path / "tiny.gguf", "gemma3", extra={"gemma3.attention.sliding_window": 32}
    )
    shared = "the in er an " * 40
    asked = {"model": "tiny", "max_tokens": 12, "temperature": 0, "seed": 1}

    def answers(*texts: str) -> str:
        with closing(serving(path)) as events, client(until_started(events).port) as session:
            for text in texts:
                last = session.chat.completions.create(
                    messages=[{"role": "user", "content": text}], **asked
                )
            return str(last.choices[0].message.content)

    assert answers(shared + "abcdef " * 60, shared + "xyz") == answers(shared + "xyz")


@pytest.mark.engine
def test_hostile_template_is_an_error_of_the_request(tmp_path: Path) -> None:
    """A template that does not end is refused in time, and the server goes on."""
    pytest.importorskip("llama_cpp.server.app")
    openai = pytest.importorskip("openai")
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    path = chat_model(tmp_path / "tiny.gguf", template=endless)
    with closing(serving(path)) as events, client(until_started(events).port) as session:
        with pytest.raises(openai.InternalServerError, match="does not end"):
            session.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "x"}]
            )
        done = session.completions.create(model="tiny", prompt="x", max_tokens=1)
        assert done.usage.completion_tokens == 1


@pytest.mark.engine
def test_port_in_use_is_said(tmp_path: Path) -> None:
    """Before anything is loaded."""
    pytest.importorskip("llama_cpp.server.app")
    path = make_model(tmp_path / "tiny.gguf")
    with closing(serving(path)) as events:
        port = until_started(events).port
        with pytest.raises(EnvironmentProblem) as caught:
            list(serving(path, port=port))
    assert caught.value.info.code == "port_taken"


def test_engine_that_dies_while_loading_is_a_problem() -> None:
    """A server that never came up ends in a sentence."""
    model = msgspec.structs.replace(a_model(), file_bytes=1000)
    with pytest.raises(EnvironmentProblem):
        list(serve_model(faulty("abort@load"), model, SETTINGS, alias="x", port=0, token=TOKEN))


def test_server_that_dies_later_says_why() -> None:
    """It was up, then the engine crashed: the last event carries the cause."""
    model = msgspec.structs.replace(a_model(), file_bytes=1000)
    launch = faulty("abort@serve")
    events = list(serve_model(launch, model, SETTINGS, alias="x", port=0, token=TOKEN))
    assert any(isinstance(e, ServerStarted) for e in events)
    assert isinstance(events[-1], ServerStopped)
    assert events[-1].error
