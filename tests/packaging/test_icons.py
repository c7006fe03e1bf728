"""The icon files that the desktop and Windows show."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QImage, QImageReader

FOLDER = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture
def icons(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the script as PyInstaller's file does."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("icons")


def test_ico_holds_every_size(icons: Any, tmp_path: Path) -> None:
    """Another reader than ours finds each size in the file, and a drawing in it."""
    reader = QImageReader(icons.write_ico(tmp_path / "rigtune.ico"))
    images = []
    for index in range(reader.imageCount()):
        reader.jumpToImage(index)
        images.append(reader.read())
    assert sorted(image.width() for image in images) == sorted(icons.WINDOWS_SIZES_PX)
    assert all(image.pixelColor(image.rect().center()).alpha() == 255 for image in images)


def test_desktop_icons_lie_where_the_theme_looks(icons: Any, tmp_path: Path) -> None:
    """Each size has its folder, and the drawing itself the scalable one."""
    icons.write_desktop_icons(tmp_path)
    for size in icons.DESKTOP_SIZES_PX:
        image = QImage(str(tmp_path / f"{size}x{size}" / "apps" / "rigtune.png"))
        assert (image.width(), image.height()) == (size, size)
    assert (tmp_path / "scalable" / "apps" / "rigtune.svg").is_file()
