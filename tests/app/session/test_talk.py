"""A chat's manners: it holds the devices, and lets go of the model when nobody asks."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.events import GenerationFinished, TrialProgress
from app.domain.pacing import Pace
from app.domain.settings import Settings
from app.rig.lease import Lease
from app.session import Chat
from app.session.opening import runnable
from app.worker.protocol import ChatMessage
from tests.fakes.faulty_worker import faulty
from tests.fakes.records import a_model

SETTINGS = Settings(n_gpu_layers=0, n_ctx=512, n_threads=1)
QUESTION = (ChatMessage(role="user", content="hi"),)
MODEL = msgspec.structs.replace(a_model(), file_bytes=1000)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "devices.lock"


@pytest.fixture
def chat(clock: Clock, lock: Path) -> Iterator[Chat]:
    opened = a_chat(clock, lock)
    yield opened
    opened.close()


def a_chat(clock: Clock, lock: Path, *faults: str) -> Chat:
    return Chat(
        MODEL, SETTINGS, faulty(*faults), None, (), clock_s=clock, lease=Lease("chat", lock)
    )


def test_a_search_is_told_that_a_chat_holds_the_devices(chat: Chat, lock: Path) -> None:
    """Loaded it holds them, unloaded it does not."""
    with chat, pytest.raises(EnvironmentProblem) as caught, Lease("tune", lock):
        pass
    assert caught.value.info.code == "busy"
    assert "chat" in caught.value.info.message
    with Lease("tune", lock):
        pass


def test_a_chat_is_told_that_a_search_holds_the_devices(chat: Chat, lock: Path) -> None:
    """Nothing is loaded then, and a later attempt works."""
    with Lease("tune", lock), pytest.raises(EnvironmentProblem) as caught:
        next(iter(chat.load()))
    assert "tune" in caught.value.info.message
    assert not chat.is_running
    with chat:
        assert chat.is_running


def test_a_failed_load_gives_the_devices_back(clock: Clock, lock: Path) -> None:
    """A model that cannot be loaded keeps nobody out."""
    broken = a_chat(clock, lock, "abort@load")
    with pytest.raises(EnvironmentProblem):
        list(broken.load())
    with Lease("tune", lock):
        pass
    broken.close()


def test_idle_model_is_unloaded_and_loaded_by_the_next_question(
    chat: Chat, clock: Clock, lock: Path
) -> None:
    """After 15 minutes without a question the engine is gone; a question brings it back."""
    with chat:
        clock.now_s += 14 * 60
        assert not chat.unload_if_idle()
        list(chat.generate(QUESTION))
        clock.now_s += 14 * 60
        assert not chat.unload_if_idle()
        assert chat.idle_left_s() == 60
        clock.now_s += 60
        assert chat.unload_if_idle()
        assert chat.is_idle
        assert chat.pid is None
        assert chat.idle_left_s() is None
        with Lease("tune", lock):
            events = list(chat.generate(QUESTION))
            end = events[-1]
            assert isinstance(end, GenerationFinished)
            assert end.error
            assert end.error.code == "busy"
        events = list(chat.generate(QUESTION))
        assert isinstance(events[0], TrialProgress)
        assert events[-1].reason == "stop"  # type: ignore[union-attr]
        assert not chat.is_idle


def test_an_answer_under_way_is_not_idle(chat: Chat, clock: Clock) -> None:
    """However long it takes."""
    with chat:
        stream = chat.generate(QUESTION)
        next(iter(stream))
        clock.now_s += 3600
        assert not chat.unload_if_idle()
        stream.close()  # type: ignore[attr-defined]
        assert not chat.unload_if_idle()


def test_pace_may_be_set_at_any_time(chat: Chat) -> None:
    """Also before the model is loaded."""
    chat.set_pace(Pace(duty=0.5))
    with chat:
        assert list(chat.generate(QUESTION))[-1].reason == "stop"  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["embedding", "projector", "adapter", "vocabulary"])
def test_files_that_write_no_text_are_refused(kind: str) -> None:
    """Before anything is loaded."""
    with pytest.raises(EnvironmentProblem, match=kind):
        runnable(msgspec.structs.replace(MODEL, kind=kind))
    runnable(MODEL)
