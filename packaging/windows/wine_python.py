"""A Windows CPython 3.11 put together from packages, and our requirements for it.

Nobody publishes the Windows interpreter as a package of its own; panda3d's wheel carries the DLLs
of the official build for its own bundles. It serves tests on this machine and is never shipped.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from boot_engine import LOCKS
from boot_host import Problem, work
from wine_host import REPLACED, WINE_DLLS, Wine, windows_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VERSION = "3.11"
GCC = "x86_64-w64-mingw32-gcc-posix"
WINDOWS_WHEELS = (
    *("--only-binary", ":all:", "--require-hashes", "--no-deps", "--platform", "win_amd64"),
    *("--python-version", VERSION, "--implementation", "cp"),
)
# The libraries of the standard library's own extension modules.
LIBRARIES = ("libcrypto-3", "libssl-3", "libffi-8", "sqlite3", "zlib1")
NOT_NEEDED = (
    *("site-packages", "dist-packages", "__pycache__", "lib-dynload", "test", "idlelib"),
    *("turtledemo", "tkinter", "ensurepip", "config-*", "_sysconfigdata*", "EXTERNALLY-MANAGED"),
    "sitecustomize.py",
)
# What the markers of the locks ask about.
MARKERS = {
    "implementation_name": "cpython",
    "os_name": "nt",
    "platform_machine": "AMD64",
    "platform_python_implementation": "CPython",
    "platform_system": "Windows",
    "python_full_version": "3.11.9",
    "python_version": VERSION,
    "sys_platform": "win32",
}


def make_interpreter(wine: Wine) -> None:
    """Put the Windows Python together: DLLs, standard library, python.exe."""
    if f"{sys.version_info[0]}.{sys.version_info[1]}" != VERSION:
        raise Problem(f"Start this with Python {VERSION}: its standard library is copied.")
    downloads, target = wine.home / "downloads", wine.python
    places: list[str | Path] = ["-d", downloads, "-r", HERE / "interpreter.txt"]
    pip = [sys.executable, "-m", "pip", "download", *WINDOWS_WHEELS, *places]
    work("fetching the Windows interpreter's DLLs", pip, "wine-pip", {})
    shutil.rmtree(target, ignore_errors=True)
    (target / "DLLs").mkdir(parents=True)
    with zipfile.ZipFile(next(downloads.glob("panda3d-*-win_amd64.whl"))) as wheel:
        for name in wheel.namelist():
            if place := _place(Path(name)):
                (target / place).write_bytes(wheel.read(name))
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, target / "Lib", ignore=shutil.ignore_patterns(*NOT_NEEDED))
    (target / "Lib" / "site-packages").mkdir()
    _compile_programs(wine.home / "build", target)


def make_stand_ins(folder: Path) -> Path:
    """Compile DLLs for what Wine 8 lacks; return their folder."""
    made = folder / "stand-ins"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for name in REPLACED:
        code = folder / f"{name}.o"
        _compile("-c", HERE / "c" / f"{name}.c", "-o", code)
        own = re.findall(r" T x_(\w+)", _read("x86_64-w64-mingw32-nm", code))
        forward = _forwarder(WINE_DLLS / f"{name}.dll", name, f"{name}_wine", own)
        _link(folder, made / f"{name}.dll", forward, code)
    for name in ("icuuc", "bcryptprimitives"):
        _link(folder, made / f"{name}.dll", "", HERE / "c" / f"{name}.c")
    return made


def install_requirements(wine: Wine, locks: Iterable[str]) -> None:
    """Install lock files into the Windows Python, each file checked against its hash."""
    texts = [(LOCKS / f"{lock}.txt").read_text("utf-8") for lock in locks]
    lines = [line for text in texts for line in windows_lines(text)]
    chosen = wine.home / "requirements.txt"
    chosen.write_text("\n".join(dict.fromkeys(lines)) + "\n", "utf-8")
    target = wine.python / "Lib" / "site-packages"
    shutil.rmtree(target, ignore_errors=True)
    places: list[str | Path] = ["--target", target, "-r", chosen]
    pip = [sys.executable, "-m", "pip", "install", *WINDOWS_WHEELS, *places]
    work("installing Windows packages", pip, "wine-pip", {})


def add_project(wine: Wine) -> None:
    """Make the checkout importable and known by name, as an editable installation would."""
    target = wine.python / "Lib" / "site-packages"
    made = wine.home / "project"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    lines = [windows_path(path) for path in (ROOT, made)]
    (target / "rigtune.pth").write_text("\n".join([*lines, ""]), "utf-8")
    build = "from setuptools import build_meta as b; import sys; "
    build += "b.prepare_metadata_for_build_wheel(sys.argv[1])"
    python = wine.python / "python.exe"
    if wine.run([python, "-c", build, windows_path(made)], cwd=ROOT) != 0:
        raise Problem("The project's metadata could not be made under Wine.")


def windows_lines(lock: str) -> list[str]:
    """Return the requirements of a lock file that hold on Windows, without their markers.

    pip on Linux would judge the markers by Linux, whatever platform it installs for.
    """
    marker_of = importlib.import_module("pip._vendor.packaging.markers").Marker
    chosen = []
    for line in lock.replace("\\\n", " ").splitlines():
        requirement, *hashes = re.split(r"\s+(?=--hash)", line.strip())
        name, _, marker = requirement.partition(";")
        if (
            name
            and not name.startswith("#")
            and (not marker or marker_of(marker).evaluate(MARKERS))
        ):
            chosen.append(" ".join([name.strip(), *hashes]))
    return chosen


def _place(name: Path) -> Path | None:
    """Return where a file of panda3d's wheel belongs in the Windows Python, if anywhere."""
    if name.parent.name != "deploy_libs":
        return None
    if name.suffix == ".pyd" or name.stem in LIBRARIES:
        return Path("DLLs", name.name)
    if name.stem == "python311" or name.stem.upper().startswith("VCRUNTIME140"):
        return Path(name.name)
    return None


