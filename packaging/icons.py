"""Draws the program's icon, from the drawing that the window uses, as each system wants it."""

from __future__ import annotations

import struct
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice  # noqa: TID251  drawing needs Qt, as in the views
from PySide6.QtGui import QImage, QPainter  # noqa: TID251
from PySide6.QtSvg import QSvgRenderer  # noqa: TID251

DRAWING = Path(__file__).resolve().parents[1] / "assets" / "icons" / "rigtune.svg"
DESKTOP_SIZES_PX = (32, 48, 64, 128, 256)
WINDOWS_SIZES_PX = (16, 24, 32, 48, 64, 256)


def png(size_px: int) -> bytes:
    """Return the icon as a square PNG file."""
    image = QImage(size_px, size_px, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(str(DRAWING)).render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not image.save(buffer, "PNG"):  # type: ignore[call-overload]  # the stub asks for bytes
        raise OSError(f"{DRAWING} could not be drawn")
    return bytes(buffer.data().data())


def write_desktop_icons(folder: Path) -> None:
    """Write the icon as the freedesktop icon theme wants it, in several sizes."""
    files = {f"{size}x{size}/apps/rigtune.png": png(size) for size in DESKTOP_SIZES_PX}
    files["scalable/apps/rigtune.svg"] = DRAWING.read_bytes()
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def write_ico(path: Path) -> str:
    """Write the icon of a Windows executable: PNG files behind a table; return its place."""
    images = [(size, png(size)) for size in WINDOWS_SIZES_PX]
    head, body = struct.pack("<HHH", 0, 1, len(images)), b""
    start = len(head) + 16 * len(images)
    for size, data in images:
        side = size % 256  # 0 means 256
        head += struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(data), start + len(body))
        body += data
    path.write_bytes(head + body)
    return str(path)
