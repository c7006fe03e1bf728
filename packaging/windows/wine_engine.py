"""llama.cpp cross-built for Windows (CPU and RPC) with mingw-w64, and its Python binding."""

from __future__ import annotations

import os
import shutil
import sysconfig
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from boot_engine import LOCKS, PORTABLE, PYTHON_IN_VENV, make_venv, pip, pip_install_locked
from boot_host import work

if TYPE_CHECKING:
    from wine_host import Wine

HERE = Path(__file__).resolve().parent
TOOLCHAIN = HERE / "mingw.cmake"
OLDER_MINGW = HERE / "c" / "older_mingw.h"
MINGW = Path("/usr/lib/gcc/x86_64-w64-mingw32/12-posix")
WINPTHREAD = Path("/usr/x86_64-w64-mingw32/lib/libwinpthread-1.dll")
# The same engine as boot_engine's, for the processor features that a build on Windows asks for.
OPTIONS = (
    *PORTABLE,
    *(f"GGML_{name}=ON" for name in ("SSE42", "AVX", "AVX2", "BMI2", "FMA", "F16C")),
    "GGML_OPENMP=OFF",
    *("BUILD_SHARED_LIBS=ON", "CMAKE_BUILD_TYPE=Release", "LLAMA_OPENSSL=OFF"),
    *(f"LLAMA_BUILD_{name}=OFF" for name in ("COMMON", "TOOLS", "EXAMPLES", "TESTS", "SERVER")),
)
# GCC keeps no 32-byte stack alignment on Windows, so AVX must not rely on it.
FLAGS = f"-Wa,-muse-unaligned-vector-move -D_WIN32_WINNT=0x0A00 -include {OLDER_MINGW}"
TARGETS = ("llama", "ggml", "ggml-cpu", "ggml-rpc")


def engine_package(home: Path) -> Path:
    """Return the folder with the binding and its Windows libraries, building it if need be."""
    if not home.is_dir():
        scratch = home.with_name(f"{home.name}.{os.getpid()}.tmp")
        try:
            _build(scratch)
            (scratch / "out").replace(home)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return home


def install_engine(wine: Wine, package: Path) -> None:
    """Copy the engine into the Windows Python."""
    for folder in package.iterdir():
        target = wine.python / "Lib" / "site-packages" / folder.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)


def _build(scratch: Path) -> None:
    """Fetch the locked source and make scratch/out of it: what a wheel would install."""
    make_venv("making a place to build the engine in", scratch / "env")
    python = scratch / "env" / PYTHON_IN_VENV
    pip_install_locked("fetching the engine's build tools", python, "engine-build")
    options = ("--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--require-hashes")
    fetch = ("download", *options, "-d", scratch, "-r", LOCKS / "engine.txt")
    pip("fetching llama.cpp's source", python, "engine-source", fetch)
    with tarfile.open(next(scratch.glob("llama_cpp_python-*.tar.gz"))) as archive:
        archive.extractall(scratch, filter="data")
    source = next(path for path in scratch.glob("llama_cpp_python-*") if path.is_dir())
    _cross_build(source / "vendor" / "llama.cpp", scratch / "build", python.parent)
    library = source / "llama_cpp" / "lib"
    library.mkdir(exist_ok=True)
    runtime = (MINGW / "libgcc_s_seh-1.dll", MINGW / "libstdc++-6.dll", WINPTHREAD)
    for dll in (*(scratch / "build" / "bin").glob("*.dll"), *runtime):
        # mingw says libllama.dll; Visual Studio, and so every wheel, says llama.dll
        kept = library / ("llama.dll" if dll.name == "libllama.dll" else dll.name)
        strip: list[str | Path] = ["x86_64-w64-mingw32-strip", "-o", kept, dll]
        work(f"stripping {kept.name}", strip, "engine-windows", {})
    out = scratch / "out"
    information = out / f"{source.name}.dist-info"
    information.mkdir(parents=True)
    (source / "llama_cpp").replace(out / "llama_cpp")
    shutil.copy(source / "PKG-INFO", information / "METADATA")
    (information / "licenses").mkdir()
    shutil.copy(source / "LICENSE.md", information / "licenses")
    files = [p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()]
    (information / "RECORD").write_text("".join(f"{f},,\n" for f in sorted(files)), "utf-8")


def _cross_build(source: Path, build: Path, tools: Path) -> None:
    options = [f"-D{option}" for option in OPTIONS]
    flags = [f"-DCMAKE_{language}_FLAGS={FLAGS}" for language in ("C", "CXX")]
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}"
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    places: list[str | Path] = ["-S", source, "-B", build]
    configure = ["cmake", "-G", "Ninja", *places, toolchain, *options, *flags]
    work("configuring llama.cpp for Windows", configure, "engine-windows-configure", path)
    label = "building llama.cpp for Windows, once (3 to 8 minutes on two cores)"
    jobs = str(os.cpu_count() or 1)
    work(label, ["nice", "ninja", "-j", jobs, "-C", build, *TARGETS], "engine-windows", path)


def engine_key_parts() -> tuple[str | Path, ...]:
    """Return what one build depends on."""
    return (LOCKS / "engine.txt", TOOLCHAIN, OLDER_MINGW, *OPTIONS, sysconfig.get_platform())
