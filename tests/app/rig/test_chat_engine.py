"""The chat engine: streaming, cancelling, and a worker that dies on the way."""

from collections.abc import Iterator

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.events import ChatEvent, GenerationFinished, TokenGenerated
from app.domain.settings import Settings
from app.rig.chat_engine import ChatEngine
from app.rig.process import Launch
from app.worker.protocol import MAX_LINE_BYTES, ChatMessage, Sampling
from tests.fakes.demo import demo_spec
from tests.fakes.faulty_worker import faulty
from tests.fakes.records import a_model

SETTINGS = Settings(n_gpu_layers=0, n_ctx=512, n_threads=1)
GREEDY = Sampling(temperature=0)
QUESTION = (ChatMessage(role="user", content="One, two, three, four,"),)
MODEL = msgspec.structs.replace(a_model(), file_bytes=1000)


@pytest.fixture
def engines() -> Iterator[list[ChatEngine]]:
    opened: list[ChatEngine] = []
    yield opened
    for engine in opened:
        engine.close()


def started(engines: list[ChatEngine], *faults: str) -> ChatEngine:
    engines.append(ChatEngine(faulty(*faults)))
    for _ in engines[-1].start(MODEL, SETTINGS):
        pass
    return engines[-1]


def split(events: Iterator[ChatEvent]) -> tuple[str, GenerationFinished]:
    text = ""
    for event in events:
        if isinstance(event, GenerationFinished):
            return text, event
        text += event.text if isinstance(event, TokenGenerated) else ""
    pytest.fail("no end")


@pytest.mark.parametrize("fault", ["abort@token", "segfault@token", "hang@token"])
def test_crash_keeps_the_text_and_offers_a_restart(engines: list[ChatEngine], fault: str) -> None:
    """What was streamed stays, the end names the cause, and the engine can be started again."""
    engine = started(engines, fault)
    text, end = split(engine.generate(QUESTION))
    assert text == "half an"
    assert end.reason == "error"
    assert end.error
    assert end.error.hint
    assert not engine.is_running
    for _ in engine.start(MODEL, SETTINGS):
        pass
    assert engine.is_running


def test_template_that_nothing_can_interrupt_is_ended_from_outside(
    engines: list[ChatEngine],
) -> None:
    """A worker that is silent in its template is stopped within the budget, and it is said."""
    engine = started(engines, "hang@template")
    text, end = split(engine.generate(QUESTION))
    assert text == ""
    assert end.error
    assert end.error.code == "chat_template"
    assert not engine.is_running


def test_answer_without_a_model_is_an_error_event() -> None:
    """Asking too early is answered, not raised."""
    _, end = split(ChatEngine().generate(QUESTION))
    assert end.error
    assert end.error.code == "not_running"


def test_conversation_beyond_the_protocol_is_refused(engines: list[ChatEngine]) -> None:
    """A megabyte of text is told to the user, and the engine goes on."""
    engine = started(engines)
    long = (ChatMessage(role="user", content="x" * MAX_LINE_BYTES),)
    _, end = split(engine.generate(long))
    assert end.error
    assert end.error.code == "conversation_too_long"
    assert split(engine.generate(QUESTION))[1].reason == "stop"


def test_unknown_template_is_refused_before_the_model_is_loaded(engines: list[ChatEngine]) -> None:
    """The list of templates comes with the engine: a name that is not on it costs no load."""
    engines.append(ChatEngine(faulty("abort@load")))
    with pytest.raises(UsageProblem) as caught:
        for _ in engines[-1].start(MODEL, SETTINGS, "chatlm"):
            pass
    assert caught.value.info.code == "unknown_template"
    assert "chatml" in caught.value.info.hint


@pytest.mark.parametrize("template", ["", "text", "chatml"])
def test_known_templates_are_taken(engines: list[ChatEngine], template: str) -> None:
    """The model's own, none, and those of the engine."""
    engines.append(ChatEngine(faulty()))
    for _ in engines[-1].start(MODEL, SETTINGS, template):
        pass
    assert engines[-1].is_running


def test_failed_load_is_a_problem(engines: list[ChatEngine]) -> None:
    """A child that dies while loading ends in a sentence."""
    with pytest.raises(EnvironmentProblem) as caught:
        started(engines, "abort@load")
    assert caught.value.info.code == "crashed"
    assert not engines[0].is_running


@pytest.mark.engine
def test_demo_model_answers_and_can_be_cancelled() -> None:
    """Tokens stream; closing stops within one and keeps the process; the next answer comes."""
    engine = ChatEngine(Launch())
    try:
        phases = {p.phase for p in engine.start(demo_spec(), SETTINGS)}
        assert "load" in phases
        events = engine.generate(QUESTION, GREEDY)
        first = next(e for e in events if isinstance(e, TokenGenerated) and e.n_tok > 0)
        events.close()
        assert first.n_tok == 1
        assert engine.is_running
        text, end = split(engine.generate(QUESTION, GREEDY, max_tokens=3))
        assert "five" in text
        assert end.reason == "length"
        assert end.n_prompt_reused > 0
        assert end.decode_tok_s
        assert end.ttft_ms
        assert engine.template == "text"
        assert engine.tokenize("hello world") > 1
    finally:
        engine.close()
    assert not engine.is_running
