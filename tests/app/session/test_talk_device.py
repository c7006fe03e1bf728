"""An idle chat on a real device: its memory goes back, and the next question takes it again."""

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from app.domain.events import GenerationFinished, TrialProgress
from app.domain.settings import LoadMode, Settings
from app.domain.units import MIB
from app.rig.lease import Lease
from app.rig.process import Launch
from app.session import Chat
from app.worker.protocol import ChatMessage, Sampling
from tests.fakes.demo import demo_spec
from tests.fakes.rpc_device import rpc_device

pytestmark = pytest.mark.engine

QUESTION = (ChatMessage(role="user", content="One, two, three,"),)
SETTINGS = Settings(
    n_gpu_layers=0, n_ctx=512, n_threads=1, load_mode=LoadMode.NONE, devices=("RPC0",)
)
_PATIENCE_S = 60.0


def held_bytes(endpoint: str) -> int:
    """Return what the process behind a device holds."""
    port = endpoint.rpartition(":")[2]
    (server,) = (p for p in psutil.Process().children() if port in p.cmdline())
    return int(server.memory_info().rss)


def becomes_true(condition: Callable[[], bool]) -> bool:
    again = threading.Event()
    return any(condition() or again.wait(0.05) for _ in range(int(_PATIENCE_S / 0.05)))


def test_idle_chat_gives_the_memory_of_its_device_back(tmp_path: Path) -> None:
    """Weights and cache leave the device with the idle model, and come back with a question."""
    spec = demo_spec()
    settings = msgspec.structs.replace(SETTINGS, n_gpu_layers=spec.max_gpu_layers)
    now_s = [0.0]
    with rpc_device() as endpoint:
        empty = held_bytes(endpoint)
        chat = Chat(
            spec, settings, Launch(rpc=(endpoint,)), None, (),
            clock_s=lambda: now_s[0], lease=Lease("chat", tmp_path / "lock"),
        )  # fmt: skip
        with chat:
            first = list(chat.generate(QUESTION, Sampling(temperature=0), 4))
            loaded = held_bytes(endpoint)
            assert loaded - empty > 100 * MIB
            now_s[0] += chat.idle_s
            assert chat.unload_if_idle()
            assert becomes_true(lambda: held_bytes(endpoint) - empty < 30 * MIB)
            again = list(chat.generate(QUESTION, Sampling(temperature=0), 4))
            assert any(isinstance(e, TrialProgress) for e in again)
            assert held_bytes(endpoint) - empty > 100 * MIB
    for events in (first, again):
        end = events[-1]
        assert isinstance(end, GenerationFinished)
        assert (end.error, end.n_gen) == (None, 4)
