"""Estimates wake no sleeping GPU: neither the engine nor its dry run is started."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import UsageProblem
from app.domain.machine import (
    Gpu,
    GpuInfo,
    GpuKind,
    GpuSample,
    HostInfo,
    Machine,
    PowerState,
)
from app.domain.memory import MemorySource, Verdict
from app.domain.settings import Settings
from app.session import Session
from app.session.readings import Readings, probed_devices
from app.store import Calibration, CalibrationKey
from tests.fakes.models import make_model
from tests.fakes.recorded import MACHINES, RecordedMachine

LAPTOP_GPU = "NVIDIA GeForce RTX 4060 Laptop GPU"


def on(name: str, replay: str | None = None) -> Session:
    # any start of the engine would fail: there is none in that folder
    return Session(RecordedMachine(name), engine_dir="no-such-folder", replay=replay)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    with closing(on("hybrid-asleep")) as made:
        yield made


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    return str(make_model(tmp_path / "tiny.gguf", "llama"))


@pytest.mark.parametrize("exact", [False, True])
def test_the_formula_answers_for_a_sleeping_gpu(session: Session, tiny: str, exact: bool) -> None:
    """Need per device, free memory absent with its reason, and a sentence; also with exact."""
    spec = session.inspect(tiny)
    found = session.estimate(spec, Settings(n_gpu_layers=spec.max_gpu_layers), exact=exact)
    gpu, host = found.estimate.devices
    assert session.machine().engine is None
    assert found.estimate.source is MemorySource.FORMULA
    assert (gpu.device, gpu.free_bytes, gpu.reason) == (LAPTOP_GPU, None, "asleep")
    assert (gpu.weights_bytes or 0) > (host.weights_bytes or 0) > 0
    assert found.estimate.verdict is Verdict.UNKNOWN
    assert (found.max_n_gpu_layers, found.max_n_ctx) == (None, None)
    assert f"{LAPTOP_GPU} sleeps" in (found.estimate.note or "")
    assert ("dry run" in (found.estimate.note or "")) is exact


def test_lists_and_defaults_wake_nothing(
    session: Session, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model list has its verdicts, and the wizard something to show."""
    spec = session.inspect(tiny)
    assert session.default_settings(spec, 512).n_gpu_layers == spec.max_gpu_layers
    monkeypatch.setenv("LLAMA_CACHE", str(Path(tiny).parent))
    (entry,) = [m for m in session.models() if m.path == tiny]
    assert entry.verdict is Verdict.UNKNOWN
    assert session.machine().engine is None


def test_a_device_must_be_named_as_it_is_known(session: Session, tiny: str) -> None:
    """The engine's names are not known while the GPU sleeps; the problem lists those that are."""
    settings = Settings(n_gpu_layers=1, devices=("CUDA0",))
    with pytest.raises(UsageProblem) as caught:
        session.estimate(session.inspect(tiny), settings)
    assert LAPTOP_GPU in caught.value.info.hint


def test_a_recorded_machine_is_judged_by_its_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: str
) -> None:
    """A machine shown from a recording keeps its engine's names; what the probes read counts."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    recorded = str(MACHINES / "hybrid-awake")
    with closing(on("no-gpu", replay=recorded)) as session:
        spec = session.inspect(tiny)
        found = session.estimate(spec, Settings(n_gpu_layers=spec.max_gpu_layers))
    gpu = found.estimate.devices[0]
    assert (gpu.device, gpu.free_bytes, gpu.verdict) == ("CUDA0", 2_974_810_112, Verdict.FITS)
    assert found.max_n_gpu_layers == spec.max_gpu_layers
    (holder,) = found.if_closed
    assert holder.vram_bytes == 5_138_022_400
    assert holder.verdict is Verdict.FITS


def test_what_was_learned_of_a_card_counts_while_it_sleeps(session: Session, tiny: str) -> None:
    """Calibrations of the same card and driver reach the session's estimates."""
    spec = session.inspect(tiny)
    key = CalibrationKey(
        device="GPU-00000000-0000-0000-0000-000000000001", driver="nvidia 565.77", backend="CUDA",
        flash_attn=True, n_ubatch=512, cpu_layers=False, depth_bucket=2048, family=spec.arch,
    )  # fmt: skip
    seen = Calibration(key=key, driver_context_bytes=321 << 20, growth_bytes=54 << 20)
    session.store().add_calibration(seen)
    gpu = session.estimate(spec, Settings(n_gpu_layers=5)).estimate.devices[0]
    assert (gpu.driver_context_bytes, gpu.growth_bytes) == (321 << 20, 54 << 20)
    assert gpu.measured_parts == ("driver_context", "growth")


def test_windows_budget_bounds_a_card_that_no_engine_was_asked_for() -> None:
    """One program gets no more than the budget, however much of the card is free."""
    info = GpuInfo(
        probe="dxgi", luid="1", name="GeForce", vendor="nvidia", kind=GpuKind.DISCRETE,
        vram_total_bytes=8 << 30, vram_budget_bytes=7 << 30,
    )  # fmt: skip
    machine = Machine(host=HostInfo(os="windows"), gpus=(Gpu(key=info.key, info=info),))
    awake = GpuSample(
        key=info.key, t_ns=0, power_state=PowerState.AWAKE, vram_free_bytes=(8 << 30) - 1
    )
    (device,), unread = probed_devices(machine, Readings({info.key: awake}))
    assert (device.total_bytes, device.free_bytes, unread) == (8 << 30, 7 << 30, {})


def test_a_sleeping_card_of_known_size_is_empty() -> None:
    """It sleeps because nobody uses it: all of it counts as free, and it has a verdict."""
    info = GpuInfo(
        probe="drm", pci_id="0000:03:00.0", name="Radeon", vendor="amd", kind=GpuKind.DISCRETE,
        vram_total_bytes=8 << 30,
    )  # fmt: skip
    machine = Machine(host=HostInfo(os="linux"), gpus=(Gpu(key=info.key, info=info),))
    asleep = GpuSample(key=info.key, t_ns=0, power_state=PowerState.ASLEEP)
    (device,), unread = probed_devices(machine, Readings({info.key: asleep}))
    assert (device.free_bytes, device.backend, unread) == (8 << 30, "Vulkan", {})
    awake = msgspec.structs.replace(asleep, power_state=PowerState.AWAKE)
    (_,), unread = probed_devices(machine, Readings({info.key: awake}))
    assert unread == {"Radeon": "unread"}
