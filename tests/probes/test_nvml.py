"""The door to NVML: plain answers, reasons instead of exceptions."""

import ctypes
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from probes import nvml as nvml_module
from probes.nvml import FILLED, REASONS, LiveNvml, field_value, plain
from probes.reading import Absence


class Library:
    """What a stand-in for ``pynvml`` was asked."""

    def __init__(self) -> None:
        self.handles: list[object] = []
        self.shut = 0

    def shutdown(self) -> None:
        self.shut += 1
        raise pynvml.NVMLError(1)

    def by_index(self, index: int) -> str:
        self.handles.append(index)
        return f"handle{index}"

    def by_bus_id(self, bus_id: bytes) -> str:
        self.handles.append(bus_id)
        return f"handle@{bus_id.decode()}"


def name_of(handle: str) -> bytes:
    return handle.encode()


def fail(handle: str) -> int:
    """Fail with the number of the handle."""
    raise pynvml.NVMLError(int(handle.removeprefix("handle")))


def mismatch(handle: str) -> int:
    """Answer as the wrapper does when an older driver's library lacks its function."""
    raise pynvml.NVMLLibraryMismatchError(f"no such version for {handle}")


def field_of(handle: str, ids: list[int]) -> list[Any]:
    value = SimpleNamespace(uiVal=ids[0])
    return [SimpleNamespace(nvmlReturn=0, valueType=1, value=value)]


def door() -> tuple[LiveNvml, Library]:
    nvml, library = LiveNvml(), Library()
    nvml._pynvml = SimpleNamespace(
        NVMLError=pynvml.NVMLError,
        NVMLLibraryMismatchError=pynvml.NVMLLibraryMismatchError,
        nvmlDeviceGetComputeRunningProcesses=mismatch,
        nvmlShutdown=library.shutdown,
        nvmlDeviceGetHandleByIndex=library.by_index,
        nvmlDeviceGetHandleByPciBusId=library.by_bus_id,
        nvmlDeviceGetName=name_of,
        nvmlDeviceGetPowerUsage=fail,
        nvmlDeviceGetFieldValues=field_of,
    )
    return nvml, library


def test_nothing_is_asked_before_the_start() -> None:
    """A query without a started library is a reason, not a crash."""
    assert LiveNvml().query("nvmlDeviceGetCount") is Absence.DRIVER_NOT_LOADED


def test_handles_are_opened_once_and_by_address() -> None:
    """A card is addressed by bus id or index; its handle is reused."""
    nvml, library = door()
    for _ in range(2):
        assert nvml.query("nvmlDeviceGetName", device="pci:00000000:01:00.0").startswith("handle@")
        assert nvml.query("nvmlDeviceGetName", device="index:3") == "handle3"
    assert library.handles == [b"00000000:01:00.0", 3]


def test_error_codes_become_reasons() -> None:
    """Every NVML error is one of our reasons; an unknown code is "error"."""
    nvml, _ = door()
    for code, reason in (
        (3, Absence.NOT_SUPPORTED),
        (4, Absence.NO_PERMISSION),
        (13, Absence.SYMBOL_MISSING),
        (15, Absence.LOST),
        (18, Absence.VERSION_MISMATCH),
        (999, Absence.ERROR),
    ):
        answer = nvml.query("nvmlDeviceGetPowerUsage", device=f"index:{code}")
        assert answer is reason


def test_unknown_call_and_other_signature_are_missing_symbols() -> None:
    """A call this release of the binding lacks, or with other arguments, is feature detection."""
    nvml, _ = door()
    assert nvml.query("nvmlDeviceGetTomorrow", device="index:0") is Absence.SYMBOL_MISSING
    assert nvml.query("nvmlDeviceGetName", 1, 2, device="index:0") is Absence.SYMBOL_MISSING


def test_field_carries_its_own_code() -> None:
    """A field query succeeds as a whole while an element may have failed."""
    nvml, _ = door()
    assert nvml.query("nvmlDeviceGetFieldValues", 82, device="index:0") == 82
    failed = SimpleNamespace(nvmlReturn=3, valueType=1, value=None)
    assert field_value(failed) is Absence.NOT_SUPPORTED
    odd = SimpleNamespace(nvmlReturn=0, valueType=99, value=None)
    assert field_value(odd) is Absence.NO_DATA


def test_stop_survives_a_driver_that_is_gone() -> None:
    """Shutting down twice, or after the driver left, raises nothing."""
    nvml, library = door()
    nvml.stop()
    nvml.stop()
    assert library.shut == 1


def test_structures_become_plain() -> None:
    """ctypes structures, lists, bytes and the binding's friendly objects can be recorded."""

    class Inner(ctypes.Structure):
        _fields_ = (("gpu", ctypes.c_uint), ("name", ctypes.c_char * 8))

    friendly = SimpleNamespace(pid=7, usedGpuMemory=None)
    assert plain(Inner(5, b"abc")) == {"gpu": 5, "name": "abc"}
    assert plain([friendly, 1, b"x"]) == [{"pid": 7, "usedGpuMemory": None}, 1, "x"]
    assert plain(pynvml.c_nvmlUtilization_t(gpu=3, memory=4)) == {"gpu": 3, "memory": 4}


def test_an_older_library_is_a_reason() -> None:
    """A wrapper that is newer than the driver's library costs one reading, not the sample."""
    nvml, _ = door()
    answer = nvml.query("nvmlDeviceGetComputeRunningProcesses", device="index:0")
    assert answer is Absence.SYMBOL_MISSING


class ModesOfPower(ctypes.Structure):
    """What the call fills."""

    _fields_ = (("currentMode", ctypes.c_uint), ("mode", ctypes.c_uint))


def test_calls_that_fill_a_structure_return_their_code() -> None:
    """Zero gives the structure as numbers, any other code its reason."""
    nvml, _ = door()
    codes = [0, 3]

    def fill(_handle: str, where: Any) -> int:
        where._obj.currentMode = 2
        return codes.pop(0)

    nvml._pynvml.c_nvmlDevicePowerMizerModes_v1_t = ModesOfPower
    nvml._pynvml.nvmlDeviceGetPowerMizerMode_v1 = fill
    name = "nvmlDeviceGetPowerMizerMode_v1"
    assert nvml.query(name, device="index:0") == {"currentMode": 2, "mode": 0}
    assert nvml.query(name, device="index:0") is Absence.NOT_SUPPORTED


def test_structures_to_fill_exist_in_the_binding() -> None:
    """Each call of that kind has its structure there."""
    for function, structure in FILLED.items():
        assert hasattr(pynvml, function)
        assert issubclass(getattr(pynvml, structure), ctypes.Structure)


@pytest.mark.parametrize(
    ("code", "reason"),
    [(8, Absence.NO_POWER), (10, Absence.STALE), (14, Absence.DAMAGED), (999, Absence.ERROR)],
)
def test_codes_have_their_reasons(code: int, reason: Absence) -> None:
    """What a user can act on has a reason of its own; an unknown code is an error."""
    assert REASONS.get(code, Absence.ERROR) is reason


def test_every_call_is_one_the_binding_has() -> None:
    """A misspelt call would look like a driver that is too old, for ever."""
    sources = Path(nvml_module.__file__).parent.glob("nv*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    named = set(re.findall(r'"(nvml(?:Device|System)\w+)"', text))
    assert len(named) > 40
    assert [name for name in sorted(named) if not hasattr(pynvml, name)] == []
