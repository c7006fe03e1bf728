"""Stand-ins for GPUs: Mesa's software Vulkan device, and two remote devices of unequal size."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import ErrorInfo
from app.domain.events import SweepFinished, TrialFinished
from app.domain.machine import EngineDevice, GpuKind
from app.domain.model import ModelSpec
from app.domain.outcome import Outcome
from app.domain.settings import LoadMode, Settings
from app.domain.sweep import BudgetName, SearchHost, SweepRequest, SweepStatus
from app.domain.trial import Trial, TrialRequest, Workload
from app.domain.units import GIB, MIB
from app.gguf import read_model
from app.rig.process import Launch
from app.rig.workers import WorkerRig
from app.session import Session
from probes import registry
from tests.fakes.models import make_model
from tests.fakes.rpc_device import rpc_device
from tests.fakes.vulkan_device import software_vulkan

pytestmark = pytest.mark.engine

N_LAYER = 4
SMALL = Settings(n_gpu_layers=0, n_ctx=256, n_ubatch=64, n_threads=1, load_mode=LoadMode.NONE)
# One thread and fixed knobs: what is asked here is where the layers go.
PINNED: dict[str, int | str] = {
    "n_threads": 1,
    "n_ubatch": 512,
    "flash_attn": "on",
    "load_mode": "none",
}


@pytest.fixture(scope="class")
def vulkan() -> Iterator[EngineDevice]:
    with software_vulkan() as device:
        yield device


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> ModelSpec:
    return read_model(make_model(tmp_path_factory.mktemp("model") / "tiny.gguf", n_layer=N_LAYER))


@pytest.fixture
def rig(vulkan: EngineDevice, tiny: ModelSpec) -> Iterator[WorkerRig]:
    made = WorkerRig(tiny, host(), devices=(vulkan.name,))
    yield made
    made.close()


def host() -> SearchHost:
    return SearchHost(cores_physical=1, cores_logical=1, ram_bytes=16 * GIB)


def run(rig: WorkerRig, settings: Settings) -> Trial:
    request = TrialRequest(
        stage="test",
        settings=settings,
        workload=Workload(n_prompt=32, n_gen=4),
        min_reps=1,
        max_reps=1,
        max_s=1,
    )
    *_, last = rig.run_trial(request)
    assert isinstance(last, TrialFinished)
    return last.trial


def token_ns(trial: Trial) -> float:
    return min(sample.ns / sample.n_tok for sample in trial.decode)


@pytest.mark.vulkan
class TestSoftwareDevice:
    """A search and a trial go through a GPU's driver, shaders and memory."""

    def test_it_is_known_as_one(self, vulkan: EngineDevice) -> None:
        """The engine's Vulkan module is loaded, and what it shows is no real GPU."""
        assert (vulkan.name, vulkan.kind) == ("Vulkan0", GpuKind.SOFTWARE)
        assert vulkan.total_bytes

    @pytest.mark.parametrize("n_gpu_layers", [1, N_LAYER, N_LAYER + 1])
    def test_offload_is_real(self, rig: WorkerRig, n_gpu_layers: int) -> None:
        """Requested is effective, and the device holds just the bytes of the dry run."""
        settings = msgspec.structs.replace(SMALL, n_gpu_layers=n_gpu_layers, devices=("Vulkan0",))
        planned = rig.plan(settings)
        trial = run(rig, settings)
        assert not isinstance(planned, ErrorInfo)
        assert trial.outcome is Outcome.OK, trial.error
        assert trial.effective
        assert trial.effective.n_gpu_layers == n_gpu_layers
        assert trial.effective.devices == ("Vulkan0",)
        assert [d.device for d in planned] == ["Vulkan0", "host"]
        assert planned[0].weights_bytes
        assert trial.device_bytes == {"Vulkan0": planned[0].total_bytes}

    def test_the_cpu_itself_beats_it(
        self, vulkan: EngineDevice, tiny: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A search recommends no layer on the software device, on the evidence of a trial there."""
        monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
        request = SweepRequest(budget=BudgetName.STANDARD, pinned=PINNED)
        with closing(Session(registry)) as session:
            *_, last = session.tune(tiny.path, request, cancel=threading.Event())
        assert isinstance(last, SweepFinished)
        result = last.result
        assert result.status is SweepStatus.COMPLETE, result.error
        assert result.recommended is not None
        assert result.recommended.settings.n_gpu_layers == 0
        (there,) = (t for t in result.trials if "Vulkan0" in t.device_bytes)
        assert there.outcome is Outcome.OK, there.error
        assert there.effective is not None
        assert there.effective.n_gpu_layers == N_LAYER + 1
        work = there.request.workload
        here = [t for t in result.trials if t.request.workload == work and not t.device_bytes]
        assert 2 * token_ns(here[0]) < token_ns(there)
        (reason,) = (r for r in result.reasons if r.code == "device_slower")
        assert reason.data["device"] == "Vulkan0"


def test_unequal_devices_both_receive_layers(tiny: ModelSpec) -> None:
    """Two remote devices of unequal size share the layers about as their sizes are shared."""
    settings = msgspec.structs.replace(SMALL, n_gpu_layers=N_LAYER)
    with rpc_device(total_bytes=192 * MIB) as small, rpc_device(total_bytes=576 * MIB) as large:
        rig = WorkerRig(tiny, host(), launch=Launch(rpc=(small, large)))
        sizes = [d.total_bytes for d in rig.space().devices]
        planned = rig.plan(settings)
        trial = run(rig, settings)
        rig.close()
    assert sizes == [192 * MIB, 576 * MIB]
    assert not isinstance(planned, ErrorInfo)
    assert trial.outcome is Outcome.OK, trial.error
    assert trial.device_bytes == {d.device: d.total_bytes for d in planned[:-1]}
    first, second = (d.weights_bytes or 0 for d in planned[:-1])
    assert 0 < first < second
