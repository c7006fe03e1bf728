"""The engine beside a recorded machine: complete, without other computers' addresses."""

import threading
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.machine import EngineDevice, EngineInfo, GpuKind
from app.domain.settings import Settings
from app.domain.sweep import Goal, SweepRequest
from app.domain.trial import TrialRequest, Workload
from app.session import Session
from app.session.recording import FILE_NAME, read_engine, write_engine
from probes import registry
from tests.fakes import situations as s
from tests.fakes.recorded import MACHINES

REMOTE = EngineDevice(
    name="RPC0", backend="RPC", description="10.1.2.3:50052", kind=GpuKind.REMOTE,
    endpoint="10.1.2.3:50052",
)  # fmt: skip


def engine(*devices: EngineDevice) -> EngineInfo:
    return EngineInfo(
        version="1", llama_version="2", backends=("CPU",), devices=devices, supports_offload=True
    )


def test_what_was_listed_is_read_back(tmp_path: Path) -> None:
    """Build, backends and devices come back as they were."""
    listed = engine(s.device("CUDA0"), s.device("Vulkan0"))
    write_engine(tmp_path, listed)
    assert read_engine(tmp_path) == listed


def test_another_computers_address_is_left_out(tmp_path: Path) -> None:
    """A recording is made to be shared."""
    write_engine(tmp_path, engine(REMOTE))
    assert "10.1.2.3" not in (tmp_path / FILE_NAME).read_text(encoding="utf-8")
    found = read_engine(tmp_path)
    assert found is not None
    assert found.devices[0].endpoint == "host0:0"


def test_no_home_folder_is_named(tmp_path: Path) -> None:
    """A build of the user's own has a path with the user's name."""
    build = msgspec.structs.replace(engine(), version=f"{Path.home()}/llama.cpp")
    write_engine(tmp_path, build)
    found = read_engine(tmp_path)
    assert found is not None
    assert found.version == "~/llama.cpp"


def test_an_engine_that_was_not_asked_leaves_no_old_one(tmp_path: Path) -> None:
    """While a GPU sleeps the engine is not asked; yesterday's list is then no answer."""
    write_engine(tmp_path, engine(s.device("CUDA0")))
    write_engine(tmp_path, None)
    assert read_engine(tmp_path) is None


@pytest.mark.parametrize("text", ["", "[]", '{"devices": 3}', "\xff", '{"version": '])
def test_a_damaged_list_is_named(tmp_path: Path, text: str) -> None:
    """A truncated or foreign file ends in a sentence with the file's name."""
    (tmp_path / FILE_NAME).write_bytes(text.encode("latin-1"))
    with pytest.raises(EnvironmentProblem) as caught:
        read_engine(tmp_path)
    assert FILE_NAME in caught.value.info.message


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where the folder should be ends in a sentence."""
    with pytest.raises(EnvironmentProblem) as caught:
        write_engine(tmp_path / "none", engine())
    assert caught.value.info.code == "not_writable"


def test_a_replay_shows_engine_names_on_their_cards() -> None:
    """Two backends' names of one card stand together, joined by its address."""
    session = Session(registry, replay=str(MACHINES / "hybrid-awake"))
    gpus = {tuple(d.name for d in gpu.engine): gpu for gpu in session.machine().gpus}
    assert ("CUDA0", "Vulkan1") in gpus
    session.close()


def test_nothing_is_measured_on_a_recording() -> None:
    """The card it shows is not in this machine: no command starts work there."""
    session = Session(registry, replay=str(MACHINES / "nvidia-desktop"))
    settings = Settings(n_gpu_layers=0, n_ctx=512)
    request = TrialRequest(stage="bench", settings=settings, workload=Workload())
    never = threading.Event()
    commands = (
        lambda: list(session.doctor()),
        lambda: session.read_speeds("demo"),
        lambda: list(session.bench("demo", request)),
        lambda: list(session.tune("demo", SweepRequest(goal=Goal.CHAT), cancel=never)),
        lambda: list(session.sweep_caps("demo", settings, cancel=never)),
        lambda: session.chat("demo"),
        lambda: session.serve("demo"),
    )
    for do in commands:
        with pytest.raises(EnvironmentProblem) as caught:
            do()
        assert caught.value.info.code == "recorded_machine"
    session.close()


def test_a_machine_is_shown_without_its_engine(tmp_path: Path) -> None:
    """An engine that does not start hides no card; the reason becomes advice."""
    session = Session(registry, engine_dir=str(tmp_path))
    machine = session.machine()
    assert machine.engine is None
    assert machine.engine_problem is not None
    with pytest.raises(EnvironmentProblem):
        session.machine(wake=True)
    session.close()
