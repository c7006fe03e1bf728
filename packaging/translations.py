"""Brings the window's translations up to date: python packaging/translations.py [--check].

`lupdate` collects every text of views/ into assets/translations/*.ts, and `lrelease` compiles
those; both come with PySide6-Essentials. English has a catalogue for its plurals only.
Translate new texts (Qt Linguist, or any editor) and run it again.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "assets" / "translations"
# catalogue: further options of lupdate
CATALOGUES = {
    "rigtune_zh_CN.ts": ("-target-language", "zh_CN"),
    "rigtune_en.ts": ("-target-language", "en", "-pluralonly"),
}


def main() -> int:
    """Update and compile every catalogue; ``--check`` fails where something is missing."""
    missing = 0
    for name, options in CATALOGUES.items():
        update(FOLDER / name, options)
        missing += unfinished(FOLDER / name)
        compile_to(FOLDER / name, (FOLDER / name).with_suffix(".qm"))
    print(f"texts without translation: {missing}")
    return int(missing > 0 and "--check" in sys.argv)


def update(catalogue: Path, options: tuple[str, ...]) -> None:
    """Collect the texts of the window; those that are gone are removed."""
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "views").rglob("*.py"))
    target = str(catalogue)
    flags = ("-no-obsolete", "-locations", "none", "-silent", *options)
    subprocess.run([tool("lupdate"), *flags, *sources, "-ts", target], cwd=ROOT, check=True)


def compile_to(catalogue: Path, target: Path) -> None:
    """Write the form that Qt reads."""
    subprocess.run([tool("lrelease"), "-silent", str(catalogue), "-qm", str(target)], check=True)


def unfinished(catalogue: Path) -> int:
    """Return how many texts of a catalogue are not translated."""
    return catalogue.read_text("utf-8").count('type="unfinished"')


def tool(name: str) -> str:
    """Return the path of one of Qt's tools, which lie in the package itself."""
    package = importlib.util.find_spec("PySide6")
    assert package is not None
    assert package.origin is not None
    suffix = ".exe" if sys.platform == "win32" else ""
    return str(Path(package.origin).with_name(f"{name}{suffix}"))


if __name__ == "__main__":
    raise SystemExit(main())
