"""What the self-test says of devices: roles, each backend's choice, time limits."""

from pathlib import Path

import pytest

from app.advice.device_facts import would_take
from app.domain.finding import CheckStatus
from app.domain.machine import EngineDevice, Gpu, GpuKind, HostInfo, Machine
from app.session.doctor import _comparison
from app.session.doctor_devices import device_checks
from tests.fakes import situations as s
from tests.fakes.recorded import MACHINES, situation_of


def texts(name: str) -> dict[str, str]:
    machine = situation_of(MACHINES / name).machine
    return {check.id: check.text for check in device_checks(machine)}


def device(name: str, kind: GpuKind) -> EngineDevice:
    return s.device(name, kind=kind)


def test_backend_takes_its_first_card_and_no_rasteriser() -> None:
    """Order is the backend's own, cards go before processors, software is left out."""
    devices = (
        device("Vulkan0", GpuKind.INTEGRATED),
        device("Vulkan1", GpuKind.SOFTWARE),
        device("Vulkan2", GpuKind.DISCRETE),
        device("CUDA0", GpuKind.DISCRETE),
    )
    taken = would_take(devices, "Vulkan")
    assert taken is not None
    assert taken.name == "Vulkan2"
    only_inside = would_take(devices[:2], "Vulkan")
    assert only_inside is not None
    assert only_inside.name == "Vulkan0"
    assert would_take(devices[1:2], "Vulkan") is None
    assert would_take(devices, "SYCL") is None


def test_hybrid_laptop_is_explained() -> None:
    """Who draws the desktop, power, sleep, and what each backend would take."""
    said = texts("windows-laptop")
    assert "CUDA0" in said["choice_CUDA"]
    assert "Vulkan1" in said["choice_Vulkan"]
    assert "drawn by Intel(R) Iris(R) Xe Graphics" in said["hybrid"]
    assert "battery" in said["hybrid"]
    assert "takes 2 s (TdrDelay)" in said["timeouts"]
    assert "Set in the registry: —" in said["timeouts"]


def test_setting_to_change_is_named_where_the_card_draws_the_desktop() -> None:
    """Only then there is something to change, and it depends on the system."""
    both = s.machine(s.gpu(), s.igpu(drives_display=False))
    hint = next(c.hint for c in device_checks(both) if c.id == "hybrid")
    assert "prime-select" in hint
    fine = s.machine(s.gpu(drives_display=False), s.igpu())
    assert next(c.hint for c in device_checks(fine) if c.id == "hybrid") == ""


def test_switched_off_detection_is_no_limit_of_zero() -> None:
    """With TdrLevel 0 nothing is reset, whatever the delays say."""
    said = texts("windows-tweaked")["timeouts"]
    assert "nothing is reset" in said
    assert "TccTimeout" in said


def test_kernel_limits_are_shown() -> None:
    """The compute timeout of a kernel driver is said in seconds."""
    assert "when one job takes 2 s" in texts("amd-no-rebar")["timeout_0000:08:00.0"]


@pytest.mark.parametrize("path", sorted(MACHINES.iterdir()), ids=lambda path: path.name)
def test_every_recorded_machine_can_be_described(path: Path) -> None:
    """No machine, however odd, breaks the description; each has one line per GPU."""
    machine = situation_of(MACHINES / path.name).machine
    checks = list(device_checks(machine))
    assert {c.status for c in checks} <= {CheckStatus.OK}
    assert sum(c.id.startswith("gpu_") for c in checks) == len(machine.gpus)


def test_no_search_starts_on_a_rasteriser() -> None:
    """Where only the processor poses as a GPU, nothing says that RigTune would start with it."""
    posing = Gpu(key="Vulkan0", engine=(device("Vulkan0", GpuKind.SOFTWARE),))
    machine = Machine(host=HostInfo(os="linux"), gpus=(posing,))
    (check,) = _comparison(machine, {"the CPU": 80.0, "Vulkan0": 5.0})
    assert check.hint == ""
