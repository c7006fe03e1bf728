"""Windows settings: defaults where values are absent or odd; and nothing that could write them."""

import ast
import sys
import types
from pathlib import Path
from typing import Any, Self

import pytest

from app.domain.machine import DriverReset
from probes.reading import Absence
from probes.windows import registry
from probes.windows.facts import RegistryValue
from probes.windows.settings import TIMEOUTS, power_mode, windows_settings
from tests.fakes.windows import dword, text, windows

ROOT = Path(__file__).parents[3]
BALANCED = "00000000-0000-0000-0000-000000000000"
PERFORMANCE = "DED574B5-45A0-4F42-8737-46345C09C238"
SAVER = "961cc777-2547-4f9d-8174-7d86181b8a7a"
SAVER_PLAN = "a1841308-3541-4fab-bc81-f71556f20b4a"


def test_absent_values_mean_the_defaults() -> None:
    """The usual machine has none of the values: Windows' defaults are in effect."""
    settings = windows_settings(windows())
    assert {t.name: t.effective for t in settings.timeouts} == {
        name: default for name, (default, _) in TIMEOUTS.items()
    }
    assert {t.source for t in settings.timeouts} == {"default"}
    assert settings.tcc_timeout is False
    assert settings.gpu_scheduling == "default"


def test_found_values_count() -> None:
    """A DWORD is what Windows uses, zero and large ones included."""
    settings = windows_settings(windows(graphics={"TdrLevel": dword(0), "TdrDelay": dword(600)}))
    assert (settings.timeout("TdrLevel"), settings.timeout("TdrDelay")) == (0, 600)
    assert settings.timeout("TdrDdiDelay") == 5
    assert settings.timeout("NoSuchValue") is None


@pytest.mark.parametrize(
    "value",
    [
        text("10"),
        RegistryValue(kind=11, number=10),
        RegistryValue(kind=3, text="b'\\x0a'"),
        RegistryValue(kind=4),
    ],
)
def test_wrong_types_leave_the_default(value: RegistryValue) -> None:
    """Text, 64-bit numbers, bytes and empty values are shown, and the default is assumed."""
    settings = windows_settings(windows(graphics={"TdrDelay": value}))
    delay = next(t for t in settings.timeouts if t.name == "TdrDelay")
    assert (delay.effective, delay.source) == (2, "wrong_type")


def test_invented_value_is_noticed_in_any_spelling() -> None:
    """Registry names have no case."""
    assert windows_settings(windows(graphics={"tcctimeout": dword(0)})).tcc_timeout


@pytest.mark.parametrize(
    ("graphics", "kernel", "said"),
    [
        ({"HwSchMode": dword(2)}, None, "on"),
        ({"HwSchMode": dword(1)}, None, "off"),
        ({"HwSchMode": text("2")}, None, "default"),
        ({"HwSchMode": dword(2)}, False, "off"),
        ({}, True, "on"),
    ],
)
def test_gpu_scheduling(graphics: dict[str, RegistryValue], kernel: bool | None, said: str) -> None:
    """What the graphics kernel does counts before what the registry asks for."""
    assert windows_settings(windows(graphics=graphics), hags=kernel).gpu_scheduling == said


def test_preferences_are_read_per_program() -> None:
    """Each program's preference; other settings in the same text and rubbish are ignored."""
    door = windows(
        preferences={
            "a.exe": text("GpuPreference=1;"),
            "b.exe": text("SwapEffectUpgradeEnable=1;GpuPreference=2;"),
            "c.exe": text("AutoHDREnable=1;"),
            "DirectXUserGlobalSettings": dword(5),
        }
    )
    assert windows_settings(door).gpu_preferences == {
        "a.exe": "power_saving",
        "b.exe": "high_performance",
    }


@pytest.mark.parametrize(
    ("power", "battery", "mode"),
    [
        ({"ActiveOverlayAcPowerScheme": text(PERFORMANCE)}, False, "performance"),
        ({"ActiveOverlayAcPowerScheme": text(PERFORMANCE)}, True, Absence.NO_DATA),
        ({"ActiveOverlayDcPowerScheme": text(SAVER)}, True, "saver"),
        (
            {"ActiveOverlayAcPowerScheme": text(BALANCED), "ActivePowerScheme": text(SAVER_PLAN)},
            False,
            "saver",
        ),
        ({"ActivePowerScheme": text("{unknown}")}, False, Absence.NO_DATA),
    ],
)
def test_power_mode(power: dict[str, RegistryValue], battery: bool, mode: str | Absence) -> None:
    """The settings page's mode for this power source, else the plan, else nothing."""
    assert power_mode(windows(power=power), on_battery=battery) == mode


