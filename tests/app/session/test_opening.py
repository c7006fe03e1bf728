"""What keeps a measurement from measuring the wrong thing."""

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.machine import Machine
from app.domain.memory import MemoryEstimate, Verdict
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.domain.units import GIB
from app.machine import join_machine, merge_samples
from app.session.opening import free_by_probe, measurable, memory_for, placed_devices
from app.session.readings import Readings, with_ram_of_now
from app.telemetry import Telemetry
from probes import registry
from tests.fakes import situations
from tests.fakes.probe import FakeGpuProbe, gpu_sample
from tests.fakes.recorded import MACHINES, situation_of
from tests.fakes.shapes import a_spec, tensor


def test_an_updated_driver_must_be_loaded_first() -> None:
    """With mismatched driver parts nothing is measured: the CPU would silently do the work."""
    probes = registry.replay(MACHINES / "driver-mismatch")
    infos = [info for probe in probes.gpus for info in probe.identify()]
    machine = join_machine(probes.host.identify(), infos)
    with pytest.raises(EnvironmentProblem) as caught:
        measurable(machine)
    assert caught.value.info.code == "driver_mismatch"
    assert "Restart" in caught.value.info.hint


def test_a_healthy_machine_is_measured() -> None:
    """Nothing stands in the way of an ordinary desktop."""
    probes = registry.replay(MACHINES / "nvidia-desktop")
    infos = [info for probe in probes.gpus for info in probe.identify()]
    machine = join_machine(probes.host.identify(), infos)
    assert measurable(machine) is machine


def test_an_overdue_reading_is_no_free_memory() -> None:
    """While NVML hangs, memory is not waited for that an old reading says is missing."""
    old = gpu_sample("GPU-1", t_ns=0, vram_free_bytes=5)
    probe = FakeGpuProbe([old])
    telemetry = Telemetry([probe], interval_s=None)
    telemetry.start()
    machine = situations.machine()
    free_now = free_by_probe(machine, telemetry)
    assert free_now("CUDA0") is None
    probe.samples = [gpu_sample("GPU-1", vram_free_bytes=7)]
    assert free_now("CUDA0") == 7
    assert telemetry.stop()


def recorded(name: str) -> tuple[Machine, Readings]:
    """A recorded machine with its engine, and what its probes read."""
    situation = situation_of(MACHINES / name)
    samples = {key: merge_samples(list(found)) for key, found in situation.samples.items()}
    readings = Readings({key: s for key, s in samples.items() if s}, situation.host_sample)
    return with_ram_of_now(situation.machine, readings), readings


def need_of(weights_gib: float) -> ModelSpec:
    """A model whose one block is that large."""
    n_rows = round(weights_gib * GIB / (34 * 128))
    table = (
        tensor("token_embd.weight", (256, 1024), "q8_0"),
        tensor("blk.0.anything.weight", (4096, n_rows), "q8_0"),
        tensor("output.weight", (256, 1024), "q8_0"),
    )
    return a_spec(n_layer=1, n_embd=256, tensors=table)


def judged(name: str, weights_gib: float, device: str) -> MemoryEstimate:
    machine, readings = recorded(name)
    devices, unread = placed_devices(machine, (device,), readings)
    memory = memory_for(need_of(weights_gib), machine, devices, readings=readings, unread=unread)
    return memory.estimate(Settings(n_gpu_layers=2, devices=(device,)))


@pytest.mark.parametrize(
    ("name", "device", "fits_gib", "too_much_gib"),
    [
        ("gb10", "CUDA0", 70, 100),  # 97 GiB of RAM available, the card sees 116
        ("jetson", "CUDA0", 7, 12),  # 12 GiB available
        ("amd-apu", "Vulkan0", 90, 120),  # 117 GiB available, half a GiB set aside
        ("windows-apu", "Vulkan0", 12, 16),  # 16 GiB may be shared
    ],
)
def test_unified_memory_is_one_pool(
    name: str, device: str, fits_gib: float, too_much_gib: float
) -> None:
    """More than half of RAM fits (counted once); more than is available does not."""
    assert judged(name, fits_gib, device).verdict is Verdict.FITS
    assert judged(name, too_much_gib, device).verdict is Verdict.DOES_NOT_FIT


def test_a_device_may_be_named_as_any_backend_knows_it() -> None:
    """The card's second name is the same card, not the processor; its memory is that backend's."""
    machine, readings = recorded("hybrid-awake")
    (device,), _ = placed_devices(machine, ("Vulkan1",), readings)
    assert (device.id, device.backend, device.free_bytes) == ("Vulkan1", "Vulkan", 2_974_810_112)


def test_windows_budget_bounds_what_is_free() -> None:
    """The system lets one program use less than is free."""
    machine, readings = recorded("windows-desktop")
    (device,), _ = placed_devices(machine, ("CUDA0",), readings)
    gpu = machine.gpus[0]
    assert gpu.info is not None
    assert gpu.info.vram_budget_bytes is not None
    assert device.free_bytes <= gpu.info.vram_budget_bytes
    poor = msgspec.structs.replace(gpu.info, vram_budget_bytes=GIB)
    tight = msgspec.structs.replace(
        machine, gpus=(msgspec.structs.replace(gpu, info=poor), *machine.gpus[1:])
    )
    assert placed_devices(tight, ("CUDA0",), readings)[0][0].free_bytes == GIB


def test_a_display_keeps_its_reserve() -> None:
    """512 MiB stay free on the card that drives a display, 256 on another."""
    for name, device, headroom in (
        ("nvidia-desktop", "CUDA0", 512 << 20),
        ("hybrid-awake", "CUDA0", 256 << 20),
    ):
        assert judged(name, 1, device).devices[0].headroom_bytes == headroom
