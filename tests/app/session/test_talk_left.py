"""What an idle chat leaves behind: no process, no open device, no library of the engine."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from app.domain.settings import LoadMode, Settings
from app.gguf import read_model
from app.rig.lease import Lease
from app.rig.process import Launch
from app.session import Chat
from app.worker.protocol import ChatMessage, Sampling
from tests.fakes.chat_models import chat_model
from tests.fakes.rpc_device import rpc_device
from tests.fakes.vulkan_device import software_vulkan

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc"),
]
QUESTION = (ChatMessage(role="user", content="hi"),)
_DEVICES = ("/dev/dri", "/dev/nvidia", "/dev/kfd")
_ENGINE = ("libggml", "libllama", "libvulkan", "libcuda")


class Held(NamedTuple):
    """What a process holds: open device files, libraries of engine and drivers, ports talked to."""

    devices: frozenset[str]
    libraries: frozenset[str]
    ports: frozenset[int]


def held(pid: int) -> Held:
    """Look at a process now."""
    folder, targets = Path("/proc", str(pid)), set()
    for descriptor in (folder / "fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            targets.add(str(descriptor.readlink()))
    maps = (folder / "maps").read_text("utf-8")
    peers = psutil.Process(pid).net_connections()
    return Held(
        devices=frozenset(t for t in targets if t.startswith(_DEVICES)),
        libraries=frozenset(name for name in _ENGINE if name in maps),
        ports=frozenset(c.raddr.port for c in peers if c.raddr),
    )


def own() -> Held:
    """Look at this process."""
    return held(os.getpid())


@contextmanager
def loaded(tmp_path: Path, device: str, launch: Launch) -> Iterator[tuple[Chat, list[float]]]:
    """Load a tiny model with all its layers on ``device``; give the chat and its clock."""
    spec = read_model(chat_model(tmp_path / "tiny.gguf"))
    settings = Settings(
        n_gpu_layers=spec.max_gpu_layers, n_ctx=256, n_threads=1, load_mode=LoadMode.NONE,
        devices=(device,),
    )  # fmt: skip
    now_s = [0.0]
    chat = Chat(
        spec, settings, launch, None, (),
        clock_s=lambda: now_s[0], lease=Lease("chat", tmp_path / "lock"),
    )  # fmt: skip
    with chat:
        assert chat.settings.devices == (device,)
        yield chat, now_s


def test_idle_chat_lets_go_of_a_remote_device(tmp_path: Path) -> None:
    """Its worker is gone and with it the connection; this process never had one."""
    with rpc_device() as endpoint:
        port = int(endpoint.rpartition(":")[2])
        launch = Launch(rpc=(endpoint,))
        with loaded(tmp_path, "RPC0", launch) as (chat, now_s):
            list(chat.generate(QUESTION, Sampling(temperature=0), 2))
            assert chat.pid is not None
            worker = psutil.Process(chat.pid)
            assert port in held(worker.pid).ports
            assert port not in own().ports
            now_s[0] += chat.idle_s
            assert chat.unload_if_idle()
            assert not worker.is_running()
            assert port not in own().ports


@pytest.mark.vulkan
def test_idle_chat_lets_go_of_a_driver(tmp_path: Path) -> None:
    """Driver and engine live in the worker only: what ends with it cannot stay loaded here."""
    before = own()
    with software_vulkan() as device, loaded(tmp_path, device.name, Launch()) as (chat, now_s):
        assert chat.pid is not None
        worker = psutil.Process(chat.pid)
        assert held(worker.pid).libraries >= {"libggml", "libllama", "libvulkan"}
        assert own() == before
        now_s[0] += chat.idle_s
        assert chat.unload_if_idle()
        assert not worker.is_running()
        assert own() == before
