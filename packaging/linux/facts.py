"""Writes what the installer must know of a finished bundle: minimum system, libraries, icons."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def newest(files: list[Path], prefix: bytes) -> str:
    """Return the newest symbol version with this prefix that any of the files asks for.

    Versions stand in a library's string table in plain letters: no tool is needed to find them.
    """
    pattern = re.compile(re.escape(prefix) + rb"_(\d+(?:\.\d+)+)\0")
    found = {match for file in files for match in pattern.findall(file.read_bytes())}
    versions = sorted(tuple(int(piece) for piece in text.split(b".")) for text in found)
    return ".".join(map(str, versions[-1])) if versions else "0"


def binaries(folder: Path) -> list[Path]:
    """Return every program and library below a folder, each once."""
    files = [p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()]
    return [p for p in files if p.open("rb").read(4) == b"\x7fELF"]


def main() -> None:
    """Write minimum.txt, window-libraries.txt and the icons into the folder given."""
    stage = Path(sys.argv[1])
    sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]
    import icons  # noqa: PLC0415

    from views.preflight import LIBRARIES, X11_LIBRARIES  # noqa: PLC0415

    files = binaries(stage)
    glibc, libstdcxx = newest(files, b"GLIBC"), newest(files, b"GLIBCXX")
    minimum = f"glibc {glibc} and libstdc++ with GLIBCXX_{libstdcxx}, or newer\n"
    (stage / "minimum.txt").write_text(minimum, "utf-8")
    bundled = {path.name for path in files}
    wanted = {**LIBRARIES, **X11_LIBRARIES}.items()
    lines = "".join(f"{lib} {package}\n" for lib, package in wanted if lib not in bundled)
    (stage / "window-libraries.txt").write_text(lines, "utf-8")
    icons.write_desktop_icons(stage / "share" / "icons")


if __name__ == "__main__":
    main()
