"""The licences file and the list of parts: everything used is named, with its text."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the script as PyInstaller's file does."""
    pytest.importorskip("PyInstaller")
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("notices")


def test_parts_are_those_whose_files_are_used(notices: Any) -> None:
    """One file of a package is enough to name it; packages without one are not named."""
    parts = {part.name: part for part in notices.parts_of({Path(str(psutil.__file__))})}
    assert parts["psutil"].version == psutil.__version__
    assert "BSD" in parts["psutil"].licence
    assert "msgspec" not in parts
    assert {"Python", "pyinstaller"} <= set(parts)


def test_every_part_has_a_text(notices: Any) -> None:
    """No Python package comes without the text of its licence."""
    llama = [*Path(sys.prefix).rglob("site-packages/llama_cpp/__init__.py")]
    files = {Path(str(msgspec.__file__)), Path(str(psutil.__file__)), *llama}
    parts = notices.parts_of(files)
    assert [part.name for part in parts if part.kind == "pypi" and not part.texts] == []
    text = notices.notices_text(parts)
    assert "The ggml authors" in text
    assert text.count("Permission is hereby granted, free of charge") >= 1


def test_equal_texts_appear_once(notices: Any, tmp_path: Path) -> None:
    """Two parts under the same text share it, and both are named over it."""
    path = tmp_path / "LICENSE"
    path.write_text("do what you like", "utf-8")
    parts = [notices.Part(name, "1", "X", "pypi", (path,)) for name in ("one", "two")]
    text = notices.notices_text(parts)
    assert text.count("do what you like") == 1
    assert "one (LICENSE), two (LICENSE)" in text


def test_list_of_parts_is_cyclonedx(notices: Any) -> None:
    """Each part has a package URL by its kind."""
    part = notices.Part("PySide6", "6.1", "LGPL", "pypi", ())
    document = notices.sbom_document([part])
    assert document["bomFormat"] == "CycloneDX"
    assert document["components"][0]["purl"] == "pkg:pypi/pyside6@6.1"


def test_version_resource_is_readable(notices: Any, tmp_path: Path) -> None:
    """What Windows shows of the executable is a file that PyInstaller can evaluate."""
    place = notices.version_resource("rigtune-gui", tmp_path)
    text = Path(place).read_text("utf-8")
    assert isinstance(ast.parse(text, mode="eval"), ast.Expression)
    assert "rigtune-gui.exe" in text
