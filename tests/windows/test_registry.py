"""The registry probe on a real registry."""

import sys
import winreg
from collections.abc import Iterator

import pytest

from probes.reading import Absence
from probes.windows import registry
from probes.windows.facts import RegistryValue
from probes.windows.live import LiveWindows
from probes.windows.settings import GRAPHICS, PREFERENCES, TIMEOUTS, windows_settings
from tests.fakes.wine import is_wine

assert sys.platform == "win32"

OWN = r"Software\RigTuneTest"
GRAPHICS_PATH = GRAPHICS.partition("\\")[2]
PREFERENCES_PATH = PREFERENCES.partition("\\")[2]
needs_wine = pytest.mark.skipif(not is_wine(), reason="changes settings of the machine")


@pytest.fixture
def own_key() -> Iterator[winreg.HKEYType]:
    """Return a key of the user that is gone afterwards."""
    with winreg.CreateKey(winreg.HKEY_CURRENT_USER, OWN) as key:
        yield key
    winreg.DeleteKey(winreg.HKEY_CURRENT_USER, OWN)


@pytest.fixture
def graphics_key() -> Iterator[winreg.HKEYType]:
    """Return the machine's key with the timeout values, emptied before and after."""
    with winreg.CreateKey(winreg.HKEY_LOCAL_MACHINE, GRAPHICS_PATH) as key:
        _empty(key)
        yield key
        _empty(key)


def _empty(key: winreg.HKEYType) -> None:
    while winreg.QueryInfoKey(key)[1]:
        winreg.DeleteValue(key, winreg.EnumValue(key, 0)[0])


@pytest.mark.parametrize(
    ("kind", "data", "number", "text"),
    [
        (winreg.REG_DWORD, 10, 10, None),
        (winreg.REG_DWORD, 0xFFFFFFFF, 0xFFFFFFFF, None),
        (winreg.REG_QWORD, 1 << 40, 1 << 40, None),
        (winreg.REG_SZ, "10", None, "10"),
        (winreg.REG_SZ, "显卡 Ünï", None, "显卡 Ünï"),
        (winreg.REG_MULTI_SZ, ["a", "b"], None, "['a', 'b']"),
    ],
)
def test_value_keeps_its_type(
    own_key: winreg.HKEYType, kind: int, data: object, number: int | None, text: str | None
) -> None:
    """Numbers come as numbers, everything else as text with its type."""
    winreg.SetValueEx(own_key, "Value", 0, kind, data)  # type: ignore[call-overload]
    found = registry.value(rf"HKCU\{OWN}", "Value")
    assert found == RegistryValue(kind=kind, number=number, text=text)


def test_what_is_not_there_is_absent(own_key: winreg.HKEYType) -> None:
    """A missing value, a missing key and an empty key are normal."""
    assert registry.value(rf"HKCU\{OWN}", "Value") is Absence.NO_DATA
    assert registry.value(r"HKLM\SOFTWARE\No such key", "Value") is Absence.NO_DATA
    assert registry.value_names(rf"HKCU\{OWN}") == ()
    assert registry.value_names(r"HKCU\Software\No such key") == ()


def test_names_of_values_are_listed(own_key: winreg.HKEYType) -> None:
    """Every value of a key has its name in the list."""
    names = [f"C:\\Programme\\模型 {i}.exe" for i in range(40)]
    for name in names:
        winreg.SetValueEx(own_key, name, 0, winreg.REG_SZ, "GpuPreference=2;")
    assert sorted(registry.value_names(rf"HKCU\{OWN}")) == sorted(names)


@needs_wine
def test_timeouts_absent(graphics_key: winreg.HKEYType) -> None:
    """Without values every timeout has its default, and nothing is said of TccTimeout."""
    settings = windows_settings(LiveWindows())
    assert {t.name: t.effective for t in settings.timeouts} == {
        name: default for name, (default, _) in TIMEOUTS.items()
    }
    assert {t.source for t in settings.timeouts} == {"default"}
    assert settings.tcc_timeout is False


@needs_wine
def test_timeouts_set(graphics_key: winreg.HKEYType) -> None:
    """A value that is set is the one in effect."""
    winreg.SetValueEx(graphics_key, "TdrDelay", 0, winreg.REG_DWORD, 60)
    found = {t.name: t for t in windows_settings(LiveWindows()).timeouts}
    assert (found["TdrDelay"].effective, found["TdrDelay"].source) == (60, "registry")
    assert found["TdrDdiDelay"].source == "default"


@needs_wine
@pytest.mark.parametrize(
    ("kind", "data"), [(winreg.REG_SZ, "60"), (winreg.REG_QWORD, 60), (winreg.REG_BINARY, b"<")]
)
def test_timeouts_of_a_wrong_type(graphics_key: winreg.HKEYType, kind: int, data: object) -> None:
    """A value that Windows would ignore for its type is said to be of a wrong type."""
    winreg.SetValueEx(graphics_key, "TdrDelay", 0, kind, data)  # type: ignore[call-overload]
    found = {t.name: t for t in windows_settings(LiveWindows()).timeouts}
    assert (found["TdrDelay"].effective, found["TdrDelay"].source) == (2, "wrong_type")


@needs_wine
@pytest.mark.parametrize("name", ["TccTimeout", "tcctimeout"])
def test_invented_timeout_is_noticed(graphics_key: winreg.HKEYType, name: str) -> None:
    """The value that articles invented is found whatever its case, and changes no timeout."""
    winreg.SetValueEx(graphics_key, name, 0, winreg.REG_DWORD, 60)
    settings = windows_settings(LiveWindows())
    assert settings.tcc_timeout is True
    assert {t.source for t in settings.timeouts} == {"default"}


@needs_wine
def test_scheduling_and_preferences(graphics_key: winreg.HKEYType) -> None:
    """Hardware scheduling and per-program GPU preferences are read as Windows stores them."""
    winreg.SetValueEx(graphics_key, "HwSchMode", 0, winreg.REG_DWORD, 2)
    program = r"C:\Programs\rigtune\rigtune.exe"
    with winreg.CreateKey(winreg.HKEY_CURRENT_USER, PREFERENCES_PATH) as key:
        winreg.SetValueEx(key, program, 0, winreg.REG_SZ, "GpuPreference=1;")
        settings = windows_settings(LiveWindows())
        winreg.DeleteValue(key, program)
    assert settings.gpu_scheduling == "on"
    assert settings.gpu_preferences == {program: "power_saving"}
