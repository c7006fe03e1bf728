"""What goes into the bundle: neither drivers, nor the system's own libraries, nor unused Qt."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the script as PyInstaller's file does."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("bundle_rules")


@pytest.mark.parametrize(
    ("place", "is_shipped"),
    [
        ("llama_cpp/lib/libggml-vulkan.so", True),
        ("llama_cpp/lib/libggml-cpu-haswell.so", True),
        ("llama_cpp/lib/libggml-cpu-sapphirerapids.so", False),
        ("llama_cpp/lib/ggml-cpu-sapphirerapids.dll", False),
        ("libvulkan.so.1", False),
        ("vulkan-1.dll", False),
        ("libstdc++.so.6", False),
        ("libxcb-cursor.so.0", True),
        ("libQt6Quick.so.6", False),
        ("PySide6/Qt6Widgets.dll", True),
        ("PySide6\\Qt6Qml.dll", False),
        ("PySide6/plugins/platforms/qwindows.dll", True),
        ("PySide6/Qt/plugins/platformthemes/libqgtk3.so", False),
        ("PySide6/Qt/plugins/platforminputcontexts/libibusplatforminputcontextplugin.so", True),
        ("PySide6/Qt/translations/qtbase_de.qm", False),
        ("assets/text/zh.toml", True),
        ("assets/translations/rigtune_zh_CN.qm", True),
        ("assets/translations/rigtune_zh_CN.ts", False),
    ],
)
def test_places(rules: Any, place: str, is_shipped: bool) -> None:
    """Each kind of file is kept or left out, on both platforms."""
    assert rules.is_shipped(place) is is_shipped


def test_libraries_that_nobody_asks_for_any_more_go(rules: Any) -> None:
    """What only a dropped file needed goes, also through a chain; what a kept one needs stays."""
    asks = {"/qgtk3.so": {"libgtk.so"}, "/qxcb.so": {"liba.so"}, "/a": {"libb.so"}}
    table = [
        ("PySide6/Qt/plugins/platforms/libqxcb.so", "/qxcb.so", "BINARY"),
        ("PySide6/Qt/plugins/platformthemes/libqgtk3.so", "/qgtk3.so", "BINARY"),
        ("liba.so", "/a", "BINARY"),
        ("libb.so", "/b", "BINARY"),
        ("libgtk.so", "/gtk", "BINARY"),
        ("libpython3.11.so.1.0", "/python", "BINARY"),
        ("libQt6Quick.so.6", "PySide6/Qt/lib/libQt6Quick.so.6", "SYMLINK"),
    ]
    kept = {e.place for e in rules.shipped(table, lambda path: asks.get(path, set()))}
    assert {"liba.so", "libb.so", "libpython3.11.so.1.0"} <= kept
    assert not kept & {"libgtk.so", "libQt6Quick.so.6"}


def test_what_only_tests_need_stays_out(rules: Any) -> None:
    """Modules installed for the tests are named, those of the program's lock are not."""
    names = set(rules.not_locked())
    assert {"pytest", "hypothesis", "gguf"} <= names
    assert not names & {"numpy", "PySide6", "llama_cpp", "msgspec", "app"}


def test_list_of_files_has_one_name_a_line(rules: Any, tmp_path: Path) -> None:
    """Names as both systems can open them, each once, whichever program brought them."""
    entry = ("llama_cpp\\lib\\ggml.dll", "C:\\env\\ggml.dll", "BINARY")
    path = rules.write_list(tmp_path, [entry, ("assets/icon.svg", "x", "DATA"), entry])
    assert path.read_text("utf-8") == "assets/icon.svg\nllama_cpp/lib/ggml.dll\n"
