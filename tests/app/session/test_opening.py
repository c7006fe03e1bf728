"""What keeps a measurement from measuring the wrong thing."""

from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.machine import join_machine
from app.session.opening import free_by_probe, measurable
from app.telemetry import Telemetry
from probes import registry
from tests.fakes import situations
from tests.fakes.probe import FakeGpuProbe, gpu_sample

MACHINES = Path(__file__).resolve().parents[2] / "golden" / "machines"


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