def test_resets_that_cannot_be_read_are_unknown() -> None:
    """No right to read the log is not the same as an empty log."""
    assert windows_settings(windows(resets="no_permission")).resets is None
    entry = DriverReset(provider="Display", event_id=4101)
    assert windows_settings(windows(resets=(entry,))).resets == (entry,)


class FakeKey:
    def __init__(self, values: dict[str, tuple[Any, int]]) -> None:
        self.values = values

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def winreg(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """A stand-in for Windows' module with one key; other calls than reading do not exist."""
    keys = {r"SYSTEM\Key": {"Number": (7, 4), "Text": ("seven", 1), "Bytes": (b"\x07", 3)}}
    access: list[int] = []

    def open_key(_root: int, path: str, _reserved: int, rights: int) -> FakeKey:
        access.append(rights)
        if path == "Denied":
            raise PermissionError
        if path not in keys:
            raise FileNotFoundError
        return FakeKey(keys[path])

    def query(key: FakeKey, name: str) -> tuple[Any, int]:
        if name not in key.values:
            raise FileNotFoundError
        return key.values[name]

    def enum(key: FakeKey, index: int) -> tuple[str, Any, int]:
        names = list(key.values)
        if index >= len(names):
            raise OSError
        return (names[index], *key.values[names[index]])

    module = types.SimpleNamespace(
        HKEY_LOCAL_MACHINE=1, HKEY_CURRENT_USER=2, KEY_READ=0x20019, KEY_WOW64_64KEY=0x100,
        OpenKey=open_key, QueryValueEx=query, EnumValue=enum, access=access,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "winreg", module)
    return module


def test_registry_values_by_type(winreg: types.SimpleNamespace) -> None:
    """Numbers stay numbers, everything else becomes text; missing ones have a reason."""
    key = r"HKLM\SYSTEM\Key"
    assert registry.value(key, "Number") == RegistryValue(kind=4, number=7)
    assert registry.value(key, "Text") == RegistryValue(kind=1, text="seven")
    assert registry.value(key, "Bytes") == RegistryValue(kind=3, text="b'\\x07'")
    assert registry.value(key, "Other") is Absence.NO_DATA
    assert registry.value(r"HKCU\Missing", "Number") is Absence.NO_DATA
    assert registry.value(r"HKLM\Denied", "Number") is Absence.NO_PERMISSION
    assert registry.value_names(key) == ("Number", "Text", "Bytes")
    assert registry.value_names(r"HKCU\Missing") == ()
    assert set(winreg.access) == {0x20019 | 0x100}


def test_registry_of_other_systems_does_not_apply() -> None:
    """Without Windows' module every value is absent."""
    if "winreg" not in sys.modules and sys.platform != "win32":
        assert registry.value(r"HKLM\X", "Y") is Absence.NOT_APPLICABLE
        assert registry.value_names(r"HKLM\X") == ()


WRITING = {
    *("SetValue", "SetValueEx", "CreateKey", "CreateKeyEx", "DeleteKey", "DeleteKeyEx"),
    *("DeleteValue", "SaveKey", "LoadKey", "ConnectRegistry", "EnableReflectionKey"),
    *("RegSetValueExW", "RegSetKeyValueW", "RegCreateKeyExW", "RegDeleteValueW"),
}
RIGHTS = {"KEY_WRITE", "KEY_SET_VALUE", "KEY_ALL_ACCESS", "KEY_CREATE_SUB_KEY"}


@pytest.mark.parametrize("folder", ["app", "probes", "views", "packaging"])
def test_nothing_can_write_the_registry(folder: str) -> None:
    """No call, right or command that changes the registry is named anywhere in the program."""
    for path in (ROOT / folder).rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        names = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        names |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        words = {
            n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)
            if isinstance(n.value, str)
        }  # fmt: skip
        assert not names & (WRITING | RIGHTS), path
        assert not words & (WRITING | RIGHTS), path
        commands = ("reg add", "reg.exe", "regedit", "Set-ItemProperty", "New-ItemProperty")
        assert not [c for c in commands if any(c in word for word in words)], path