def _compile_programs(folder: Path, target: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / "manifest.o"
    source: list[str | Path] = ["-I", HERE / "c", HERE / "c" / "python.rc", "-o", manifest]
    windres = ["x86_64-w64-mingw32-windres", "-O", "coff", *source]
    work("compiling the manifest", windres, "wine-gcc", {})
    parts = (HERE / "c" / "python_main.c", manifest, "-municode", "-s")
    _compile(*parts, "-o", target / "python.exe")
    _compile(*parts, "-mwindows", "-DWINDOWED", "-o", target / "pythonw.exe")
    # abi3 modules (PySide6) import python3.dll, which hands everything on.
    forward = _forwarder(target / "python311.dll", "python3", "python311", ())
    empty = folder / "empty.c"
    empty.write_text("typedef int empty;\n", "utf-8")
    _link(folder, target / "python3.dll", forward, empty)


def _forwarder(dll: Path, name: str, target: str, own: Sequence[str]) -> str:
    """Return the exports of a NAME.dll that hands all of a DLL's functions on, but for its own."""
    dump = _read("x86_64-w64-mingw32-objdump", "-p", dll)
    table = dump.split("[Ordinal/Name Pointer] Table", 1)[1].split("\n\n", 1)[0]
    exports = re.findall(r"^\s*\[ *\d+\].*?(\S+)$", table, re.MULTILINE)
    lines = [f"  {e} = {f'x_{e}' if e in own else f'{target}.{e}'}" for e in exports]
    return "\n".join([f"LIBRARY {name}.dll", "EXPORTS", *lines, ""])


def _link(folder: Path, dll: Path, exports: str, code: Path) -> None:
    definition = folder / f"{dll.stem}.def"
    definition.write_text(exports or f"LIBRARY {dll.name}\n", "utf-8")
    flags = ("-shared", "-nostartfiles", "-Wl,--entry=0", "-static-libgcc", "-s")
    _compile(*flags, code, definition, "-ladvapi32", "-o", dll)


def _compile(*arguments: str | Path) -> None:
    work(f"compiling {Path(arguments[-1]).name}", [GCC, "-O2", *arguments], "wine-gcc", {})


def _read(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
