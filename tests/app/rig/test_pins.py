"""A worker gets to see the chosen cards and no other, whatever the engine numbers them."""

import pytest

from app.domain.machine import EngineDevice, EngineInfo, GpuKind
from app.domain.outcome import Outcome
from app.rig.ends import WorkerRefused
from app.rig.environment import worker_environment
from app.rig.pins import Pin, arguments, missing_card, visible_to_cuda
from app.rig.process import Launch, drain, start_worker
from app.worker.devices import given_name

FIRST = Pin(name="CUDA0", pci_id="0000:01:00.0", uuid="GPU-a")
SECOND = Pin(name="CUDA1", pci_id="0000:02:00.0", uuid="GPU-b")
OTHER = Pin(name="Vulkan0", pci_id="0000:03:00.0")


def card(name: str, pci_id: str | None) -> EngineDevice:
    backend = name.rstrip("0123456789")
    return EngineDevice(
        name=name, backend=backend, description=name, kind=GpuKind.DISCRETE, pci_id=pci_id
    )


def engine(*devices: EngineDevice) -> EngineInfo:
    return EngineInfo(
        version="1",
        llama_version="1",
        backends=("CPU", "CUDA"),
        devices=devices,
        supports_offload=True,
    )


def test_cuda_sees_the_chosen_card_only() -> None:
    """One of two cards is chosen: the other one gets no driver context and is not woken."""
    assert visible_to_cuda([SECOND]) == "GPU-b"
    assert worker_environment([SECOND])["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    assert visible_to_cuda([FIRST, SECOND]) == "GPU-a,GPU-b"


def test_cuda_sees_nothing_where_another_backend_works() -> None:
    """A hidden card is hidden by a value that is not empty: Windows drops an empty one."""
    assert visible_to_cuda([OTHER]) == "-1"
    assert visible_to_cuda([]) == "-1"


def test_amds_backend_is_not_hidden_with_cuda() -> None:
    """ROCm obeys CUDA's variable too: a card chosen there must stay visible."""
    assert visible_to_cuda([Pin(name="ROCm0", pci_id="0000:03:00.0")]) is None
    assert visible_to_cuda([FIRST, Pin(name="ROCm0", pci_id="0000:03:00.0")]) is None


def test_a_card_without_identity_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the vendor's identity is unknown the user's own choice stands."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    nameless = Pin(name="CUDA1", pci_id="0000:02:00.0")
    assert visible_to_cuda([FIRST, nameless]) is None
    assert worker_environment([nameless])["CUDA_VISIBLE_DEVICES"] == "1"
    assert worker_environment()["CUDA_VISIBLE_DEVICES"] == "1"


def test_the_name_stays_with_the_card() -> None:
    """Seen alone, the second card is the engine's CUDA0; it keeps the name CUDA1."""
    pins = {"CUDA1": "0000:02:00.0", "Vulkan0": "0000:02:00.0"}
    assert given_name(card("CUDA0", "0000:02:00.0"), pins) == "CUDA1"
    assert given_name(card("Vulkan5", "0000:02:00.0"), pins) == "Vulkan0"
    assert given_name(card("CUDA1", "0000:01:00.0"), pins) is None


def test_one_card_under_two_drivers_keeps_both_names() -> None:
    """Two Vulkan drivers list the same card: their names are not mixed up."""
    pins = {"Vulkan0": "0000:03:00.0", "Vulkan1": "0000:03:00.0"}
    for name in pins:
        assert given_name(card(name, "0000:03:00.0"), pins) == name


def test_a_card_that_is_gone_ends_the_worker_with_a_sentence() -> None:
    """An unplugged card is no reason to compute on the processor in silence."""
    found = missing_card([FIRST, SECOND], engine(card("CUDA0", "0000:01:00.0")))
    assert found is not None
    assert found.outcome is Outcome.DEVICE_LOST
    assert "CUDA1 (0000:02:00.0)" in found.error.message
    assert missing_card([FIRST], engine(card("CUDA0", "0000:01:00.0"))) is None


def test_the_real_worker_understands_its_pins() -> None:
    """Started with a card that this machine lacks, it is refused and not used without."""
    gone = Pin(name="CUDA0", pci_id="00ff:01:00.0", uuid="GPU-x")
    assert arguments([gone]) == ["--pin", "CUDA0=00ff:01:00.0"]
    with pytest.raises(WorkerRefused) as caught:
        drain(start_worker(Launch(pins=(gone,))))
    assert caught.value.error.code == "device_gone"
